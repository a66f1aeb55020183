//! Plans the rules of the Pods of this machine. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

use setpoint_model::Cidr;

use super::ranges::merged;
use super::{Direction, NamespaceView, Peer, PodView, PolicyView, Port, Range, Rule};
use crate::Protocol;

/// What the plan depends on.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// The policies of the cluster.
    pub policies: Vec<Arc<PolicyView>>,
    /// The Pods of the cluster.
    pub pods: Vec<Arc<PodView>>,
    /// The Namespaces.
    pub namespaces: Vec<Arc<NamespaceView>>,
    /// The names of the nodes of this machine.
    pub nodes: BTreeSet<Box<str>>,
    /// The addresses of the Pods of this machine.
    pub ranges: BTreeSet<Cidr>,
}

/// The elements of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elements {
    /// Addresses of Pods.
    Pods(BTreeSet<Ipv4Addr>),
    /// Addresses of blocks, as ranges that do not touch.
    Blocks(Vec<Range>),
    /// Ports of Pods.
    Ports(BTreeSet<(Ipv4Addr, Protocol, u16)>),
}

/// The table of a machine. Without a policy it is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The addresses of the Pods of this machine.
    pub ranges: BTreeSet<Cidr>,
    /// Those among them that Pods have. All others have no connections.
    pub known: BTreeSet<Ipv4Addr>,
    /// What Pods that are restricted may do: rules of nftables that return for connections that are allowed.
    pub rules: BTreeMap<(Direction, Ipv4Addr), Arc<Vec<String>>>,
    /// The sets that rules name.
    pub sets: BTreeMap<String, Elements>,
}

/// Plans the table of a machine.
pub fn plan(world: &World) -> Plan {
    let mut plan = Plan::default();
    if world.policies.is_empty() {
        return plan;
    }
    plan.ranges.clone_from(&world.ranges);
    let pods = by_namespace(&world.pods);
    for policy in &world.policies {
        let others = Others {
            world,
            pods: &pods,
            policy,
        };
        for direction in [Direction::Ingress, Direction::Egress] {
            for (index, rule) in policy
                .rules(direction)
                .unwrap_or_default()
                .iter()
                .enumerate()
            {
                others.add_sets(
                    rule,
                    &Name {
                        policy,
                        direction,
                        index,
                    },
                    &mut plan.sets,
                );
            }
        }
    }
    let mut shared = BTreeMap::new();
    for pod in world
        .pods
        .iter()
        .filter(|pod| world.nodes.contains(&pod.node))
    {
        let Some(ip) = pod.ip else { continue };
        plan.known.insert(ip);
        for direction in [Direction::Ingress, Direction::Egress] {
            if let Some(rules) = rules_of(pod, direction, &world.policies, &plan.sets) {
                let rules = shared
                    .entry(rules.clone())
                    .or_insert_with(|| Arc::new(rules));
                plan.rules.insert((direction, ip), Arc::clone(rules));
            }
        }
    }
    plan
}

type ByNamespace<'a> = BTreeMap<&'a str, Vec<&'a PodView>>;

fn by_namespace(pods: &[Arc<PodView>]) -> ByNamespace<'_> {
    let mut all = ByNamespace::new();
    for pod in pods.iter().filter(|pod| pod.ip.is_some()) {
        all.entry(&pod.meta.key.namespace).or_default().push(pod);
    }
    all
}

/// The name of the sets of a rule.
struct Name<'a> {
    policy: &'a PolicyView,
    direction: Direction,
    index: usize,
}

impl Name<'_> {
    fn of(&self, kind: &str) -> String {
        let direction = match self.direction {
            Direction::Ingress => "ingress",
            Direction::Egress => "egress",
        };
        format!("{}-{direction}-{}-{kind}", self.policy.meta.uid, self.index)
    }
}

/// The other ends of the connections that a policy allows.
struct Others<'a> {
    world: &'a World,
    pods: &'a ByNamespace<'a>,
    policy: &'a PolicyView,
}

