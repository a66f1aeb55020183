//! The text of transactions. Pure.
//!
//! ```text
//! prerouting, output ─▶ services ─▶ @services, @node-ports ─▶ [balancer/… ─▶] [external/… ─▶] cluster/… or local/…
//! postrouting        ─▶ masquerade what is marked, and endpoints that reach themselves
//! input, forward, output ─▶ refusals ─▶ @refusals, @node-port-refusals, the Service range ─▶ refuse
//! ```
//! `cluster/…` and `local/…` choose an endpoint at random. With affinity they first look whether the client is in the
//! set of an endpoint, `affinity/…`, which the endpoint's chain, `endpoint/…`, adds it to. What they choose from are the
//! elements of a block of numbers ([`Blocks`]) in one of the maps of the whole table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::Ipv4Addr;

use super::blocks::Blocks;
use super::content::{Content, MASQUERADE, content, programmed};
use crate::ledger::{Change, Claimed, Delta, Owner};
use crate::{Chain, Cidr, Front, Place, Refusal};

/// What is the same for all Services.
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
        for rule in LOOKUPS {
            script.rule("services", rule);
        }
        script.elements("service-range", self.service_range.iter());
        script.elements("node-addresses", place.addresses.iter());
        script.delta(delta, blocks);
        script.text
    }

    /// Returns the transaction that makes a delta.
    pub fn partial(&self, delta: &Delta, blocks: &mut Blocks) -> String {
        let mut script = Script::new(&self.table);
        script.delta(delta, blocks);
        script.text
    }

    /// Returns a transaction that changes nothing, and fails unless the table is there.
    pub fn probe(&self) -> String {
        let mut script = Script::new(&self.table);
        script.line("add chain", "services");
        script.text
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

/// A transaction that is written.
struct Script<'a> {
    table: &'a str,
    text: String,
}

impl<'a> Script<'a> {
    const fn new(table: &'a str) -> Self {
        Self {
            table,
            text: String::new(),
        }
    }

    /// Adds `<command> ip <table> <rest>`.
    fn line(&mut self, command: &str, rest: &str) {
        let space = if rest.is_empty() { "" } else { " " };
        let _ = writeln!(self.text, "{command} ip {}{space}{rest}", self.table);
    }

    fn rule(&mut self, chain: &str, rule: &str) {
        self.line("add rule", &format!("{chain} {rule}"));
    }

    fn elements(&mut self, set: &str, elements: impl Iterator<Item = impl ToString>) {
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
    fn delta(&mut self, delta: &Delta, blocks: &mut Blocks) {
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
        let mut elements: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (front, change) in &delta.fronts {
            for (map, element) in side(change)
                .into_iter()
                .flat_map(|owner| entries(*front, owner))
            {
                elements.entry(map).or_default().push(element);
            }
        }
        for (map, elements) in elements {
            self.edit(command, map, elements.iter());
        }
    }
}

/// Returns the elements of maps for a front, with the names of the maps.
fn entries((front, protocol): Claimed, (id, action): &Owner) -> Vec<(&'static str, String)> {
    let protocol = protocol.name();
    let (maps, key) = match front {
        Front::Address(at) => {
            let key = format!("{} . {protocol} . {}", at.ip(), at.port());
            (["services", "refusals"], key)
        }
        Front::Node(port) => (
            ["node-ports", "node-port-refusals"],
            format!("{protocol} . {port}"),
        ),
    };
    match action {
        Ok(chain) => vec![(maps[0], format!("{key} : goto {}/{id}", chain.name()))],
        Err(Refusal::Reject) => vec![(maps[1], format!("{key} : goto refuse"))],
        Err(Refusal::Drop) => vec![(maps[1], format!("{key} : drop"))],
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
