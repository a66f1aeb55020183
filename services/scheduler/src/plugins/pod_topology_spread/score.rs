//! Scores nodes by the constraints with `ScheduleAnyway`, or by the default constraints.

use std::sync::Arc;

use super::{constraints, includes};
use crate::cluster::Cluster;
use crate::plugin::MAX_NODE_SCORE;
use crate::pod::Wants;
use crate::profile::Pending;
use crate::spread::Constraint;
use crate::topology::Domains;

/// A constraint with the number of Pods that a node is scored by.
struct Weighed {
    max_skew: i64,
    domains: Arc<Domains>,
    /// By node for hostnames, otherwise by domain.
    pods: Arc<Vec<i64>>,
    of_hostnames: bool,
    /// Makes Pods of keys with few domains count less (upstream: `topologyNormalizingWeight`).
    weight: f64,
}

impl Weighed {
    fn new(
        (cluster, wants, constraint): (&Cluster<'_>, &Wants, &Constraint),
        (nodes, counts): (&[usize], &dyn Fn(usize) -> bool),
    ) -> Self {
        let domains = cluster.domains(&constraint.topology_key);
        let of_hostnames = constraint.is_of_hostnames();
        let counted = nodes.iter().copied().filter(|node| counts(*node));
        let by_node = cluster.count(&constraint.group);
        let (size, pods) = match of_hostnames {
            true => (counted.count(), by_node),
            false => {
                let includes = |node: usize| {
                    counts(node) && includes(constraint, &wants.node, &cluster.nodes[node].view)
                };
                let pods = by_domain(&domains, &by_node, includes);
                (distinct(&domains, counted), Arc::new(pods))
            }
        };
        Self {
            max_skew: constraint.max_skew,
            domains,
            pods,
            of_hostnames,
            weight: (size as f64 + 2.0).ln(),
        }
    }

    /// Returns the contribution of a node's domain: the more Pods it has, the worse.
    fn of(&self, node: usize) -> f64 {
        let Some(domain) = self.domains.of(node) else {
            return 0.0;
        };
        let index = if self.of_hostnames { node } else { domain };
        let pods = self.pods.get(index).copied().unwrap_or_default();
        pods as f64 * self.weight + (self.max_skew - 1) as f64
    }
}

fn by_domain(domains: &Domains, by_node: &[i64], includes: impl Fn(usize) -> bool) -> Vec<i64> {
    let mut pods = vec![0i64; domains.count()];
    for (node, number) in by_node.iter().enumerate() {
        if let Some(domain) = domains.of(node).filter(|_| *number > 0 && includes(node)) {
            pods[domain] = pods[domain].saturating_add(*number);
        }
    }
    pods
}

/// Counts the domains of nodes; those without the label count as one more.
fn distinct(domains: &Domains, nodes: impl Iterator<Item = usize>) -> usize {
    let mut seen = vec![false; domains.count() + 1];
    nodes.for_each(|node| seen[domains.of(node).unwrap_or(domains.count())] = true);
    seen.into_iter().filter(|seen| *seen).count()
}

/// Returns the scores of nodes; `None` if the Pod has no such constraint.
pub fn score(cluster: &Cluster<'_>, pending: Pending<'_>, nodes: &[usize]) -> Option<Vec<i64>> {
    let (wants, defaults) = (pending.wants, &pending.profile.spread);
    let soft = constraints(cluster, pending, false);
    if soft.is_empty() {
        return None;
    }
    let keys: Vec<_> = soft
        .iter()
        .map(|constraint| cluster.domains(&constraint.topology_key))
        .collect();
    // Nodes without all labels are ignored, except for upstream's defaults: most nodes have no zone.
    let is_system = wants.spread.is_empty() && defaults.is_system;
    let counts = |node: usize| is_system || keys.iter().all(|domains| domains.of(node).is_some());
    let weighed = soft
        .iter()
        .map(|constraint| Weighed::new((cluster, wants, constraint), (nodes, &counts)));
    let weighed: Vec<_> = weighed.collect();
    let raw = nodes.iter().map(|&node| {
        let sum: f64 = weighed.iter().map(|one| one.of(node)).sum();
        counts(node).then_some(sum.round() as i64)
    });
    Some(reverse(&raw.collect::<Vec<_>>()))
}

/// Scales the scores of nodes so that the lowest becomes [`MAX_NODE_SCORE`]; those that are ignored get 0.
fn reverse(raw: &[Option<i64>]) -> Vec<i64> {
    let counted = || raw.iter().flatten().copied();
    let (least, most) = (counted().min().unwrap_or(0), counted().max().unwrap_or(0));
    let scale = |score: &Option<i64>| match (score, most) {
        (None, _) => 0,
        (Some(_), 0) => MAX_NODE_SCORE,
        (Some(score), _) => MAX_NODE_SCORE.saturating_mul(most + least - score) / most,
    };
    raw.iter().map(scale).collect()
}
