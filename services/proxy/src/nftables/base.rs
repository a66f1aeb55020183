//! The chains and maps of the table that all Services share, and the transactions. Pure.
//!
//! ```text
//! prerouting, output ─▶ services ─▶ @services, @node-ports ─▶ [balancer/… ─▶] [external/… ─▶] cluster/… or local/…
//! postrouting        ─▶ masquerade what is marked, and endpoints that reach themselves
//! input, forward, output ─▶ refusals ─▶ @refusals, @node-port-refusals, the Service range ─▶ refuse
//! ```
//! `cluster/…` and `local/…` choose an endpoint at random. With affinity they first look whether the client is in the
//! set of an endpoint, `affinity/…`, which the endpoint's chain, `endpoint/…`, adds it to. What they choose from are
//! the elements of a block of numbers ([`Blocks`]) in one of the maps of the whole table.

use setpoint_model::Cidr;

use super::blocks::Blocks;
use super::content::MASQUERADE;
use super::script::Script;
use super::sites;
use crate::Place;
use crate::ledger::Delta;

/// The parameters of the table that all Services share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// The name of the table.
    pub table: String,
    /// The addresses of Services.
    pub service_range: Vec<Cidr>,
    /// Whether the source address of all connections to the Service range is to be that of the machine.
    pub masquerade_all: bool,
}

impl Base {
    /// Returns the transaction that replaces the table by one with the Services of a delta from nothing. `blocks` must
    /// be empty.
    pub fn whole(&self, place: &Place, delta: &Delta, blocks: &mut Blocks) -> String {
        let mut script = Script::new(&self.table);
        script.line("add table", "");
        script.line("delete table", "");
        script.line("add table", "");
        for (kind, name, content) in CONTENT {
            script.line(&format!("add {kind}"), &format!("{name} {{ {content} ; }}"));
        }
        for name in ["services", "refusals", "refuse"] {
            script.line("add chain", name);
        }
        for (chain, rule) in RULES {
            script.rule(chain, rule);
        }
        if self.masquerade_all {
            let mark = format!("meta mark set meta mark | {MASQUERADE}");
            script.rule("services", &format!("ip daddr @service-range {mark}"));
        }
        let sites = sites::script(&mut script, &place.sites);
        for rule in sites.iter().chain(&LOOKUPS) {
            script.rule("services", rule);
        }
        script.elements("service-range", self.service_range.iter());
        script.elements("node-addresses", place.addresses.iter());
        script.delta(delta, blocks);
        script.text()
    }

    /// Returns the transaction that makes a delta.
    pub fn partial(&self, delta: &Delta, blocks: &mut Blocks) -> String {
        let mut script = Script::new(&self.table);
        script.delta(delta, blocks);
        script.text()
    }

    /// Returns a transaction that changes nothing, and fails unless the table is there.
    pub fn probe(&self) -> String {
        let mut script = Script::new(&self.table);
        script.line("add chain", "services");
        script.text()
    }

    /// Returns the transaction that removes the table if it is there.
    pub fn remove(table: &str) -> String {
        format!("add table ip {table}\ndelete table ip {table}\n")
    }
}

/// The chains with hooks, the sets and the maps.
const CONTENT: [(&str, &str, &str); 13] = [
    (
        "map",
        "services",
        "type ipv4_addr . inet_proto . inet_service : verdict",
    ),
    (
        "map",
        "node-ports",
        "type inet_proto . inet_service : verdict",
    ),
    (
        "map",
        "refusals",
        "type ipv4_addr . inet_proto . inet_service : verdict",
    ),
    (
        "map",
        "node-port-refusals",
        "type inet_proto . inet_service : verdict",
    ),
    ("set", "node-addresses", "type ipv4_addr ; flags interval"),
    ("set", "service-range", "type ipv4_addr ; flags interval"),
    ("set", "hairpin", "type ipv4_addr . ipv4_addr"),
    (
        "chain",
        "prerouting",
        "type nat hook prerouting priority -100",
    ),
    ("chain", "nat-output", "type nat hook output priority -100"),
    (
        "chain",
        "postrouting",
        "type nat hook postrouting priority 100",
    ),
    ("chain", "input", "type filter hook input priority 0"),
    ("chain", "forward", "type filter hook forward priority 0"),
    ("chain", "output", "type filter hook output priority 0"),
];

/// The rules of the chains that do not change.
const RULES: [(&str, &str); 12] = [
    ("prerouting", "jump services"),
    ("nat-output", "jump services"),
    (
        "postrouting",
        "meta mark & 0x4000 == 0x4000 meta mark set meta mark ^ 0x4000 masquerade fully-random",
    ),
    (
        "postrouting",
        "ct status dnat ip saddr . ip daddr @hairpin masquerade fully-random",
    ),
    ("input", "jump refusals"),
    ("forward", "jump refusals"),
    ("output", "jump refusals"),
    (
        "refusals",
        "ip daddr . meta l4proto . th dport vmap @refusals",
    ),
    (
        "refusals",
        "ip daddr @node-addresses meta l4proto . th dport vmap @node-port-refusals",
    ),
    // Nothing to an address of the range leaves the machine: those with a Service have become those of endpoints.
    ("refusals", "ip daddr @service-range goto refuse"),
    ("refuse", "meta l4proto tcp reject with tcp reset"),
    ("refuse", "reject"),
];

/// The rules by which Services are found.
const LOOKUPS: [&str; 2] = [
    "ip daddr . meta l4proto . th dport vmap @services",
    "ip daddr @node-addresses meta l4proto . th dport vmap @node-ports",
];