impl Others<'_> {
    /// Adds the sets of a rule that have elements.
    fn add_sets(&self, rule: &Rule, name: &Name<'_>, sets: &mut BTreeMap<String, Elements>) {
        let pods = self.pods(rule.peers.as_deref());
        if rule.peers.is_some() {
            let addresses: BTreeSet<_> = pods.iter().filter_map(|pod| pod.ip).collect();
            if !addresses.is_empty() {
                sets.insert(name.of("pods"), Elements::Pods(addresses));
            }
            let blocks = blocks(rule.peers.as_deref());
            if !blocks.is_empty() {
                sets.insert(name.of("blocks"), Elements::Blocks(blocks));
            }
        }
        if name.direction == Direction::Egress {
            let ports: BTreeSet<_> = named(&pods, rule.ports.as_deref()).collect();
            if !ports.is_empty() {
                sets.insert(name.of("ports"), Elements::Ports(ports));
            }
        }
    }

    /// Returns the Pods among peers; all if there are no peers.
    fn pods(&self, peers: Option<&[Peer]>) -> Vec<&PodView> {
        let Some(peers) = peers else {
            return self.pods.values().flatten().copied().collect();
        };
        let mut found = Vec::new();
        for peer in peers {
            let Peer::Pods { namespaces, pods } = peer else {
                continue;
            };
            let candidates = self.namespaces(namespaces.as_ref());
            let candidates = candidates.filter_map(|name| self.pods.get(name)).flatten();
            found.extend(candidates.filter(|pod| pods.matches(&pod.labels)));
        }
        found
    }

    /// Returns the names of the namespaces that are selected.
    fn namespaces(
        &self,
        selector: Option<&setpoint_model::Selector>,
    ) -> Box<dyn Iterator<Item = &str> + '_> {
        let Some(selector) = selector.cloned() else {
            return Box::new(std::iter::once(&*self.policy.meta.key.namespace));
        };
        let all = self.world.namespaces.iter();
        let selected = all.filter(move |one| selector.matches(&one.labels));
        Box::new(selected.map(|one| &*one.meta.key.name))
    }
}

fn blocks(peers: Option<&[Peer]>) -> Vec<Range> {
    let ranges = peers
        .unwrap_or_default()
        .iter()
        .flat_map(|peer| match peer {
            Peer::Block(ranges) => ranges.as_slice(),
            Peer::Pods { .. } => &[],
        });
    merged(ranges.copied().collect())
}

/// Returns the ports of Pods that a rule names.
fn named<'a>(
    pods: &'a [&PodView],
    ports: Option<&'a [Port]>,
) -> impl Iterator<Item = (Ipv4Addr, Protocol, u16)> + 'a {
    let names = ports
        .unwrap_or_default()
        .iter()
        .filter_map(|port| match port {
            Port::Named(protocol, name) => Some((*protocol, name)),
            _ => None,
        });
    names.flat_map(move |(protocol, name)| {
        pods.iter().flat_map(move |pod| {
            let numbers = pod.numbers(protocol, name);
            numbers.filter_map(move |number| Some((pod.ip?, protocol, number)))
        })
    })
}

/// Returns the rules of a Pod in one direction; `None` if no policy restricts it.
fn rules_of(
    pod: &PodView,
    direction: Direction,
    policies: &[Arc<PolicyView>],
    sets: &BTreeMap<String, Elements>,
) -> Option<Vec<String>> {
    let selects = |policy: &&Arc<PolicyView>| {
        policy.meta.key.namespace == pod.meta.key.namespace && policy.pods.matches(&pod.labels)
    };
    let mut lines = None;
    for policy in policies.iter().filter(selects) {
        let Some(rules) = policy.rules(direction) else {
            continue;
        };
        let lines: &mut Vec<_> = lines.get_or_insert_default();
        for (index, rule) in rules.iter().enumerate() {
            let name = Name {
                policy,
                direction,
                index,
            };
            lines.extend(lines_of(rule, pod, &name, sets));
        }
    }
    lines
}

/// Returns the rules of nftables for connections of a Pod that a rule allows.
fn lines_of(
    rule: &Rule,
    pod: &PodView,
    name: &Name<'_>,
    sets: &BTreeMap<String, Elements>,
) -> Vec<String> {
    let (side, own) = match name.direction {
        Direction::Ingress => ("saddr", Some(pod)),
        Direction::Egress => ("daddr", None),
    };
    let kinds = ["pods", "blocks"].map(|kind| name.of(kind));
    let peers: Vec<_> = match &rule.peers {
        None => vec![String::new()],
        Some(_) => {
            let sets = kinds.iter().filter(|set| sets.contains_key(*set));
            sets.map(|set| format!("ip {side} @{set} ")).collect()
        }
    };
    let ports = ports(rule.ports.as_deref(), own);
    let pairs = peers
        .iter()
        .flat_map(|peer| ports.iter().map(move |port| (peer, port)));
    let mut lines: Vec<_> = pairs
        .map(|(peer, port)| format!("{peer}{port}return"))
        .collect();
    let named = name.of("ports");
    if sets.contains_key(&named) {
        lines.push(format!(
            "ip daddr . meta l4proto . th dport @{named} return"
        ));
    }
    lines
}

/// Returns the conditions of which one holds for connections to these ports. Names are those of `pod`, if there is one.
fn ports(ports: Option<&[Port]>, pod: Option<&PodView>) -> Vec<String> {
    let Some(ports) = ports else {
        return vec![String::new()];
    };
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
    numbers.retain(|protocol, ports| !whole.contains(protocol) && !ports.is_empty());
    let whole = whole
        .iter()
        .map(|one| format!("meta l4proto {} ", one.name()));
    let some = numbers.into_iter().map(|(protocol, ports)| {
        let ports: Vec<_> = union(ports).into_iter().map(text).collect();
        format!(
            "meta l4proto {} th dport {{ {} }} ",
            protocol.name(),
            ports.join(", ")
        )
    });
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

fn text((first, last): (u16, u16)) -> String {
    match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    }
}
