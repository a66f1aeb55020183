//! The commands that make a delta. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use super::blocks::Blocks;
use super::content::{Content, Map, chain_of, content, programmed};
use super::rule::Verdict;
use super::set::{Element, Key, SetKind};
use super::transaction::{Command, Transaction};
use crate::ledger::{Change, Claimed, Delta, Owner};
use crate::{Chain, Front, Refusal, Way};

/// The map of refused connections, the one of node ports, and the chain that refuses.
const REFUSALS: [&str; 3] = ["refusals", "node-port-refusals", "refuse"];

impl Transaction {
    /// Adds a delta, in an order in which nothing refers to what is not there: elements that go, chains that come,
    /// rules, elements that come, chains that go.
    pub fn delta(&mut self, delta: &Delta, blocks: &mut Blocks) {
        let ports = || delta.ports.values();
        let before = programmed(ports().filter_map(|(before, _)| before.as_deref()), blocks);
        let number = |chain: &str, count| blocks.fit(chain, count);
        let after = content(ports().filter_map(|(_, after)| after.as_deref()), number);
        let gone = before.pools.difference(&after.pools);
        gone.for_each(|pool| blocks.release(pool));
        for (map, elements) in fronts(delta, |(before, _)| before.as_ref()) {
            self.delete_elements(map, elements);
        }
        for (map, elements) in choices(&before, &after) {
            self.delete_elements(map.to_string(), elements);
        }
        self.added(&before, &after);
        self.change_rules(&before, &after);
        for (map, elements) in choices(&after, &before) {
            self.elements(map.to_string(), elements);
        }
        for (map, elements) in fronts(delta, |(_, after)| after.as_ref()) {
            self.elements(map, elements);
        }
        self.delete_elements("hairpin", pairs(&delta.disappeared));
        self.elements("hairpin", pairs(&delta.appeared));
        self.removed(&before, &after);
    }

    /// Adds the maps, sets and chains that come. Maps stay, and may be there already.
    fn added(&mut self, before: &Content, after: &Content) {
        let maps: BTreeSet<_> = after.elements.keys().map(|(map, _)| *map).collect();
        for map in maps {
            self.push(Command::AddSet(map.to_string(), map.into()));
        }
        for (set, seconds) in &after.sets {
            if !before.sets.contains_key(set) {
                self.push(Command::AddSet(set.clone(), SetKind::Clients(*seconds)));
            }
        }
        for chain in after.chains.keys() {
            if !before.chains.contains_key(chain) {
                self.chain(chain);
            }
        }
    }

    /// Replaces the rules of the chains that change.
    fn change_rules(&mut self, before: &Content, after: &Content) {
        for (chain, rules) in &before.chains {
            if after.chains.get(chain) != Some(rules) {
                self.push(Command::FlushChain(chain.clone()));
            }
        }
        for (chain, rules) in &after.chains {
            if before.chains.get(chain) != Some(rules) {
                let rules = rules.iter().cloned();
                rules.for_each(|rule| self.rule(chain, rule));
            }
        }
    }

    /// Removes the chains and sets that go.
    fn removed(&mut self, before: &Content, after: &Content) {
        for chain in before.chains.keys() {
            if !after.chains.contains_key(chain) {
                self.push(Command::DeleteChain(chain.clone()));
            }
        }
        for set in before.sets.keys() {
            if !after.sets.contains_key(set) {
                self.push(Command::DeleteSet(set.clone()));
            }
        }
    }
}

/// Returns the numbered elements of one side that the other does not have.
fn choices(side: &Content, other: &Content) -> BTreeMap<Map, Vec<Element>> {
    let mut elements: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (key @ (map, number), value) in &side.elements {
        if other.elements.get(key) != Some(value) {
            elements.entry(*map).or_default().push(Element {
                key: Key::Number(*number),
                value: Some(value.clone()),
            });
        }
    }
    elements
}

/// Returns the elements of one side of the fronts that change, by their maps.
fn fronts(
    delta: &Delta,
    side: impl Fn(&Change<Owner>) -> Option<&Owner>,
) -> BTreeMap<String, Vec<Element>> {
    let mut elements: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (front, change) in &delta.fronts {
        if let Some((map, element)) = side(change).and_then(|owner| entry(*front, owner)) {
            elements.entry(map).or_default().push(element);
        }
    }
    elements
}

fn pairs(addresses: &BTreeSet<Ipv4Addr>) -> Vec<Element> {
    let pairs = addresses.iter().copied().map(Key::Pair);
    pairs.map(Element::of).collect()
}

/// Returns the element of a map for a front, with the name of the map.
fn entry((front, protocol): Claimed, (id, action): &Owner) -> Option<(String, Element)> {
    let [of_addresses, of_nodes, refuse] = REFUSALS;
    let (ways, refusals, key) = match front {
        Front::Address(at) => {
            let key = Key::Front(at, protocol);
            ("services".to_owned(), Some(of_addresses), key)
        }
        Front::Node(port) => {
            let key = Key::Port(protocol, port);
            ("node-ports".to_owned(), Some(of_nodes), key)
        }
        Front::From(site, at) => (format!("services-{site}"), None, Key::Front(at, protocol)),
        Front::NodeOf(site, port) => (
            format!("node-ports-{site}"),
            None,
            Key::Port(protocol, port),
        ),
    };
    let (map, verdict) = match (action, refusals) {
        (Ok(Way { chain, site }), _) => (ways, Verdict::Goto(chain_of(chain.name(), *site, id))),
        (Err(Refusal::Reject), Some(map)) => (map.to_owned(), Verdict::Goto(refuse.to_owned())),
        (Err(Refusal::Drop), Some(map)) => (map.to_owned(), Verdict::Drop),
        // A packet may be dropped, but not rejected, before it is known where it goes. Sites reject with all others.
        (Err(Refusal::Drop), None) => (ways, Verdict::Drop),
        (Err(Refusal::Reject), None) => return None,
    };
    Some((map, Element::verdict(key, verdict)))
}

impl Chain {
    const fn name(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Local => "local",
            Self::External => "external",
            Self::Balancer => "balancer",
        }
    }
}
