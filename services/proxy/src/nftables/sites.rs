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

use super::base::{FRONT, PORT};
use super::rule::{Field, Rule, Statement, Verdict};
use super::set::{Element, Key, SetKind};
use super::transaction::{Command, Transaction};
use crate::Site;

/// Adds maps and chains for sites, and returns the rules that lead to them: none without sites.
pub fn script(transaction: &mut Transaction, sites: &BTreeMap<u16, Site>) -> Vec<Rule> {
    if sites.is_empty() {
        return Vec::new();
    }
    for site in sites.keys() {
        transaction.chain(format!("clients-{site}"));
        transaction.chain(format!("node-{site}"));
    }
    for name in ["clients", "nodes"] {
        transaction.push(Command::AddSet(name.to_owned(), SetKind::RangeVerdicts));
    }
    for (site, of) in sites {
        one(transaction, *site, of);
    }
    // The rules that look for what sites have of their own.
    let lookup = |fields, name: &str| vec![Statement::Vmap(fields, name.to_owned())];
    vec![
        lookup(&[Field::Source], "clients"),
        lookup(&[Field::Destination], "nodes"),
    ]
}

fn one(transaction: &mut Transaction, site: u16, of: &Site) {
    let (services, ports, pods) = (
        format!("services-{site}"),
        format!("node-ports-{site}"),
        format!("pods-{site}"),
    );
    for (name, kind) in [
        (&services, SetKind::FrontVerdicts),
        (&ports, SetKind::PortVerdicts),
        (&pods, SetKind::Ranges),
    ] {
        transaction.push(Command::AddSet(name.clone(), kind));
    }
    let (clients, node) = (format!("clients-{site}"), format!("node-{site}"));
    transaction.rule(&clients, [Statement::Vmap(FRONT, services)]);
    transaction.rule(&node, [Statement::Vmap(PORT, ports)]);
    let ranges = of.pods.iter().copied().map(Key::Range).map(Element::of);
    transaction.elements(pods, ranges.collect());
    let to = |range: Cidr, chain: &str| {
        Element::verdict(Key::Range(range), Verdict::Jump(chain.to_owned()))
    };
    let ranges = of.clients().map(|range| to(range, &clients));
    transaction.elements("clients", ranges.collect());
    let fronts = of.fronts.iter().map(|ip| to(Cidr::host(*ip), &node));
    transaction.elements("nodes", fronts.collect());
}
