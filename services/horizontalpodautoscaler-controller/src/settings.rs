//! The settings of the controller.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_host::DurationText;
use setpoint_host::settings::first_broken;

/// Computation of replicas by the horizontalpodautoscaler-controller; the defaults are upstream's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Autoscaling {
    /// Interval at which each autoscaler reads its metrics; at least 1s.
    #[serde(with = "DurationText")]
    pub sync_period: Duration,
    /// Time for which the largest recommendation stands before replicas are removed.
    #[serde(with = "DurationText")]
    pub downscale_stabilization: Duration,
    /// Deviation of a metric from its target that changes nothing, as a fraction.
    pub tolerance: f64,
    /// Time after a Pod's start within which its CPU usage counts only while it is ready.
    #[serde(with = "DurationText")]
    pub cpu_initialization_period: Duration,
    /// Time after a Pod's start within which a change to unready is part of the start.
    #[serde(with = "DurationText")]
    pub initial_readiness_delay: Duration,
    /// Whether a minimum of 0 replicas is obeyed.
    ///
    /// As upstream's feature gate `HPAScaleToZero`.
    pub scale_to_zero: bool,
}

impl Default for Autoscaling {
    fn default() -> Self {
        Self {
            sync_period: Duration::from_secs(15),
            downscale_stabilization: Duration::from_secs(300),
            tolerance: 0.1,
            cpu_initialization_period: Duration::from_secs(300),
            initial_readiness_delay: Duration::from_secs(30),
            scale_to_zero: false,
        }
    }
}

impl Autoscaling {
    /// The shortest interval: metrics do not change faster, and the history is bounded.
    const SHORTEST: Duration = Duration::from_secs(1);
}

impl setpoint_host::Settings for Autoscaling {
    fn validate(&self) -> Result<(), String> {
        first_broken(&[
            (
                self.sync_period >= Self::SHORTEST,
                "sync_period must be at least 1s",
            ),
            (
                (0.0..=f64::MAX).contains(&self.tolerance),
                "tolerance must not be negative",
            ),
        ])
    }
}

#[cfg(test)]
mod tests {
    use setpoint_host::Settings as _;

    use super::*;

    #[test]
    fn settings_that_cannot_work_are_refused_with_the_reason() {
        let validate = |change: fn(&mut Autoscaling)| {
            let mut settings = Autoscaling::default();
            change(&mut settings);
            settings.validate()
        };
        assert_eq!(validate(|_| {}), Ok(()));
        let boundary = validate(|settings| {
            (settings.sync_period, settings.tolerance) = (Duration::from_secs(1), 0.0);
        });
        assert_eq!(boundary, Ok(()));
        let hectic = validate(|settings| settings.sync_period = Duration::from_millis(999));
        assert_eq!(hectic, Err("sync_period must be at least 1s".to_owned()));
        for tolerance in [-0.1, f64::NAN] {
            let settings = Autoscaling {
                tolerance,
                ..Autoscaling::default()
            };
            let refused = settings.validate();
            assert_eq!(refused, Err("tolerance must not be negative".to_owned()));
        }
    }
}
