//! Plans the rules of the Pods of this machine. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use setpoint_model::{Cidr, Selector, hash};

use super::block::outermost;
use super::{Allowed, Direction, NamespaceView, Peer, PodView, PolicyView, Port};
use crate::Protocol;
use crate::nftables::base::FRONT;
use crate::nftables::rule::{Field, Rule, Statement, Verdict};
use crate::nftables::set::{Key, SetKind};

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

/// A set that rules name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// What its elements are.
    pub kind: SetKind,
    /// The elements.
    pub elements: BTreeSet<Key>,
}

/// The table of a machine. Without a policy it is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The addresses of the Pods of this machine.
    pub ranges: BTreeSet<Cidr>,
    /// Those among them that Pods have. All others have no connections.
    pub known: BTreeSet<Ipv4Addr>,
    /// What Pods that are restricted may do: rules that return for connections that are allowed.
    pub rules: BTreeMap<(Direction, Ipv4Addr), Arc<Vec<Rule>>>,
    /// The sets that rules name.
    pub sets: BTreeMap<String, Set>,
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

    /// Returns the name of the set of these blocks. Another set has another name: no set of ranges is changed, since
    /// how the kernel has a range depends on its neighbours.
    fn of_blocks(&self, peers: &[Peer]) -> String {
        let text = format!("{:?}", blocks(peers));
        self.of(&format!(
            "blocks-{}",
            hash::safe(hash::fnv32a(text.as_bytes()))
        ))
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
    fn add_sets(&self, rule: &Allowed, name: &Name<'_>, sets: &mut BTreeMap<String, Set>) {
        let mut add = |name, kind, elements: BTreeSet<_>| {
            if !elements.is_empty() {
                sets.insert(name, Set { kind, elements });
            }
        };
        let pods = self.pods(rule.peers.as_deref());
        if let Some(peers) = &rule.peers {
            let addresses = pods.iter().filter_map(|pod| pod.ip);
            let addresses = addresses.map(Key::Address).collect();
            add(name.of("pods"), SetKind::Addresses, addresses);
            let blocks = blocks(peers).into_iter().map(Key::Range).collect();
            add(name.of_blocks(peers), SetKind::Ranges, blocks);
        }
        if name.direction == Direction::Egress {
            let ports = named(&pods, rule.ports.as_deref()).collect();
            add(name.of("ports"), SetKind::Fronts, ports);
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
    fn namespaces(&self, selector: Option<&Selector>) -> Box<dyn Iterator<Item = &str> + '_> {
        let Some(selector) = selector.cloned() else {
            return Box::new(std::iter::once(&*self.policy.meta.key.namespace));
        };
        let all = self.world.namespaces.iter();
        let selected = all.filter(move |one| selector.matches(&one.labels));
        Box::new(selected.map(|one| &*one.meta.key.name))
    }
}

fn blocks(peers: &[Peer]) -> Vec<Cidr> {
    let ranges = peers.iter().flat_map(|peer| match peer {
        Peer::Block(ranges) => ranges.as_slice(),
        Peer::Pods { .. } => &[],
    });
    outermost(ranges.copied().collect())
}

/// Returns the ports of Pods that a rule names.
fn named<'a>(pods: &'a [&PodView], ports: Option<&'a [Port]>) -> impl Iterator<Item = Key> + 'a {
    let ports = ports.unwrap_or_default().iter();
    let names = ports.filter_map(|port| match port {
        Port::Named(protocol, name) => Some((*protocol, name)),
        _ => None,
    });
    names.flat_map(move |(protocol, name)| {
        pods.iter().flat_map(move |pod| {
            let numbers = pod.numbers(protocol, name);
            let at = |number| Some(SocketAddrV4::new(pod.ip?, number));
            numbers.filter_map(move |number| Some(Key::Front(at(number)?, protocol)))
        })
    })
}

/// Returns the rules of a Pod in one direction; `None` if no policy restricts it.
fn rules_of(
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
