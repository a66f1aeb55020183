//! Nodes: the nodes with the Pods of a DaemonSet.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::BTreeMap;

use setpoint_workload::PodView;

use crate::revisions::Revisions;
use crate::{Placement, World};

/// A node and the Pods on it or meant for it.
#[derive(Default)]
pub(crate) struct NodePods<'a> {
    /// The name of the node.
    pub node: &'a str,
    /// Whether the set runs on the node; `None` if the node does not exist.
    pub placement: Option<Placement>,
    /// The Pods, the terminating ones among them, in upstream's order: those with a node first, then the oldest.
    /// Without those that have ended and are being deleted, which no longer run.
    pub pods: Vec<&'a PodView>,
}

/// A DaemonSet's revisions and nodes.
pub(crate) struct Nodes<'a> {
    pub world: &'a World,
    pub revisions: Revisions<'a>,
    /// By name: all nodes, and those that Pods are left of.
    all: Vec<NodePods<'a>>,
}

impl<'a> Nodes<'a> {
    pub fn of(world: &'a World) -> Self {
        Self {
            world,
            revisions: Revisions::of(world),
            all: nodes(world),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &NodePods<'a>> {
        self.all.iter()
    }

    /// Returns the number of nodes that should run the set.
    pub fn desired(&self) -> usize {
        self.iter().filter(|on_node| on_node.should_run()).count()
    }
}

fn nodes(world: &World) -> Vec<NodePods<'_>> {
    let mut nodes: BTreeMap<_, NodePods<'_>> = BTreeMap::new();
    for node in &world.nodes {
        let on_node = nodes.entry(node.name()).or_default();
        on_node.placement = Some(world.set.placement(node));
    }
    for pod in world.claimed() {
        let ended = pod.phase.has_ended() && pod.meta.deleting;
        if let Some(node) = pod.target_node().filter(|_| !ended) {
            nodes.entry(node).or_default().pods.push(pod);
        }
    }
    let nodes = nodes.into_iter().map(|(node, mut on_node)| {
        on_node.node = node;
        on_node
            .pods
            .sort_by_key(|pod| (pod.node.is_none(), pod.meta.created, &pod.meta.key.name));
        on_node
    });
    nodes.collect()
}

impl<'a> NodePods<'a> {
    /// Returns whether the set should run on the node.
    pub fn should_run(&self) -> bool {
        self.placement == Some(Placement::Run)
    }

    /// Returns the Pods that are not being deleted.
    pub fn live(&self) -> impl Iterator<Item = &'a PodView> {
        self.pods.iter().copied().filter(|pod| !pod.meta.deleting)
    }

    /// Returns the only Pod of an old template and the only one of the current template; `None` if there are several of
    /// one kind.
    pub fn old_and_new(&self, revisions: &Revisions<'_>) -> Option<Pair<'a>> {
        let (new, old): (Vec<_>, Vec<_>) = self.live().partition(|pod| revisions.is_updated(pod));
        let pair = || (old.first().copied(), new.first().copied());
        (new.len() <= 1 && old.len() <= 1).then(pair)
    }
}

/// The Pod of an old template and the one of the current template.
pub(crate) type Pair<'a> = (Option<&'a PodView>, Option<&'a PodView>);
