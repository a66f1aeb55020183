//! The chains, sets and elements of ports. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddrV4;

use super::blocks::Blocks;
use super::rule::{Draw, Field, Rule, Statement, Verdict};
use super::set::Value;
use crate::service::{Protocol, TrafficPolicy};
use crate::{Chain, PortId, PortPlan};

/// The number of maps of each kind. The time for an element grows with the number of rules that use its map.
const MAPS: u32 = 64;

/// A kind of maps from numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MapKind {
    /// To endpoints.
    Endpoints(Protocol),
    /// To the chains of endpoints, for Services with affinity.
    Choices,
}

/// A map from numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Map {
    kind: MapKind,
    number: u32,
}

impl Map {
    /// Returns the map for a chain.
    fn of(kind: MapKind, chain: &str) -> Self {
        // FNV-1a, which is the same in every process.
        let step = |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619);
        let hash = chain.bytes().fold(2_166_136_261, step);
        Self {
            kind,
            number: hash % MAPS,
        }
    }

    /// Returns what it maps to.
    pub const fn kind(self) -> MapKind {
        self.kind
    }
}

impl fmt::Display for MapKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Endpoints(protocol) => write!(f, "ip daddr . {} dport", protocol.name()),
            Self::Choices => f.write_str("verdict"),
        }
    }
}

impl fmt::Display for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            MapKind::Endpoints(protocol) => {
                write!(f, "{}-endpoints-{}", protocol.name(), self.number)
            }
            MapKind::Choices => write!(f, "choices-{}", self.number),
        }
    }
}

/// The part of the table that belongs to ports.
#[derive(Debug, Default)]
pub struct Content {
    /// The chains and their rules.
    pub chains: BTreeMap<String, Vec<Rule>>,
    /// The sets of clients and their timeouts in seconds.
    pub sets: BTreeMap<String, u32>,
    /// The elements of maps from numbers.
    pub elements: BTreeMap<(Map, u32), Value>,
    /// The chains with blocks of numbers.
    pub pools: BTreeSet<String>,
}

/// Returns what ports have. `number` returns the first number for a chain of that many endpoints.
pub fn content<'a>(
    ports: impl Iterator<Item = &'a PortPlan>,
    mut number: impl FnMut(&str, usize) -> u32,
) -> Content {
    let mut content = Content::default();
    ports.for_each(|port| content.port(port, &mut number));
    content
}

/// Returns what ports have that are programmed.
pub fn programmed<'a>(ports: impl Iterator<Item = &'a PortPlan>, blocks: &Blocks) -> Content {
    content(ports, |chain, _| blocks.of(chain))
}

type Number<'n> = &'n mut dyn FnMut(&str, usize) -> u32;

impl Content {
    fn port(&mut self, port: &PortPlan, number: Number<'_>) {
        let id = &port.id;
        let chain = |kind, site, pool: &[SocketAddrV4]| {
            (!pool.is_empty()).then(|| chain_of(kind, site, id))
        };
        let cluster = chain("cluster", None, &port.cluster);
        let local = chain("local", None, &port.local);
        self.entrances(port, None, cluster.as_deref(), local.as_deref());
        for (site, pools) in &port.sites {
            let site = Some(*site);
            let own = pools
                .cluster
                .as_ref()
                .and_then(|pool| chain("cluster", site, pool));
            let local = chain("local", site, &pools.local);
            let reached = own.as_ref().or(cluster.as_ref());
            self.entrances(port, site, reached.map(String::as_str), local.as_deref());
            let endpoints = pools.cluster.as_deref().unwrap_or_default();
            self.pool(port, own, endpoints, number);
            self.pool(port, local, &pools.local, number);
        }
        self.pool(port, cluster, &port.cluster, number);
        self.pool(port, local, &port.local, number);
    }

    /// Adds the chains for connections from outside, which lead to these.
    fn entrances(
        &mut self,
        port: &PortPlan,
        site: Option<u16>,
        cluster: Option<&str>,
        local: Option<&str>,
    ) {
        let is_balanced = port.leads(Chain::Balancer, site);
        let Some(policy) = port
            .external
            .filter(|_| is_balanced || port.leads(Chain::External, site))
        else {
            return;
        };
        let external = chain_of("external", site, &port.id);
        if is_balanced {
            let allowed = |range| vec![Statement::From(range), goto(&external)];
            let rules = port.source_ranges.iter().copied().map(allowed);
            let drop = vec![Statement::Verdict(Verdict::Drop)];
            let chain = chain_of("balancer", site, &port.id);
            self.chains.insert(chain, rules.chain([drop]).collect());
        }
        let rules = external_rules(policy, site, cluster, local);
        self.chains.insert(external, rules);
    }

