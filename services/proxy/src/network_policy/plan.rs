//! Plans the table of a machine. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

use setpoint_model::Cidr;

use super::rules::rules_of;
use super::sets::{Others, by_namespace};
use super::{DIRECTIONS, Direction, NamespaceView, PodView, PolicyView, Set};
use crate::nftables::rule::Rule;

/// The objects that the plan depends on.
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

/// The table of a machine. Without a policy it is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The addresses of the Pods of this machine.
    pub ranges: BTreeSet<Cidr>,
    /// Those among them that Pods have. All others have no connections.
    pub known: BTreeSet<Ipv4Addr>,
    /// The rules of Pods that are restricted. They return for connections that are allowed.
    pub rules: BTreeMap<(Direction, Ipv4Addr), Arc<Vec<Rule>>>,
    /// The sets that rules name.
    pub sets: BTreeMap<String, Set>,
}

/// Plans the table of a machine.
pub fn plan(world: &World) -> Plan {
    if world.policies.is_empty() {
        return Plan::default();
    }
    let sets = sets(world);
    let nodes = &world.nodes;
    let ours = world.pods.iter().filter(|pod| nodes.contains(&pod.node));
    let ours: Vec<_> = ours.filter_map(|pod| Some((pod.ip?, pod))).collect();
    let (mut rules, mut shared) = (BTreeMap::new(), BTreeMap::new());
    for (ip, pod) in &ours {
        for direction in DIRECTIONS {
            if let Some(found) = rules_of(pod, direction, &world.policies, &sets) {
                let found = shared
                    .entry(found.clone())
                    .or_insert_with(|| Arc::new(found));
                rules.insert((direction, *ip), Arc::clone(found));
            }
        }
    }
    Plan {
        ranges: world.ranges.clone(),
        known: ours.iter().map(|(ip, _)| *ip).collect(),
        rules,
        sets,
    }
}

/// Returns the sets of the rules of all policies.
fn sets(world: &World) -> BTreeMap<String, Set> {
    let (mut sets, pods) = (BTreeMap::new(), by_namespace(&world.pods));
    for policy in &world.policies {
        let others = Others {
            world,
            pods: &pods,
            policy,
        };
        for direction in DIRECTIONS {
            others.add_sets(direction, &mut sets);
        }
    }
    sets
}
