//! The rules of a Pod: connections that are allowed. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::sets::Name;
use super::{Allowed, Direction, PodView, PolicyView, Port, Set};
use crate::Protocol;
use crate::nftables::base::FRONT;
use crate::nftables::rule::{Field, Rule, Statement, Verdict};

/// Returns the rules of a Pod in one direction; `None` if no policy restricts it.
pub fn rules_of(
    pod: &PodView,
    direction: Direction,
    policies: &[Arc<PolicyView>],
    sets: &BTreeMap<String, Set>,
) -> Option<Vec<Rule>> {
    let selects = |policy: &&Arc<PolicyView>| {
        policy.meta.key.namespace == pod.meta.key.namespace && policy.pods.matches(&pod.labels)
    };
    let mut all = None;
    for policy in policies.iter().filter(selects) {
        let Some(allowed) = policy.rules(direction) else {
            continue;
        };
        let all: &mut Vec<_> = all.get_or_insert_default();
        for (index, rule) in allowed.iter().enumerate() {
            let name = Name {
                policy,
                direction,
                index,
            };
            all.extend(rules(rule, pod, &name, sets));
        }
    }
    all
}

/// Returns the rules that return for the connections of a Pod that are allowed.
fn rules(
    rule: &Allowed,
    pod: &PodView,
    name: &Name<'_>,
    sets: &BTreeMap<String, Set>,
) -> Vec<Rule> {
    let (side, own): (&'static [Field], _) = match name.direction {
        Direction::Ingress => (&[Field::Source], Some(pod)),
        Direction::Egress => (&[Field::Destination], None),
    };
    let peers: Vec<Option<Statement>> = match &rule.peers {
        None => vec![None],
        Some(peers) => {
            let kinds = [name.of("pods"), name.of_blocks(peers)];
            let sets = kinds.into_iter().filter(|set| sets.contains_key(set));
            sets.map(|set| Some(Statement::In(side, set))).collect()
        }
    };
    let ports = match &rule.ports {
        None => vec![Rule::new()],
        Some(ports) => conditions(ports, own),
    };
    let named = Some(name.of("ports")).filter(|set| sets.contains_key(set));
    let named = named.map(|set| vec![Statement::In(FRONT, set)]);
    let pairs = peers
        .iter()
        .flat_map(|peer| ports.iter().map(move |port| (peer, port)));
    let pairs = pairs.map(|(peer, port)| peer.iter().chain(port).cloned().collect());
    let end = |mut rule: Rule| {
        rule.push(Statement::Verdict(Verdict::Return));
        rule
    };
    pairs.chain(named).map(end).collect()
}

/// Returns conditions of which one holds for connections to these ports. Names are those of `pod`, if there is one.
fn conditions(ports: &[Port], pod: Option<&PodView>) -> Vec<Rule> {
    let mut whole = BTreeSet::new();
    let mut numbers: BTreeMap<Protocol, Vec<(u16, u16)>> = BTreeMap::new();
    for port in ports {
        match port {
            Port::Any(protocol) => _ = whole.insert(*protocol),
            Port::Numbers(protocol, first, last) => {
                numbers.entry(*protocol).or_default().push((*first, *last));
            }
            Port::Named(protocol, name) => {
                let named = pod.into_iter().flat_map(|pod| pod.numbers(*protocol, name));
                let named = named.map(|number| (number, number));
                numbers.entry(*protocol).or_default().extend(named);
            }
        }
    }
    numbers.retain(|protocol, _| !whole.contains(protocol));
    let some = numbers.into_iter().flat_map(|(protocol, ports)| {
        let of =
            move |(first, last)| vec![Statement::Protocol(protocol), Statement::Ports(first, last)];
        union(ports).into_iter().map(of)
    });
    let whole = whole.iter().map(|one| vec![Statement::Protocol(*one)]);
    whole.chain(some).collect()
}

/// Returns ranges of the same ports, of which none overlaps or touches another.
fn union(mut ports: Vec<(u16, u16)>) -> Vec<(u16, u16)> {
    ports.sort_unstable();
    let mut union: Vec<(u16, u16)> = Vec::new();
    for (first, last) in ports {
        match union.last_mut() {
            Some(former) if first <= former.1.saturating_add(1) => former.1 = former.1.max(last),
            _ => union.push((first, last)),
        }
    }
    union
}
