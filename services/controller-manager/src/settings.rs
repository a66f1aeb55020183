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
    /// As the flag of this name of kube-controller-manager. The controllers: certificatesigningrequest, cronjob,
    /// daemonset, deployment, disruption, endpointslice, garbage-collector, horizontalpodautoscaler, job, namespace,
    /// node-lifecycle, taint-eviction, persistentvolumeclaim, persistentvolume, podgc, replicaset, replication,
    /// resourcequota, serviceaccount, root-ca-certificate-publisher, statefulset.
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use expect_test::expect_file;
    use setpoint_controller::runtime;
    use setpoint_host::Settings as _;
    use setpoint_host::settings::template;

    use super::*;

    fn naming(controllers: &[&str]) -> Choice {
        Choice {
            controllers: controllers.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    #[test]
    fn controllers_are_chosen_by_name_and_all_by_default() {
        let chosen = |choice: Choice| {
            let chosen = choice.chosen().into_iter();
            chosen.map(AnyHosted::name).collect::<Vec<_>>()
        };
        let all: Vec<_> = CONTROLLERS.iter().map(|hosted| hosted.name()).collect();
        assert_eq!(chosen(Choice::default()), all);
        let two = ["deployment-controller", "replicaset-controller"];
        assert_eq!(chosen(naming(&["deployment", "replicaset"])), two);
        assert_eq!(chosen(naming(&["replicaset"])), two[1..]);
        let mut others = all.clone();
        others.retain(|name| *name != two[0]);
        assert_eq!(chosen(naming(&["*", "-deployment"])), others);
        assert_eq!(chosen(naming(&["-deployment", "deployment"])), two[..1]);
    }

    #[test]
    fn an_unknown_controller_is_refused_with_those_that_are_known() {
        assert_eq!(Choice::default().validate(), Ok(()));
        let refused = naming(&["deployment", "sorcery"]).validate();
        let known: Vec<_> = CONTROLLERS.iter().map(|hosted| short(*hosted)).collect();
        let known = known.join(", ");
        let expected =
            format!("there is no controller \"sorcery\"; known are {known}, and * for all");
        assert_eq!(refused, Err(expected));
        assert!(naming(&[]).validate().is_err());
        assert!(naming(&["-deployment"]).validate().is_err());
    }

    #[test]
    fn the_settings_file_has_every_setting_with_its_default_and_names_every_controller() {
        let template = template::<runtime::Settings>("controller-manager", &Controllers);
        let known: Vec<_> = CONTROLLERS.iter().map(|hosted| short(*hosted)).collect();
        let text = template.replace("\n#", "");
        assert!(text.contains(&format!("The controllers: {}.", known.join(", "))));
        expect_file!["../../../deploy/config/controller-manager.toml"].assert_eq(&template);
    }

    #[test]
    fn the_settings_files_of_controllers_have_every_setting_with_its_default() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/config");
        let mut found = Vec::new();
        for hosted in CONTROLLERS {
            let file = folder.join(format!("{}.toml", hosted.name()));
            if file.exists() {
                // The table of the only one with settings of its own.
                expect_file![file].assert_eq(&hosted.template("autoscaling"));
                found.push(short(*hosted));
            }
        }
        let expected = [
            "cronjob",
            "daemonset",
            "deployment",
            "disruption",
            "endpointslice",
            "horizontalpodautoscaler",
            "job",
            "replicaset",
            "statefulset",
        ];
        assert_eq!(found, expected);
    }
}
