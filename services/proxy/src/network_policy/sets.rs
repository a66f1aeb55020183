//! The sets that rules name: the Pods and addresses at the other ends of connections. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddrV4;
use std::sync::Arc;

use setpoint_model::{Cidr, Selector, hash};

use super::block::outermost;
use super::{Allowed, Direction, Peer, PodView, PolicyView, Port, World};
use crate::nftables::set::{Key, SetKind};

/// A set that rules name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// The kind of its elements.
    pub kind: SetKind,
    /// The elements.
    pub elements: BTreeSet<Key>,
}

/// Pods with addresses, by their namespaces.
pub type ByNamespace<'a> = BTreeMap<&'a str, Vec<&'a PodView>>;

/// Returns the Pods with addresses.
pub fn by_namespace(pods: &[Arc<PodView>]) -> ByNamespace<'_> {
    let mut all = ByNamespace::new();
    for pod in pods.iter().filter(|pod| pod.ip.is_some()) {
        all.entry(&pod.meta.key.namespace).or_default().push(pod);
    }
    all
}

/// The name of the sets of a rule.
pub struct Name<'a> {
    /// The policy.
    pub policy: &'a PolicyView,
    /// The direction of the rule.
    pub direction: Direction,
    /// Its number among those of the direction.
    pub index: usize,
}

impl Name<'_> {
    /// Returns the name of one of the sets.
    pub fn of(&self, kind: &str) -> String {
        let direction = match self.direction {
            Direction::Ingress => "ingress",
            Direction::Egress => "egress",
        };
        format!("{}-{direction}-{}-{kind}", self.policy.meta.uid, self.index)
    }

    /// Returns the name of the set of these blocks. Another set has another name: no set of ranges is changed, since
    /// how the kernel has a range depends on its neighbours.
    pub fn of_blocks(&self, peers: &[Peer]) -> String {
        let text = format!("{:?}", blocks(peers));
        self.of(&format!(
            "blocks-{}",
            hash::safe(hash::fnv32a(text.as_bytes()))
        ))
    }
}

/// The other ends of the connections that a policy allows.
pub struct Others<'a> {
    /// The Pods and Namespaces.
    pub world: &'a World,
    /// The Pods by their namespaces.
    pub pods: &'a ByNamespace<'a>,
    /// The policy.
    pub policy: &'a PolicyView,
}

impl Others<'_> {
    /// Adds the sets of the rules of one direction.
    pub fn add_sets(&self, direction: Direction, sets: &mut BTreeMap<String, Set>) {
        let policy = self.policy;
        let rules = policy.rules(direction).unwrap_or_default();
        for (index, rule) in rules.iter().enumerate() {
            let name = Name {
                policy,
                direction,
                index,
            };
            self.add_sets_of(rule, &name, sets);
        }
    }

    /// Adds the sets of a rule that have elements.
    fn add_sets_of(&self, rule: &Allowed, name: &Name<'_>, sets: &mut BTreeMap<String, Set>) {
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
