//! The arguments of PodTopologySpread.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use setpoint_proto::core::TopologySpreadConstraint;

use super::super::SpreadDefaults;

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    default_constraints: Vec<TopologySpreadConstraint>,
    defaulting_type: DefaultingType,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
enum DefaultingType {
    #[default]
    System,
    List,
}

impl Args {
    /// Returns the default constraints.
    pub fn parse(&self, path: &str) -> Result<SpreadDefaults, String> {
        let constraints = &self.default_constraints;
        if self.defaulting_type == DefaultingType::System {
            return match constraints.is_empty() {
                true => Ok(SpreadDefaults::default()),
                false => Err(format!(
                    "{path}.defaultingType: Invalid value: \"System\": when .defaultConstraints are not empty"
                )),
            };
        }
        let mut seen = BTreeSet::new();
        for (n, constraint) in constraints.iter().enumerate() {
            let path = format!("{path}.defaultConstraints[{n}]");
            check_constraint(constraint, &path)?;
            let (key, action) = (&constraint.topology_key, &constraint.when_unsatisfiable);
            if !seen.insert((key, action)) {
                return Err(format!("{path}: Duplicate value: \"{{{key}, {action}}}\""));
            }
        }
        Ok(SpreadDefaults {
            constraints: constraints.clone(),
            is_system: false,
        })
    }
}

fn check_constraint(constraint: &TopologySpreadConstraint, path: &str) -> Result<(), String> {
    let skew = constraint.max_skew;
    if skew <= 0 {
        return Err(format!(
            "{path}.maxSkew: Invalid value: {skew}: not in valid range (0, inf)"
        ));
    }
    if constraint.topology_key.is_empty() {
        return Err(format!(
            "{path}.topologyKey: Required value: can not be empty"
        ));
    }
    match constraint.when_unsatisfiable.as_str() {
        "DoNotSchedule" | "ScheduleAnyway" => {}
        "" => {
            return Err(format!(
                "{path}.whenUnsatisfiable: Required value: can not be empty"
            ));
        }
        other => {
            return Err(format!(
                "{path}.whenUnsatisfiable: Unsupported value: {other:?}: supported values: \"DoNotSchedule\", \"ScheduleAnyway\""
            ));
        }
    }
    match constraint.label_selector {
        None => Ok(()),
        Some(_) => Err(format!(
            "{path}.labelSelector: Forbidden: constraint must not define a selector, as they deduced for each pod"
        )),
    }
}
