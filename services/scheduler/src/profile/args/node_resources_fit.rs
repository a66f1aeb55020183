//! The arguments of NodeResourcesFit.

use serde::{Deserialize, Serialize};

use super::in_range;
use crate::strategy::{ResourceWeight, Shape, ShapePoint, Strategy, StrategyType};

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    scoring_strategy: ScoringStrategy,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct ScoringStrategy {
    r#type: StrategyName,
    resources: Vec<ResourceSpec>,
    requested_to_capacity_ratio: Option<RatioParam>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
enum StrategyName {
    LeastAllocated,
    MostAllocated,
    RequestedToCapacityRatio,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct ResourceSpec {
    name: String,
    #[serde(default = "one")]
    weight: i64,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RatioParam {
    shape: Vec<ShapePoint>,
}

const fn one() -> i64 {
    1
}

impl Default for ScoringStrategy {
    fn default() -> Self {
        Self {
            r#type: StrategyName::LeastAllocated,
            resources: Vec::new(),
            requested_to_capacity_ratio: None,
        }
    }
}

impl Args {
    /// Returns the strategy.
    pub fn parse(&self, path: &str) -> Result<Strategy, String> {
        self.scoring_strategy
            .parse(&format!("{path}.scoringStrategy"))
    }
}

impl ScoringStrategy {
    fn parse(&self, path: &str) -> Result<Strategy, String> {
        let resources = self.resources.iter().enumerate().map(|(n, resource)| {
            let ResourceSpec { name, weight } = resource;
            match weight {
                1..=100 => Ok(ResourceWeight::new(name, *weight)),
                _ => Err(format!(
                    "{path}.resources[{n}].weight: Invalid value: {weight}: resource weight of {name} not in valid range (0, 100]"
                )),
            }
        });
        let resources = resources.collect::<Result<Vec<_>, _>>()?;
        let kind = self.kind(&format!("{path}.requestedToCapacityRatio"))?;
        Ok(match resources.is_empty() {
            true => Strategy::of_cpu_and_memory(kind),
            false => Strategy { kind, resources },
        })
    }

    fn kind(&self, path: &str) -> Result<StrategyType, String> {
        match (self.r#type, &self.requested_to_capacity_ratio) {
            (StrategyName::LeastAllocated, None) => Ok(StrategyType::LeastAllocated),
            (StrategyName::MostAllocated, None) => Ok(StrategyType::MostAllocated),
            (StrategyName::RequestedToCapacityRatio, Some(ratio)) => {
                check_shape(&ratio.shape, &format!("{path}.shape"))?;
                let shape = Shape::new(&ratio.shape);
                Ok(StrategyType::RequestedToCapacityRatio(shape))
            }
            (StrategyName::RequestedToCapacityRatio, None) => Err(format!(
                "{path}: Required value: must be specified when type is RequestedToCapacityRatio"
            )),
            (_, Some(_)) => Err(format!(
                "{path}: Forbidden: must be nil when type is not RequestedToCapacityRatio"
            )),
        }
    }
}

fn check_shape(shape: &[ShapePoint], path: &str) -> Result<(), String> {
    if shape.is_empty() {
        return Err(format!(
            "{path}: Required value: at least one point must be specified"
        ));
    }
    let sorted = |pair: &[ShapePoint]| pair[0].utilization < pair[1].utilization;
    if let Some(n) = shape.windows(2).position(|pair| !sorted(pair)) {
        let n = n + 1;
        let value = shape[n].utilization;
        return Err(format!(
            "{path}[{n}].utilization: Invalid value: {value}: values must be sorted in increasing order"
        ));
    }
    for (n, point) in shape.iter().enumerate() {
        in_range(point.utilization, &format!("{path}[{n}].utilization"))?;
        let score = point.score;
        if !(0..=10).contains(&score) {
            return Err(format!(
                "{path}[{n}].score: Invalid value: {score}: not in valid range [0, 10]"
            ));
        }
    }
    Ok(())
}
