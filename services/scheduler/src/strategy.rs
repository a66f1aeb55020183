//! NodeResourcesFit's strategy: scores nodes by the shares of their resources that are used with the Pod.

#![warn(clippy::arithmetic_side_effects)]

use serde::{Deserialize, Serialize};

use crate::plugin::MAX_NODE_SCORE;
use crate::pod::PodView;
use crate::snapshot::NodeInfo;

/// The scoring of nodes by their resources (upstream: `ScoringStrategy`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strategy {
    /// The preference among nodes.
    pub kind: StrategyType,
    /// The resources that count.
    pub resources: Vec<ResourceWeight>,
}

/// The use of resources that is preferred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StrategyType {
    /// Little is used.
    LeastAllocated,
    /// Much is used.
    MostAllocated,
    /// The used percentage has a high score in this shape.
    RequestedToCapacityRatio(Shape),
}

/// A resource with its weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceWeight {
    name: String,
    weight: i64,
}

/// A point of a shape, with a score from 0 to 10.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ShapePoint {
    /// The used percentage.
    pub utilization: i64,
    /// The score.
    pub score: i64,
}

/// A function from percentages to scores: linear between its points, which are in the order of their percentages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    points: Vec<ShapePoint>,
}

/// The greatest score of a [`ShapePoint`] (upstream: `MaxCustomPriorityScore`).
const MAX_OF_POINT: i64 = 10;

impl Default for Strategy {
    fn default() -> Self {
        Self::of_cpu_and_memory(StrategyType::LeastAllocated)
    }
}

impl ResourceWeight {
    /// Returns a resource with its weight.
    pub fn new(name: &str, weight: i64) -> Self {
        Self {
            name: name.to_owned(),
            weight,
        }
    }

    /// Returns the amount that the node has, and the amount that is used with the Pod; `None` if it does not count
    /// there: the node has nothing of it, or the Pod does not request it, which may always use CPU and memory.
    fn amounts(&self, pod: &PodView, node: &NodeInfo) -> Option<(i64, i64)> {
        let (has, used, wants) = (&node.view.allocatable, &node.nonzero, &pod.nonzero);
        let (has, used, wants) = match self.name.as_str() {
            "cpu" => (has.millicpu, used.millicpu, wants.millicpu),
            "memory" => (has.memory, used.memory, wants.memory),
            name => {
                let wanted = pod
                    .requests
                    .others
                    .get(name)
                    .filter(|wanted| **wanted > 0)?;
                let used = node.used.others.get(name).copied().unwrap_or_default();
                (has.others.get(name).copied()?, used, *wanted)
            }
        };
        (has != 0).then(|| (has, used.saturating_add(wants)))
    }
}

impl Strategy {
    /// Returns a strategy by CPU and memory, with equal weights.
    pub fn of_cpu_and_memory(kind: StrategyType) -> Self {
        let resources = ["cpu", "memory"].map(|name| ResourceWeight::new(name, 1));
        Self {
            kind,
            resources: resources.into(),
        }
    }

    /// Returns the score of a node: the weighted mean of those of its resources.
    pub fn score(&self, pod: &PodView, node: &NodeInfo) -> i64 {
        let (mut sum, mut weights) = (0i64, 0i64);
        for resource in &self.resources {
            let Some((has, used)) = resource.amounts(pod, node) else {
                continue;
            };
            let score = self.kind.score(has, used);
            if score > 0 || !self.kind.is_shaped() {
                sum = sum.saturating_add(score.saturating_mul(resource.weight));
                weights = weights.saturating_add(resource.weight);
            }
        }
        match self.kind.is_shaped() {
            true if weights > 0 => (sum as f64 / weights as f64).round() as i64,
            _ => sum.checked_div(weights).unwrap_or_default(),
        }
    }
}

impl StrategyType {
    const fn is_shaped(&self) -> bool {
        matches!(self, Self::RequestedToCapacityRatio(_))
    }

    fn score(&self, has: i64, used: i64) -> i64 {
        match self {
            Self::LeastAllocated => share(has.saturating_sub(used), has),
            Self::MostAllocated => share(used, has),
            Self::RequestedToCapacityRatio(shape) => shape.at(share(used, has)),
        }
    }
}

/// Returns the percentage of `part` in `whole`, from 0 to 100; 0 of nothing.
fn share(part: i64, whole: i64) -> i64 {
    let part = i128::from(part.max(0)).saturating_mul(i128::from(MAX_NODE_SCORE));
    let share = part.checked_div(i128::from(whole)).unwrap_or_default();
    i64::try_from(share)
        .unwrap_or(MAX_NODE_SCORE)
        .clamp(0, MAX_NODE_SCORE)
}

impl Shape {
    /// Returns the shape of some points, with its scores scaled to those of plugins.
    pub fn new(points: &[ShapePoint]) -> Self {
        let scaled = points.iter().map(|point| ShapePoint {
            score: point.score.saturating_mul(MAX_NODE_SCORE / MAX_OF_POINT),
            ..*point
        });
        Self {
            points: scaled.collect(),
        }
    }

    /// Returns the score of a percentage.
    fn at(&self, percent: i64) -> i64 {
        let after = self
            .points
            .partition_point(|point| point.utilization < percent);
        let (before, after) = (
            after.checked_sub(1).and_then(|n| self.points.get(n)),
            self.points.get(after),
        );
        match (before, after) {
            (Some(from), Some(to)) => {
                let rise = to.score.saturating_sub(from.score);
                let run = to.utilization.saturating_sub(from.utilization);
                let rest = percent.saturating_sub(from.utilization);
                let part = rise.saturating_mul(rest).checked_div(run);
                from.score.saturating_add(part.unwrap_or_default())
            }
            (one, other) => one.or(other).map_or(0, |point| point.score),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks F13.
    #[test]
    fn a_share_is_a_percentage_whatever_the_amounts() {
        assert_eq!(share(100, 200), 50);
        assert_eq!(share(0, 200), 0);
        assert_eq!(share(-150, 200), 0);
        assert_eq!(share(250, 200), 100);
        assert_eq!(share(0, 0), 0);
        assert_eq!(share(7, -5), 0);
        assert_eq!(share(i64::MAX, i64::MAX), 100);
        assert_eq!(share(i64::MAX, 1), 100);
    }

    /// Upstream's `TestBrokenLinearFunction`; its scores are scaled by 10 here.
    #[test]
    fn a_shape_is_linear_between_its_points_and_level_beyond() {
        type Points = &'static [(i64, i64)];
        let cases: [(Points, Points); 3] = [
            (
                &[(10, 1), (90, 9)],
                &[
                    (0, 10),
                    (9, 10),
                    (10, 10),
                    (15, 15),
                    (19, 19),
                    (20, 20),
                    (89, 89),
                    (90, 90),
                    (100, 90),
                ],
            ),
            (
                &[(0, 2), (40, 10), (100, 0)],
                &[(0, 20), (20, 60), (30, 80), (40, 100), (70, 50), (100, 0)],
            ),
            (
                &[(0, 2), (40, 2), (100, 2)],
                &[(0, 20), (30, 20), (100, 20)],
            ),
        ];
        for (points, expected) in cases {
            let points = points
                .iter()
                .map(|&(utilization, score)| ShapePoint { utilization, score });
            let shape = Shape::new(&points.collect::<Vec<_>>());
            for &(percent, score) in expected {
                assert_eq!(shape.at(percent), score, "{shape:?} at {percent}");
            }
        }
        assert_eq!(Shape::new(&[]).at(50), 0);
    }
}
