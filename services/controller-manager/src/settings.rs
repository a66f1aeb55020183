//! Settings of the controller manager.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use setpoint_controller::queue::Limiter;
use setpoint_controller::{Hosted, client, election, runtime};
use setpoint_host::duration;

use crate::CONTROLLERS;

/// The name that stands for all controllers.
const ALL: &str = "*";

/// Settings of the controller manager; those of each controller are the same.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The controllers to run, by the kind that they reconcile, such as `deployment`; `*` for all.
    pub controllers: Vec<String>,
    /// The connection to the gateway.
    pub gateway: client::Settings,
    /// The election of each controller's leader.
    pub election: election::Settings,
    /// The maximum number of concurrent reconciles of each controller.
    pub workers: usize,
    /// The delays of keys that fail.
    pub limiter: Limiter,
    /// The interval at which all objects are reconciled without a change; zero for never.
    #[serde(with = "duration")]
    pub resync: Duration,
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
            controllers: vec![ALL.to_owned()],
            gateway,
            election,
            workers,
            limiter,
            resync,
        }
    }
}

impl Settings {
    /// Returns the controllers to run.
    pub fn chosen(&self) -> Vec<Hosted> {
        let is_chosen = |hosted: &&Hosted| {
            let mut names = self.controllers.iter();
            names.any(|name| name == ALL || name == short(hosted))
        };
        CONTROLLERS.iter().filter(is_chosen).copied().collect()
    }

    /// Returns the settings of each controller.
    pub fn runtime(self) -> runtime::Settings {
        runtime::Settings {
            gateway: self.gateway,
            election: self.election,
            workers: self.workers,
            limiter: self.limiter,
            resync: self.resync,
        }
    }
}

/// Returns the name of a controller in the settings.
fn short(hosted: &Hosted) -> &'static str {
    hosted.name.trim_end_matches("-controller")
}

impl setpoint_host::Settings for Settings {
    fn describe() -> &'static [(&'static str, &'static str)] {
        const CONTROLLERS: (&str, &str) = (
            "controllers",
            "Controllers to run, for example deployment,replicaset; * for all",
        );
        const ALL: &[(&str, &str)] = {
            let [workers, limiter, resync] = *runtime::Settings::DESCRIBE;
            &[CONTROLLERS, workers, limiter, resync]
        };
        ALL
    }

    fn validate(&self) -> Result<(), String> {
        let known: Vec<_> = CONTROLLERS.iter().map(short).collect();
        let is_known = |name: &String| name == ALL || known.contains(&name.as_str());
        if let Some(unknown) = self.controllers.iter().find(|name| !is_known(name)) {
            let known = known.join(", ");
            return Err(format!(
                "there is no controller {unknown:?}; known are {known}, and * for all"
            ));
        }
        if self.controllers.is_empty() {
            return Err("controllers must name at least one".to_owned());
        }
        let runtime = self.clone().runtime();
        runtime.validate().map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use setpoint_host::Settings as _;

    use super::*;

    fn naming(controllers: &[&str]) -> Settings {
        Settings {
            controllers: controllers.iter().map(|&name| name.to_owned()).collect(),
            ..Settings::default()
        }
    }

    #[test]
    fn controllers_are_chosen_by_name_and_all_by_default() {
        let chosen = |settings: Settings| {
            let chosen = settings.chosen().into_iter();
            chosen.map(|hosted| hosted.name).collect::<Vec<_>>()
        };
        let all = ["deployment-controller", "replicaset-controller"];
        assert_eq!(chosen(Settings::default()), all);
        assert_eq!(chosen(naming(&["deployment", "replicaset"])), all);
        assert_eq!(chosen(naming(&["replicaset"])), all[1..]);
    }

    #[test]
    fn an_unknown_controller_is_refused_with_those_that_are_known() {
        assert_eq!(Settings::default().validate(), Ok(()));
        let refused = naming(&["deployment", "cronjob"]).validate();
        let expected =
            "there is no controller \"cronjob\"; known are deployment, replicaset, and * for all";
        assert_eq!(refused, Err(expected.to_owned()));
        assert!(naming(&[]).validate().is_err());
    }
}