    fn pool(
        &mut self,
        port: &PortPlan,
        chain: Option<String>,
        endpoints: &[SocketAddrV4],
        number: Number<'_>,
    ) {
        let Some(chain) = chain else { return };
        let rules = match port.affinity {
            None => vec![self.random(port.id.protocol, &chain, endpoints, number)],
            Some(seconds) => self.sticky(port, seconds, &chain, endpoints, number),
        };
        self.chains.insert(chain, rules);
    }

    /// Returns the rule that chooses one of these endpoints at random.
    fn random(
        &mut self,
        protocol: Protocol,
        chain: &str,
        endpoints: &[SocketAddrV4],
        number: Number<'_>,
    ) -> Rule {
        if let [only] = endpoints {
            return one(protocol, *only);
        }
        let map = Map::of(MapKind::Endpoints(protocol), chain);
        let values = endpoints.iter().copied().map(Value::Endpoint);
        let draw = self.draw(map, chain, values, number);
        vec![Statement::Protocol(protocol), Statement::ToDrawn(draw, map)]
    }

    /// Returns the rules that choose the endpoint that a client had, or one at random.
    fn sticky(
        &mut self,
        port: &PortPlan,
        seconds: u32,
        chain: &str,
        endpoints: &[SocketAddrV4],
        number: Number<'_>,
    ) -> Vec<Rule> {
        let (mut rules, mut choices) = (Vec::new(), Vec::new());
        for endpoint in endpoints {
            let of = format!("{}/{}/{}", port.id, endpoint.ip(), endpoint.port());
            let (set, own) = (format!("affinity/{of}/{seconds}"), format!("endpoint/{of}"));
            let known = Statement::In(&[Field::Source], set.clone());
            rules.push(vec![known, goto(&own)]);
            choices.push(Value::Verdict(Verdict::Goto(own.clone())));
            let keep = vec![Statement::Keep(set.clone())];
            self.chains
                .insert(own, vec![keep, one(port.id.protocol, *endpoint)]);
            self.sets.insert(set, seconds);
        }
        let map = Map::of(MapKind::Choices, chain);
        let draw = self.draw(map, chain, choices.into_iter(), number);
        rules.push(vec![Statement::Choose(draw, map)]);
        rules
    }

    /// Numbers the values of a chain in a map, and returns how one of the numbers is drawn.
    fn draw(
        &mut self,
        map: Map,
        chain: &str,
        values: impl ExactSizeIterator<Item = Value>,
        number: Number<'_>,
    ) -> Draw {
        let count = values.len();
        let first = number(chain, count);
        let numbered = (first..).zip(values);
        self.elements
            .extend(numbered.map(|(number, value)| ((map, number), value)));
        self.pools.insert(chain.to_owned());
        let modulus = u32::try_from(count).unwrap_or(u32::MAX);
        Draw {
            modulus,
            offset: first,
        }
    }
}

fn one(protocol: Protocol, endpoint: SocketAddrV4) -> Rule {
    vec![Statement::Protocol(protocol), Statement::To(endpoint)]
}

fn goto(chain: &str) -> Statement {
    Statement::Verdict(Verdict::Goto(chain.to_owned()))
}

/// Returns the name of a chain of a port, for a site or the whole machine.
pub fn chain_of(kind: &str, site: Option<u16>, id: &PortId) -> String {
    match site {
        None => format!("{kind}/{id}"),
        Some(site) => format!("{kind}-{site}/{id}"),
    }
}

/// Returns the rules for connections from outside.
fn external_rules(
    policy: TrafficPolicy,
    site: Option<u16>,
    cluster: Option<&str>,
    local: Option<&str>,
) -> Vec<Rule> {
    let from = |mut rule: Rule| {
        rule.push(goto(cluster?));
        Some(rule)
    };
    if policy == TrafficPolicy::Cluster {
        return from(vec![Statement::Mark]).into_iter().collect();
    }
    // As if they had gone out to a load balancer and come back, Pods of the node reach all endpoints.
    let of_node = |site| Statement::In(&[Field::Source], format!("pods-{site}"));
    let pods = site.and_then(|site| from(vec![of_node(site)]));
    let machine = from(vec![Statement::FromMachine, Statement::Mark]);
    let others = local.map_or(Statement::Verdict(Verdict::Drop), goto);
    pods.into_iter()
        .chain(machine)
        .chain([vec![others]])
        .collect()
}
