//! ImageLocality: nodes that have large images of a Pod are preferred.

#![warn(clippy::arithmetic_side_effects)]

use crate::cluster::Cluster;
use crate::plugin::MAX_NODE_SCORE;
use crate::pod::Wants;

const MIB: i64 = 1 << 20;
/// The sizes between which scores grow: the second one is for each container.
const SMALLEST: i64 = 23 * MIB;
const LARGEST: i64 = 1000 * MIB;

/// Returns the scores of nodes; `None` if none has an image of the Pod. The size of an image counts in proportion to
/// the share of nodes that have it, so that Pods do not gather on a few of them.
pub fn score(cluster: &Cluster<'_>, wants: &Wants, nodes: &[usize]) -> Option<Vec<i64>> {
    let images = wants.images.iter();
    let images = images.filter_map(|image| cluster.image(image));
    let images: Vec<_> = images.collect();
    if images.is_empty() {
        return None;
    }
    let sum = |&node: &usize| {
        let sizes = images.iter().filter_map(|sizes| sizes.get(node));
        sizes.fold(0i64, |sum, size| sum.saturating_add(*size))
    };
    let score = |node| scale(sum(node), wants.containers);
    Some(nodes.iter().map(score).collect())
}

fn scale(sum: i64, containers: usize) -> i64 {
    let containers = i64::try_from(containers.max(1)).unwrap_or(i64::MAX);
    let largest = LARGEST.saturating_mul(containers);
    let size = sum.clamp(SMALLEST, largest).saturating_sub(SMALLEST);
    let share = MAX_NODE_SCORE.saturating_mul(size);
    share
        .checked_div(largest.saturating_sub(SMALLEST))
        .unwrap_or_default()
}
