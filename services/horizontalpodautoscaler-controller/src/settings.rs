//! The settings of the controller.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use setpoint_controller::queue::Limiter;
use setpoint_controller::{client, election, runtime};
use setpoint_host::duration;

/// The settings of autoscaling; the defaults are upstream's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Autoscaling {
    /// The interval at which each autoscaler reads its metrics.
    #[serde(with = "duration")]
    pub sync_period: Duration,
    /// The window of recommendations that fewer replicas wait for.
    #[serde(with = "duration")]
    pub downscale_stabilization: Duration,
    /// The deviation of a metric from its target that changes nothing, as a fraction.
    pub tolerance: f64,
    /// The time after the start of a Pod within which its CPU usage counts only if it was measured while the Pod was ready.
    #[serde(with = "duration")]
    pub cpu_initialization_period: Duration,
    /// The time after the start of a Pod within which a change to unready is part of its start.
    #[serde(with = "duration")]
    pub initial_readiness_delay: Duration,
    /// Whether a minimum of 0 replicas is obeyed (upstream's feature gate `HPAScaleToZero`).
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

    /// Checks the settings.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn validate(&self) -> Result<(), String> {
        if self.sync_period < Self::SHORTEST {
            return Err("sync_period must be at least 1s".to_owned());
        }
        match (0.0..=f64::MAX).contains(&self.tolerance) {
            true => Ok(()),
            false => Err("tolerance must not be negative".to_owned()),
        }
    }
}

/// The descriptions of [`Autoscaling`] for `--help`, as the table of this name.
#[macro_export]
macro_rules! describe_autoscaling {
    ($table:literal) => {
        [
            (
                concat!($table, ".sync_period"),
                "Interval at which each autoscaler reads its metrics; at least 1s",
            ),
            (
                concat!($table, ".downscale_stabilization"),
                "Time for which the largest recommendation stands before replicas are removed",
            ),
            (
                concat!($table, ".tolerance"),
                "Deviation of a metric from its target that changes nothing, as a fraction",
            ),
            (
                concat!($table, ".cpu_initialization_period"),
                "Time after a Pod's start within which its CPU usage counts only while it is ready",
            ),
            (
                concat!($table, ".initial_readiness_delay"),
                "Time after a Pod's start within which a change to unready is part of the start",
            ),
            (
                concat!($table, ".scale_to_zero"),
                "Whether a minimum of 0 replicas is obeyed",
            ),
        ]
    };
}

/// The settings of the process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The connection to the gateway.
    pub gateway: client::Settings,
    /// The election of the leader.
    pub election: election::Settings,
    /// The maximum number of concurrent reconciles.
    pub workers: usize,
    /// The delays of keys that fail.
    pub limiter: Limiter,
    /// The interval at which all objects are reconciled without a change; zero for never.
    #[serde(with = "duration")]
    pub resync: Duration,
    /// How replicas are computed.
    pub autoscaling: Autoscaling,
}

impl Default for Settings {
    fn default() -> Self {
        let runtime::Settings {
            gateway,
            election,
            workers,
            limiter,
            resync,
        } = runtime::Settings::default();
        Self {
            gateway,
            election,
            workers,
            limiter,
            resync,
            autoscaling: Autoscaling::default(),
        }
    }
}

impl Settings {
    /// Returns the settings of any controller.
    pub fn runtime(&self) -> runtime::Settings {
        runtime::Settings {
            gateway: self.gateway.clone(),
            election: self.election.clone(),
            workers: self.workers,
            limiter: self.limiter,
            resync: self.resync,
        }
    }
}

impl setpoint_host::Settings for Settings {
    fn describe() -> &'static [(&'static str, &'static str)] {
        const ALL: &[(&str, &str)] = {
            let [workers, limiter, resync] = *runtime::Settings::DESCRIBE;
            let [period, stabilization, tolerance, cpu, readiness, zero] =
                crate::describe_autoscaling!("autoscaling");
            &[
                workers,
                limiter,
                resync,
                period,
                stabilization,
                tolerance,
                cpu,
                readiness,
                zero,
            ]
        };
        ALL
    }

    fn validate(&self) -> Result<(), String> {
        let runtime = self.runtime();
        runtime.validate().map_err(|error| error.to_string())?;
        self.autoscaling.validate()
    }
}

#[cfg(test)]
mod tests {
    use setpoint_host::Settings as _;

    use super::*;

    #[test]
    fn settings_that_cannot_work_are_refused_with_the_reason() {
        let validate = |change: fn(&mut Autoscaling)| {
            let mut settings = Settings::default();
            change(&mut settings.autoscaling);
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
            let mut settings = Settings::default();
            settings.autoscaling.tolerance = tolerance;
            let refused = settings.validate();
            assert_eq!(refused, Err("tolerance must not be negative".to_owned()));
        }
        let idle = Settings {
            workers: 0,
            ..Settings::default()
        };
        assert_eq!(
            idle.validate(),
            Err("workers must be at least 1".to_owned())
        );
    }

    #[test]
    fn each_setting_of_autoscaling_is_described() {
        let all = serde_json::to_value(Autoscaling::default()).unwrap();
        let described = Settings::describe().iter();
        let mut described: Vec<_> = described
            .filter_map(|(name, _)| name.strip_prefix("autoscaling."))
            .collect();
        described.sort_unstable();
        let expected: Vec<_> = all.as_object().unwrap().keys().collect();
        assert_eq!(described, expected);
    }
}
