//! Settings of the controller manager.

use std::time::Duration;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use setpoint_certificatesigningrequest_controller::{self as certificates, Signing};
use setpoint_controller::queue::Limiter;
use setpoint_controller::{Hosted, Replica, client, election, runtime};
use setpoint_horizontalpodautoscaler_controller::{self as autoscaler, Autoscaling};
use setpoint_host::duration;
use setpoint_node_lifecycle_controller::{self as node_lifecycle, Lifecycle};
use setpoint_podgc_controller::{self as podgc, Collection};
use setpoint_resourcequota_controller::{self as quotas, Counting};
use setpoint_serviceaccount_controller::root_ca::{self, Publishing};

use crate::CONTROLLERS;

/// The name that stands for all controllers.
const ALL: &str = "*";

/// Settings of the controller manager; those of each controller are the same, except for those of its own in a table of its
/// name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The controllers to run, by the kind that they reconcile, such as `deployment`; `*` for all, `-deployment` for all but
    /// this one, as kube-controller-manager's flag of this name.
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
    /// Settings of the certificatesigningrequest-controller.
    pub certificatesigningrequest: Signing,
    /// How the horizontalpodautoscaler-controller computes replicas.
    pub horizontalpodautoscaler: Autoscaling,
    /// Intervals and rates of the node-lifecycle-controller.
    pub node_lifecycle: Lifecycle,
    /// Thresholds of the podgc-controller.
    pub podgc: Collection,
    /// The interval of the resourcequota-controller.
    pub resourcequota: Counting,
    /// The CA bundle of the root-ca-certificate-publisher.
    pub root_ca_certificate_publisher: Publishing,
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
            certificatesigningrequest: Signing::default(),
            horizontalpodautoscaler: Autoscaling::default(),
            node_lifecycle: Lifecycle::default(),
            podgc: Collection::default(),
            resourcequota: Counting::default(),
            root_ca_certificate_publisher: Publishing::default(),
        }
    }
}

impl Settings {
    /// Returns the controllers to run.
    pub fn chosen(&self) -> Vec<Hosted> {
        let is_named = |name: &str| self.controllers.iter().any(|named| named == name);
        let is_chosen = |hosted: &&Hosted| {
            let name = short(hosted);
            is_named(name) || (is_named(ALL) && !is_named(&format!("-{name}")))
        };
        CONTROLLERS.iter().filter(is_chosen).copied().collect()
    }

    /// Runs a controller, with its own settings if it has any.
    pub fn run(
        &self,
        hosted: Hosted,
        replica: Replica,
        runtime: runtime::Settings,
    ) -> BoxFuture<'static, anyhow::Result<()>> {
        if hosted.name == certificates::CONTROLLER.name {
            let settings = self.certificatesigningrequest.clone();
            Box::pin(certificates::run(replica, runtime, settings))
        } else if hosted.name == autoscaler::CONTROLLER.name {
            let settings = self.horizontalpodautoscaler.clone();
            Box::pin(autoscaler::run(replica, runtime, settings))
        } else if hosted.name == node_lifecycle::CONTROLLER.name {
            let settings = self.node_lifecycle.clone();
            Box::pin(node_lifecycle::run(replica, runtime, settings))
        } else if hosted.name == podgc::CONTROLLER.name {
            Box::pin(podgc::run(replica, runtime, self.podgc.clone()))
        } else if hosted.name == quotas::CONTROLLER.name {
            Box::pin(quotas::run(replica, runtime, self.resourcequota.clone()))
        } else if hosted.name == root_ca::CONTROLLER.name {
            let settings = self.root_ca_certificate_publisher.clone();
            Box::pin(root_ca::run(replica, runtime, settings))
        } else {
            (hosted.run)(replica, runtime)
        }
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
            "Controllers to run, for example deployment,replicaset; * for all, *,-deployment for all but one",
        );
        const ALL: &[(&str, &str)] = {
            let [workers, limiter, resync] = *runtime::Settings::DESCRIBE;
            let [certificate, key, duration] =
                certificates::describe_signing!("certificatesigningrequest");
            let [period, stabilization, tolerance, cpu, readiness, zero] =
                autoscaler::describe_autoscaling!("horizontalpodautoscaler");
            let [monitor, grace, startup, rate, secondary, threshold, large] =
                node_lifecycle::describe_lifecycle!("node_lifecycle");
            let [kept, check, quarantine] = podgc::describe_collection!("podgc");
            let [sync] = quotas::describe_counting!("resourcequota");
            let [bundle] = setpoint_serviceaccount_controller::describe_publishing!(
                "root_ca_certificate_publisher"
            );
            &[
                CONTROLLERS,
                workers,
                limiter,
                resync,
                certificate,
                key,
                duration,
                period,
                stabilization,
                tolerance,
                cpu,
                readiness,
                zero,
                monitor,
                grace,
                startup,
                rate,
                secondary,
                threshold,
                large,
                kept,
                check,
                quarantine,
                sync,
                bundle,
            ]
        };
        ALL
    }

    fn validate(&self) -> Result<(), String> {
        let known: Vec<_> = CONTROLLERS.iter().map(short).collect();
        let is_known = |name: &String| {
            let positive = name.strip_prefix('-').unwrap_or(name);
            name == ALL || known.contains(&positive)
        };
        if let Some(unknown) = self.controllers.iter().find(|name| !is_known(name)) {
            let known = known.join(", ");
            return Err(format!(
                "there is no controller {unknown:?}; known are {known}, and * for all"
            ));
        }
        if self.chosen().is_empty() {
            return Err("controllers must name at least one".to_owned());
        }
        let runtime = self.clone().runtime();
        runtime.validate().map_err(|error| error.to_string())?;
        self.certificatesigningrequest.validate()?;
        self.horizontalpodautoscaler.validate()?;
        self.node_lifecycle.validate()?;
        self.podgc.validate()?;
        self.resourcequota.validate()
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
        let all: Vec<_> = CONTROLLERS.iter().map(|hosted| hosted.name).collect();
        assert_eq!(chosen(Settings::default()), all);
        let two = ["deployment-controller", "replicaset-controller"];
        assert_eq!(chosen(naming(&["deployment", "replicaset"])), two);
        assert_eq!(chosen(naming(&["replicaset"])), two[1..]);
        let mut others = all.clone();
        others.retain(|name| *name != two[0]);
        assert_eq!(chosen(naming(&["*", "-deployment"])), others);
        assert_eq!(chosen(naming(&["-deployment", "deployment"])), two[..1]);
    }

    #[test]
    fn every_setting_has_a_description_and_those_of_a_controller_are_checked() {
        assert!(setpoint_host::settings::undescribed::<Settings>().is_empty());
        let mut settings = Settings::default();
        settings.horizontalpodautoscaler.tolerance = -1.0;
        let refused = Err("tolerance must not be negative".to_owned());
        assert_eq!(settings.validate(), refused);
    }

    #[test]
    fn an_unknown_controller_is_refused_with_those_that_are_known() {
        assert_eq!(Settings::default().validate(), Ok(()));
        let refused = naming(&["deployment", "sorcery"]).validate();
        let known: Vec<_> = CONTROLLERS.iter().map(short).collect();
        let known = known.join(", ");
        let expected =
            format!("there is no controller \"sorcery\"; known are {known}, and * for all");
        assert_eq!(refused, Err(expected));
        assert!(naming(&[]).validate().is_err());
        assert!(naming(&["-deployment"]).validate().is_err());
    }
}
