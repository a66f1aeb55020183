//! Sites: the nodes with the Pods of a DaemonSet.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::BTreeMap;

use setpoint_workload::PodView;

use crate::revisions::Revisions;
use crate::{Verdict, World};

/// A node and the Pods on it or meant for it.
#[derive(Default)]
pub(crate) struct Site<'a> {
    /// The name of the node.
    pub node: &'a str,
    /// Whether the set runs on the node; `None` if the node does not exist.
    pub verdict: Option<Verdict>,
    /// The Pods, the terminating ones among them, in upstream's order: those with a node first, then the oldest. Without
    /// those that have ended and are being deleted, which no longer run.
    pub pods: Vec<&'a PodView>,
}

/// A DaemonSet's revisions and sites.
pub(crate) struct Sites<'a> {
    pub world: &'a World,
    pub revisions: Revisions<'a>,
    /// By name: all nodes, and those that Pods are left of.
    all: Vec<Site<'a>>,
}

impl<'a> Sites<'a> {
    pub fn of(world: &'a World) -> Self {
        Self {
            world,
            revisions: Revisions::of(world),
            all: sites(world),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Site<'a>> {
        self.all.iter()
    }

    /// Returns the number of nodes that should run the set.
    pub fn desired(&self) -> usize {
        self.iter().filter(|site| site.should_run()).count()
    }
}

fn sites(world: &World) -> Vec<Site<'_>> {
    let mut sites: BTreeMap<_, Site<'_>> = BTreeMap::new();
    for node in &world.nodes {
        let site = sites.entry(node.name()).or_default();
        site.verdict = Some(world.set.verdict(node));
    }
    for pod in world.claimed() {
        let ended = pod.phase.has_ended() && pod.meta.deleting;
        if let Some(node) = pod.target_node().filter(|_| !ended) {
            sites.entry(node).or_default().pods.push(pod);
        }
    }
    let sites = sites.into_iter().map(|(node, mut site)| {
        site.node = node;
        site.pods
            .sort_by_key(|pod| (pod.node.is_none(), pod.meta.created, &pod.meta.key.name));
        site
    });
    sites.collect()
}

impl<'a> Site<'a> {
    /// Returns whether the set should run on the node.
    pub fn should_run(&self) -> bool {
        self.verdict == Some(Verdict::Run)
    }

    /// Returns the Pods that are not being deleted.
    pub fn live(&self) -> impl Iterator<Item = &'a PodView> {
        self.pods.iter().copied().filter(|pod| !pod.meta.deleting)
    }

    /// Returns the only Pod of an old template and the only one of the current template; `None` if there are several of one
    /// kind.
    pub fn old_and_new(&self, revisions: &Revisions<'_>) -> Option<Pair<'a>> {
        let (new, old): (Vec<_>, Vec<_>) = self.live().partition(|pod| revisions.is_updated(pod));
        let pair = || (old.first().copied(), new.first().copied());
        (new.len() <= 1 && old.len() <= 1).then(pair)
    }
}

/// The Pod of an old template and the one of the current template.
pub(crate) type Pair<'a> = (Option<&'a PodView>, Option<&'a PodView>);
