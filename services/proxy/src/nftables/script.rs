//! The text of a transaction. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddrV4};

use super::blocks::Blocks;
use super::content::{Content, chain_of, content, programmed};
use crate::ledger::{Change, Claimed, Delta, Owner};
use crate::{Chain, Front, Refusal, Way};

/// A transaction that is written.
pub struct Script<'a> {
    table: &'a str,
    text: String,
}

impl<'a> Script<'a> {
    /// Returns an empty transaction for a table.
    pub const fn new(table: &'a str) -> Self {
        Self {
            table,
            text: String::new(),
        }
    }

    /// Returns its text.
    pub fn text(self) -> String {
        self.text
    }

    /// Adds `<command> ip <table> <rest>`.
    pub fn line(&mut self, command: &str, rest: &str) {
        let space = if rest.is_empty() { "" } else { " " };
        let _ = writeln!(self.text, "{command} ip {}{space}{rest}", self.table);
    }

    /// Adds a rule at the end of a chain.
    pub fn rule(&mut self, chain: &str, rule: &str) {
        self.line("add rule", &format!("{chain} {rule}"));
    }

    /// Adds elements to a set or map.
    pub fn elements(&mut self, set: &str, elements: impl Iterator<Item = impl ToString>) {
        self.edit("add element", set, elements);
    }

    fn edit(&mut self, command: &str, set: &str, elements: impl Iterator<Item = impl ToString>) {
        let elements: Vec<_> = elements.map(|one| one.to_string()).collect();
        if !elements.is_empty() {
            self.line(command, &format!("{set} {{ {} }}", elements.join(", ")));
        }
    }

    /// Adds a delta, in an order in which nothing refers to what is not there: elements that go, chains that come,
    /// rules, elements that come, chains that go.
    pub fn delta(&mut self, delta: &Delta, blocks: &mut Blocks) {
        let ports = || delta.ports.values();
        let before = programmed(ports().filter_map(|(before, _)| before.as_deref()), blocks);
        let number = |chain: &str, count| blocks.fit(chain, count);
        let after = content(ports().filter_map(|(_, after)| after.as_deref()), number);
        let gone = before.pools.difference(&after.pools);
        gone.for_each(|pool| blocks.release(pool));
        self.fronts("delete element", delta, |(before, _)| before.as_ref());
        self.choices("delete element", &before, &after);
        self.added(&before, &after);
        self.rules(&before, &after);
        self.choices("add element", &after, &before);
        self.fronts("add element", delta, |(_, after)| after.as_ref());
        let pair = |ip: &Ipv4Addr| format!("{ip} . {ip}");
        let (gone, new) = (delta.disappeared.iter(), delta.appeared.iter());
        self.edit("delete element", "hairpin", gone.map(pair));
        self.edit("add element", "hairpin", new.map(pair));
        self.removed(&before, &after);
    }

    /// Adds the maps, sets and chains that come. Maps stay, and may be there already.
    fn added(&mut self, before: &Content, after: &Content) {
        let maps: BTreeSet<_> = after.elements.keys().map(|(map, _)| *map).collect();
        for map in maps {
            let kind = format!("typeof numgen random mod 2 : {}", map.value());
            self.line("add map", &format!("{map} {{ {kind} ; }}"));
        }
        for (set, seconds) in &after.sets {
            if !before.sets.contains_key(set) {
                let kind = format!("type ipv4_addr ; flags dynamic, timeout ; timeout {seconds}s");
                self.line("add set", &format!("{set} {{ {kind} ; }}"));
            }
        }
        for chain in after.chains.keys() {
            if !before.chains.contains_key(chain) {
                self.line("add chain", chain);
            }
        }
    }

    /// Replaces the rules of the chains that change.
    fn rules(&mut self, before: &Content, after: &Content) {
        for (chain, rules) in &before.chains {
            if after.chains.get(chain) != Some(rules) {
                self.line("flush chain", chain);
            }
        }
        for (chain, rules) in &after.chains {
            if before.chains.get(chain) != Some(rules) {
                rules.iter().for_each(|rule| self.rule(chain, rule));
            }
        }
    }

    /// Removes the chains and sets that go.
    fn removed(&mut self, before: &Content, after: &Content) {
        for chain in before.chains.keys() {
            if !after.chains.contains_key(chain) {
                self.line("delete chain", chain);
            }
        }
        for set in before.sets.keys() {
            if !after.sets.contains_key(set) {
                self.line("delete set", set);
            }
        }
    }

    /// Adds or deletes the numbered elements of one side that the other does not have.
    fn choices(&mut self, command: &str, side: &Content, other: &Content) {
        let mut elements: BTreeMap<_, Vec<String>> = BTreeMap::new();
        for (key @ (map, number), value) in &side.elements {
            if other.elements.get(key) != Some(value) {
                let element = format!("{number} : {value}");
                elements.entry(*map).or_default().push(element);
            }
        }
        for (map, elements) in elements {
            self.edit(command, &map.to_string(), elements.iter());
        }
    }

    fn fronts(
        &mut self,
        command: &str,
        delta: &Delta,
        side: impl Fn(&Change<Owner>) -> Option<&Owner>,
    ) {
        let mut elements: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (front, change) in &delta.fronts {
            if let Some((map, element)) = side(change).and_then(|owner| entry(*front, owner)) {
                elements.entry(map).or_default().push(element);
            }
        }
        for (map, elements) in elements {
            self.edit(command, &map, elements.iter());
        }
    }
}

/// Returns the element of a map for a front, with the name of the map.
fn entry((front, protocol): Claimed, (id, action): &Owner) -> Option<(String, String)> {
    let protocol = protocol.name();
    let of_address = |at: SocketAddrV4| format!("{} . {protocol} . {}", at.ip(), at.port());
    let of_port = |port: u16| format!("{protocol} . {port}");
    let (ways, refusals, key) = match front {
        Front::Address(at) => ("services".to_owned(), Some("refusals"), of_address(at)),
        Front::Node(port) => (
            "node-ports".to_owned(),
            Some("node-port-refusals"),
            of_port(port),
        ),
        Front::From(site, at) => (format!("services-{site}"), None, of_address(at)),
        Front::NodeOf(site, port) => (format!("node-ports-{site}"), None, of_port(port)),
    };
    match (action, refusals) {
        (Ok(Way { chain, site }), _) => {
            let chain = chain_of(chain.name(), *site, id);
            Some((ways, format!("{key} : goto {chain}")))
        }
        (Err(Refusal::Reject), Some(map)) => Some((map.to_owned(), format!("{key} : goto refuse"))),
        (Err(Refusal::Drop), Some(map)) => Some((map.to_owned(), format!("{key} : drop"))),
        // A packet may be dropped, but not rejected, before it is known where it goes. Sites reject with all others.
        (Err(Refusal::Drop), None) => Some((ways, format!("{key} : drop"))),
        (Err(Refusal::Reject), None) => None,
    }
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
