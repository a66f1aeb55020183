//! The scheduler's settings.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use setpoint_controller::queue::Limiter;
use setpoint_controller::{client, election, runtime};

use crate::scoring::Weights;

/// Settings of the scheduler.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The connection to the gateway.
    pub gateway: client::Settings,
    /// The election of the leader.
    pub election: election::Settings,
    /// The `spec.schedulerName` of the Pods to schedule.
    pub scheduler_name: String,
    /// The maximum number of Pods of a scheduling cycle.
    pub batch: usize,
    /// The maximum number of concurrent bindings.
    pub concurrency: usize,
    /// The weights of scores.
    pub weights: Weights,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            gateway: client::Settings::default(),
            election: election::Settings::default(),
            scheduler_name: "default-scheduler".to_owned(),
            batch: 256,
            concurrency: 32,
            weights: Weights::default(),
        }
    }
}

impl Settings {
    /// Returns the settings of the controller that schedules Pods.
    pub fn controller(self) -> runtime::Settings {
        runtime::Settings {
            gateway: self.gateway,
            election: self.election,
            workers: self.concurrency,
            // A Pod whose write failed is delayed by at most 10 s, as in upstream.
            limiter: Limiter::FastSlow,
            resync: Duration::ZERO,
        }
    }
}

impl setpoint_host::Settings for Settings {
    fn describe() -> &'static [(&'static str, &'static str)] {
        &[
            (
                "scheduler_name",
                "Name of the scheduler, as in spec.schedulerName of its Pods",
            ),
            ("batch", "Maximum number of Pods of a scheduling cycle"),
            ("concurrency", "Maximum number of concurrent bindings"),
            (
                "weights.taint_toleration",
                "Weight of few untolerated PreferNoSchedule taints; 0 to 100",
            ),
            (
                "weights.node_affinity",
                "Weight of preferred node affinity; 0 to 100",
            ),
            (
                "weights.node_resources_fit",
                "Weight of free CPU and memory; 0 to 100",
            ),
            (
                "weights.node_resources_balanced_allocation",
                "Weight of CPU and memory used in equal shares; 0 to 100",
            ),
            (
                "weights.pod_topology_spread",
                "Weight of even spreading over nodes and zones; 0 to 100",
            ),
            (
                "weights.inter_pod_affinity",
                "Weight of preferred affinity between Pods; 0 to 100",
            ),
            (
                "weights.image_locality",
                "Weight of images that the node already has; 0 to 100",
            ),
            (
                "weights.hard_pod_affinity",
                "Weight of others' required affinity as a preference; 0 to 100",
            ),
        ]
    }

    fn validate(&self) -> Result<(), String> {
        if self.batch == 0 || self.concurrency == 0 {
            return Err("batch and concurrency must be at least 1".to_owned());
        }
        self.weights.validate()?;
        self.gateway.validate().map_err(|error| error.to_string())?;
        self.election.validate().map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use setpoint_host::Settings as _;

    use super::*;

    #[test]
    fn every_setting_has_a_description() {
        assert!(setpoint_host::settings::undescribed::<Settings>().is_empty());
    }

    #[test]
    fn weights_are_between_0_and_100() {
        let with = |weight| Settings {
            weights: Weights {
                image_locality: weight,
                ..Weights::default()
            },
            ..Settings::default()
        };
        assert_eq!(
            [0, 100].map(|weight| with(weight).validate()),
            [Ok(()), Ok(())]
        );
        for weight in [-1, 101] {
            let error = with(weight).validate().unwrap_err();
            assert_eq!(error, "weights must be between 0 and 100");
        }
    }
}
