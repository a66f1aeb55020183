//! The text of transactions. Pure.
//!
//! ```text
//! prerouting, output ─▶ services ─▶ @services, @node-ports ─▶ [balancer/… ─▶] [external/… ─▶] cluster/… or local/…
//! postrouting        ─▶ masquerade what is marked, and endpoints that reach themselves
//! input, forward, output ─▶ refusals ─▶ @refusals, @node-port-refusals, the Service range ─▶ refuse
//! ```
//! `cluster/…` and `local/…` choose an endpoint at random. With affinity they first look whether the client is in the
//! set of an endpoint, `affinity/…`, which the endpoint's chain, `endpoint/…`, adds it to.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddrV4};

use crate::ledger::{Change, Claimed, Delta, Owner};
use crate::service::{Protocol, TrafficPolicy};
use crate::{Chain, Cidr, Front, Place, PortPlan, Refusal};

/// The mark of packets whose source address is to be that of the machine, as in upstream.
const MASQUERADE: &str = "0x4000";

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
    /// Returns the transaction that replaces the table by one with the Services of a delta from nothing.
    pub fn whole(&self, place: &Place, delta: &Delta) -> String {
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
        script.delta(delta);
        script.text
    }

    /// Returns the transaction that makes a delta.
    pub fn partial(&self, delta: &Delta) -> String {
        let mut script = Script::new(&self.table);
        script.delta(delta);
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
    fn delta(&mut self, delta: &Delta) {
        self.fronts("delete element", delta, |(before, _)| before.as_ref());
        let ports = || delta.ports.values();
        let before = content(ports().filter_map(|(before, _)| before.as_deref()));
        let after = content(ports().filter_map(|(_, after)| after.as_deref()));
        for (set, seconds) in after
            .sets
            .iter()
            .filter(|(set, _)| !before.sets.contains_key(*set))
        {
            let kind = "type ipv4_addr ; flags dynamic, timeout";
            self.line(
                "add set",
                &format!("{set} {{ {kind} ; timeout {seconds}s ; }}"),
            );
        }
        let new = |chain: &&String| !before.chains.contains_key(*chain);
        for chain in after.chains.keys().filter(new) {
            self.line("add chain", chain);
        }
        for chain in before.chains.keys() {
            if before.chains.get(chain) != after.chains.get(chain) {
                self.line("flush chain", chain);
            }
        }
        for (chain, rules) in &after.chains {
            if before.chains.get(chain) != Some(rules) {
                rules.iter().for_each(|rule| self.rule(chain, rule));
            }
        }
        self.fronts("add element", delta, |(_, after)| after.as_ref());
        let pair = |ip: &Ipv4Addr| format!("{ip} . {ip}");
        self.edit(
            "delete element",
            "hairpin",
            delta.disappeared.iter().map(pair),
        );
        self.edit("add element", "hairpin", delta.appeared.iter().map(pair));
        for chain in before
            .chains
            .keys()
            .filter(|chain| !after.chains.contains_key(*chain))
        {
            self.line("delete chain", chain);
        }
        for set in before
            .sets
            .keys()
            .filter(|set| !after.sets.contains_key(*set))
        {
            self.line("delete set", set);
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

/// The chains with their rules, and the sets with their timeouts, of ports.
#[derive(Default)]
struct Content {
    chains: BTreeMap<String, Vec<String>>,
    sets: BTreeMap<String, u32>,
}

fn content<'a>(ports: impl Iterator<Item = &'a PortPlan>) -> Content {
    let mut content = Content::default();
    ports.for_each(|port| content.port(port));
    content
}

impl Content {
    fn port(&mut self, port: &PortPlan) {
        let id = &port.id;
        let cluster = (!port.cluster.is_empty()).then(|| format!("cluster/{id}"));
        let local = (!port.local.is_empty()).then(|| format!("local/{id}"));
        if let Some(policy) = port.external {
            let rules = external(policy, cluster.as_deref(), local.as_deref());
            self.chains.insert(format!("external/{id}"), rules);
        }
        if !port.source_ranges.is_empty() {
            let ranges: Vec<_> = port.source_ranges.iter().map(ToString::to_string).collect();
            let rules = vec![
                format!("ip saddr != {{ {} }} drop", ranges.join(", ")),
                format!("goto external/{id}"),
            ];
            self.chains.insert(format!("balancer/{id}"), rules);
        }
        if let Some(chain) = cluster {
            self.pool(port, chain, &port.cluster);
        }
        if let Some(chain) = local {
            self.pool(port, chain, &port.local);
        }
    }

    fn pool(&mut self, port: &PortPlan, chain: String, endpoints: &[SocketAddrV4]) {
        let protocol = port.id.protocol;
        let Some(seconds) = port.affinity else {
            self.chains.insert(chain, vec![random(protocol, endpoints)]);
            return;
        };
        let (mut rules, mut choices) = (Vec::new(), Vec::new());
        for (number, endpoint) in endpoints.iter().enumerate() {
            let of = format!("{}/{}/{}", port.id, endpoint.ip(), endpoint.port());
            let (set, own) = (format!("affinity/{of}/{seconds}"), format!("endpoint/{of}"));
            rules.push(format!("ip saddr @{set} goto {own}"));
            choices.push(format!("{number} : goto {own}"));
            let keep = format!("update @{set} {{ ip saddr }}");
            self.chains
                .insert(own, vec![keep, random(protocol, &[*endpoint])]);
            self.sets.insert(set, seconds);
        }
        let choices = choices.join(", ");
        rules.push(format!(
            "numgen random mod {} vmap {{ {choices} }}",
            endpoints.len()
        ));
        self.chains.insert(chain, rules);
    }
}

/// Returns the rules for connections from outside.
fn external(policy: TrafficPolicy, cluster: Option<&str>, local: Option<&str>) -> Vec<String> {
    let mark = format!("meta mark set meta mark | {MASQUERADE}");
    let cluster = |from: &str| cluster.map(|chain| format!("{from}{mark} goto {chain}"));
    match policy {
        TrafficPolicy::Cluster => cluster("").into_iter().collect(),
        TrafficPolicy::Local => {
            let others = local.map_or_else(|| "drop".to_owned(), |chain| format!("goto {chain}"));
            cluster("fib saddr type local ")
                .into_iter()
                .chain([others])
                .collect()
        }
    }
}

/// Returns the rule that chooses one of these endpoints at random.
fn random(protocol: Protocol, endpoints: &[SocketAddrV4]) -> String {
    let protocol = protocol.name();
    if let [only] = endpoints {
        return format!("meta l4proto {protocol} dnat to {only}");
    }
    let numbered = endpoints.iter().enumerate();
    let numbered = numbered.map(|(n, one)| format!("{n} : {} . {}", one.ip(), one.port()));
    let (count, all) = (endpoints.len(), numbered.collect::<Vec<_>>().join(", "));
    format!("meta l4proto {protocol} dnat ip to numgen random mod {count} map {{ {all} }}")
}
