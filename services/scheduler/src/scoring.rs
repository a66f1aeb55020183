//! The score of a node: the weighted sum of the plugins' scores.

#![warn(clippy::arithmetic_side_effects)]

use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::plugins::{
    image_locality, inter_pod_affinity, node_affinity, node_resources_balanced_allocation,
    node_resources_fit, pod_topology_spread, taint_toleration,
};
use crate::pod::{PodView, Wants};

/// The greatest weight (upstream: `MaxWeight` is larger; greater ones only hide the other plugins).
const GREATEST: i64 = 100;

/// The weights of the plugins' scores, by default upstream's. 0 disables a plugin's score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Weights {
    /// Few taints with the effect PreferNoSchedule.
    pub taint_toleration: i64,
    /// Preferred node affinity.
    pub node_affinity: i64,
    /// Free CPU and memory.
    pub node_resources_fit: i64,
    /// Used shares of CPU and memory that are alike.
    pub node_resources_balanced_allocation: i64,
    /// Topology spread constraints with ScheduleAnyway.
    pub pod_topology_spread: i64,
    /// Preferred affinity and anti-affinity between Pods.
    pub inter_pod_affinity: i64,
    /// Images that are on the node.
    pub image_locality: i64,
    /// The weight of the required affinity of Pods on nodes, as if it were preferred.
    pub hard_pod_affinity: i64,
}

impl Default for Weights {
    fn default() -> Self {
        Self {
            taint_toleration: 3,
            node_affinity: 2,
            node_resources_fit: 1,
            node_resources_balanced_allocation: 1,
            pod_topology_spread: 2,
            inter_pod_affinity: 2,
            image_locality: 1,
            hard_pod_affinity: 1,
        }
    }
}

impl Weights {
    /// Checks the weights.
    ///
    /// # Errors
    /// If one is not between 0 and 100.
    pub fn validate(&self) -> Result<(), String> {
        let all = [
            self.taint_toleration,
            self.node_affinity,
            self.node_resources_fit,
            self.node_resources_balanced_allocation,
            self.pod_topology_spread,
            self.inter_pod_affinity,
            self.image_locality,
            self.hard_pod_affinity,
        ];
        match all.iter().all(|weight| (0..=GREATEST).contains(weight)) {
            true => Ok(()),
            false => Err(format!("weights must be between 0 and {GREATEST}")),
        }
    }
}

/// Returns the scores of nodes, all of which the Pod fits on, in their order.
pub fn scores(cluster: &Cluster<'_>, pod: &PodView, wants: &Wants, fitting: &[usize]) -> Vec<i64> {
    let weights = &cluster.snapshot.weights;
    let nodes: Vec<_> = fitting.iter().map(|&node| &cluster.nodes[node]).collect();
    let each = |score: fn(&PodView, &crate::NodeInfo) -> i64| {
        let scores = nodes.iter().map(|node| score(pod, node));
        Some(scores.collect::<Vec<_>>())
    };
    let mut sums = vec![0i64; fitting.len()];
    let mut add = |weight: i64, scores: &dyn Fn() -> Option<Vec<i64>>| {
        let scores = (weight > 0).then(scores).flatten();
        for (sum, score) in sums.iter_mut().zip(scores.into_iter().flatten()) {
            *sum = sum.saturating_add(weight.saturating_mul(score));
        }
    };
    add(weights.taint_toleration, &|| {
        Some(taint_toleration::score(&wants.node, &nodes))
    });
    add(weights.node_affinity, &|| {
        node_affinity::score(wants, &nodes)
    });
    add(weights.node_resources_fit, &|| {
        each(node_resources_fit::score)
    });
    add(weights.node_resources_balanced_allocation, &|| {
        each(node_resources_balanced_allocation::score)
    });
    add(weights.pod_topology_spread, &|| {
        pod_topology_spread::score(cluster, pod, wants, fitting)
    });
    add(weights.inter_pod_affinity, &|| {
        inter_pod_affinity::score(cluster, pod, fitting)
    });
    add(weights.image_locality, &|| {
        image_locality::score(cluster, wants, fitting)
    });
    sums
}
