//! The score of a node: the weighted sum of the plugins' scores.

#![warn(clippy::arithmetic_side_effects)]

use crate::cluster::Cluster;
use crate::plugin::Plugin;
use crate::plugins::{
    image_locality, inter_pod_affinity, node_affinity, node_resources_balanced_allocation,
    pod_topology_spread, taint_toleration,
};
use crate::profile::Pending;
use crate::snapshot::NodeInfo;

/// Returns the scores of nodes, all of which the Pod fits on, in their order.
pub fn scores(cluster: &Cluster<'_>, pending: Pending<'_>, fitting: &[usize]) -> Vec<i64> {
    let nodes: Vec<_> = fitting.iter().map(|&node| &cluster.nodes[node]).collect();
    let mut sums = vec![0i64; fitting.len()];
    for (&plugin, &weight) in &pending.profile.weights {
        let scores = of_plugin(plugin, cluster, pending, (fitting, &nodes));
        for (sum, score) in sums.iter_mut().zip(scores.into_iter().flatten()) {
            *sum = sum.saturating_add(weight.saturating_mul(score));
        }
    }
    sums
}

/// Returns the scores of nodes by one plugin; `None` if none is preferred.
fn of_plugin(
    plugin: Plugin,
    cluster: &Cluster<'_>,
    pending: Pending<'_>,
    (fitting, nodes): (&[usize], &[&NodeInfo]),
) -> Option<Vec<i64>> {
    let Pending {
        pod,
        wants,
        profile,
    } = pending;
    let each = |score: &dyn Fn(&NodeInfo) -> i64| {
        let scores = nodes.iter().map(|node| score(node));
        Some(scores.collect())
    };
    match plugin {
        Plugin::TaintToleration => Some(taint_toleration::score(&wants.node, nodes)),
        Plugin::NodeAffinity => node_affinity::score(&profile.added, wants, nodes),
        Plugin::NodeResourcesFit => each(&|node| profile.strategy.score(pod, node)),
        Plugin::NodeResourcesBalancedAllocation => {
            each(&|node| node_resources_balanced_allocation::score(pod, node))
        }
        Plugin::PodTopologySpread => pod_topology_spread::score(cluster, pending, fitting),
        Plugin::InterPodAffinity => {
            inter_pod_affinity::score(cluster, pod, profile.hard_pod_affinity, fitting)
        }
        Plugin::ImageLocality => image_locality::score(cluster, wants, fitting),
        _ => None,
    }
}
