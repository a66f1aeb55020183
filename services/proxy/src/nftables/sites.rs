//! The part of the table that tells the nodes of a machine apart. Pure.
//!
//! ```text
//! services ─▶ @clients, by source ─▶ clients-<site> ─▶ @services-<site>
//!          ─▶ @nodes, by destination ─▶ node-<site> ─▶ @node-ports-<site>
//!          ─▶ @services, @node-ports
//! ```
//! The maps of a site have the Services alone whose connections go elsewhere than those of the machine. A packet passes
//! two maps more than without sites, however many Services and nodes there are.

use std::collections::BTreeMap;

use setpoint_model::Cidr;

use super::script::Script;
use crate::Site;

/// The rules that look for what sites have of their own.
const LOOKUPS: [&str; 2] = ["ip saddr vmap @clients", "ip daddr vmap @nodes"];

/// Adds maps and chains for sites, and returns the rules that lead to them: none without sites.
pub fn script(script: &mut Script<'_>, sites: &BTreeMap<u16, Site>) -> &'static [&'static str] {
    if sites.is_empty() {
        return &[];
    }
    // `nft` 1.0.6 does not find chains that come after such a map in one transaction.
    for site in sites.keys() {
        script.line("add chain", &format!("clients-{site}"));
        script.line("add chain", &format!("node-{site}"));
    }
    let map = "type ipv4_addr : verdict ; flags interval";
    for name in ["clients", "nodes"] {
        script.line("add map", &format!("{name} {{ {map} ; }}"));
    }
    sites.iter().for_each(|(site, of)| one(script, *site, of));
    &LOOKUPS
}

fn one(script: &mut Script<'_>, site: u16, of: &Site) {
    let address = "type ipv4_addr . inet_proto . inet_service : verdict";
    let port = "type inet_proto . inet_service : verdict";
    script.line("add map", &format!("services-{site} {{ {address} ; }}"));
    script.line("add map", &format!("node-ports-{site} {{ {port} ; }}"));
    let pods = "type ipv4_addr ; flags interval";
    script.line("add set", &format!("pods-{site} {{ {pods} ; }}"));
    let (clients, node) = (format!("clients-{site}"), format!("node-{site}"));
    let lookup = format!("ip daddr . meta l4proto . th dport vmap @services-{site}");
    script.rule(&clients, &lookup);
    let lookup = format!("meta l4proto . th dport vmap @node-ports-{site}");
    script.rule(&node, &lookup);
    script.elements(&format!("pods-{site}"), of.pods.iter());
    let to = |range: Cidr, chain: &str| format!("{range} : jump {chain}");
    script.elements("clients", of.clients().map(|range| to(range, &clients)));
    let fronts = of.fronts.iter().map(|ip| to(Cidr::host(*ip), &node));
    script.elements("nodes", fronts);
}
