//! The choice of the controllers to run, and the settings of each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_controller::{AnyHosted, Configured};
use setpoint_host::settings::{Error, Extension, Layers, Merged};

use crate::CONTROLLERS;

/// The name that stands for all controllers.
const ALL: &str = "*";

/// The choice of controllers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Choice {
    /// Controllers to run, for example `deployment,replicaset`; * for all, `*,-deployment` for all but one.
    ///
    /// As the flag of this name of kube-controller-manager. The controllers: token-cleaner, bootstrap-signer,
    /// certificatesigningrequest, cronjob, daemonset, deployment, disruption, endpointslice, garbage-collector,
    /// horizontalpodautoscaler, job, namespace, node-ipam, node-lifecycle, taint-eviction, persistentvolumeclaim,
    /// persistentvolume, podgc, replicaset, replication, resourcequota, service-cidrs, service-lb,
    /// serviceaccount, legacy-service-account-token-cleaner, root-ca-certificate-publisher, statefulset.
    pub controllers: Vec<String>,
}

impl Default for Choice {
    fn default() -> Self {
        Self {
            controllers: vec![ALL.to_owned()],
        }
    }
}

impl Choice {
    /// Returns the controllers to run.
    pub fn chosen(&self) -> Vec<&'static dyn AnyHosted> {
        let is_named = |name: &str| self.controllers.iter().any(|named| named == name);
        let is_chosen = |hosted: &&&dyn AnyHosted| {
            let name = short(**hosted);
            is_named(name) || (is_named(ALL) && !is_named(&format!("-{name}")))
        };
        CONTROLLERS.iter().filter(is_chosen).copied().collect()
    }
}

impl setpoint_host::Settings for Choice {
    fn validate(&self) -> Result<(), String> {
        let known: Vec<_> = CONTROLLERS.iter().map(|hosted| short(*hosted)).collect();
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
        match self.chosen().is_empty() {
            true => Err("controllers must name at least one".to_owned()),
            false => Ok(()),
        }
    }
}

/// Reads the choice of controllers, and a table for each controller with settings of its own.
pub struct Controllers;

impl Extension for Controllers {
    type Settings = Vec<Configured>;

    fn declare(&self, layers: &mut Layers) {
        layers.fields::<Choice>();
        for hosted in CONTROLLERS {
            hosted.declare(&table(*hosted), layers);
        }
    }

    /// Settings of controllers that are not chosen are checked, too.
    fn read(&self, merged: &Merged) -> Result<Vec<Configured>, Error> {
        let chosen = merged.fields::<Choice>()?.chosen();
        let is_chosen = |one: &Configured| chosen.iter().any(|hosted| hosted.name() == one.name);
        let all = CONTROLLERS.iter();
        let all: Result<Vec<_>, _> = all
            .map(|hosted| hosted.configure(&table(*hosted), merged))
            .collect();
        Ok(all?.into_iter().filter(is_chosen).collect())
    }
}

/// Returns the name of a controller in the settings.
fn short(hosted: &dyn AnyHosted) -> &'static str {
    hosted.name().trim_end_matches("-controller")
}

/// Returns the name of the table with the settings of a controller.
fn table(hosted: &dyn AnyHosted) -> String {
    short(hosted).replace('-', "_")
}
