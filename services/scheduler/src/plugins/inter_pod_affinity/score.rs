//! Scores nodes by preferred affinity and anti-affinity: that of the Pod to others, and that of others to the Pod.

use std::collections::HashMap;

use crate::cluster::Cluster;
use crate::group::Group;
use crate::plugin::MAX_NODE_SCORE;
use crate::pod::PodView;

/// The sums of weights by topology key and domain.
#[derive(Default)]
struct Sums<'a>(HashMap<&'a str, Vec<i64>>);

impl<'a> Sums<'a> {
    fn add(
        &mut self,
        cluster: &Cluster<'_>,
        key: &'a str,
        weights: impl Iterator<Item = (usize, i64)>,
    ) {
        let domains = cluster.domains(key);
        for (node, weight) in weights.filter(|(_, weight)| *weight != 0) {
            let Some(domain) = domains.of(node) else {
                continue;
            };
            let sums = self
                .0
                .entry(key)
                .or_insert_with(|| vec![0; domains.count()]);
            if let Some(sum) = sums.get_mut(domain) {
                *sum = sum.saturating_add(weight);
            }
        }
    }
}

/// Returns the scores of nodes; `None` if no term matters. The required affinity of Pods on nodes counts with the
/// weight `hard`.
pub fn score(cluster: &Cluster<'_>, pod: &PodView, hard: i64, nodes: &[usize]) -> Option<Vec<i64>> {
    let mut sums = Sums::default();
    let namespaces = &cluster.snapshot.namespaces;
    for (key, weights) in cluster.terms.preferring(&pod.meta, namespaces) {
        let weights = weights.iter().map(|(node, weight)| (*node, *weight));
        sums.add(cluster, key, weights);
    }
    for (key, pods) in cluster.terms.requiring(&pod.meta, namespaces) {
        let pods = pods.iter();
        let weights = pods.map(|(node, pods)| (*node, pods.saturating_mul(hard)));
        sums.add(cluster, key, weights);
    }
    let own = pod.affinity.as_deref();
    for (term, weight) in own.iter().flat_map(|own| &own.preferred) {
        let pods = cluster.count(&Group::of_term(term));
        let weights = pods.iter().map(|pods| pods.saturating_mul(*weight));
        sums.add(cluster, &term.topology_key, weights.enumerate());
    }
    if sums.0.is_empty() {
        return None;
    }
    Some(scale(cluster, &sums, nodes))
}

/// Scales the sums of nodes from the lowest, which gets 0, to the highest.
fn scale(cluster: &Cluster<'_>, sums: &Sums<'_>, nodes: &[usize]) -> Vec<i64> {
    let mut scores = vec![0i64; nodes.len()];
    for (key, sums) in &sums.0 {
        let domains = cluster.domains(key);
        for (score, node) in scores.iter_mut().zip(nodes) {
            let sum = domains.of(*node).and_then(|domain| sums.get(domain));
            *score = score.saturating_add(sum.copied().unwrap_or_default());
        }
    }
    let least = scores.iter().copied().min().unwrap_or_default();
    let most = scores.iter().copied().max().unwrap_or_default();
    let range = most.saturating_sub(least) as f64;
    let share = |score: i64| match range > 0.0 {
        true => (MAX_NODE_SCORE as f64 * (score.saturating_sub(least) as f64 / range)) as i64,
        false => 0,
    };
    scores.into_iter().map(share).collect()
}
