//! Deployment: defaults and validation of the rollout strategy.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::selector::Selector;
use setpoint_proto::apps::{Deployment, DeploymentStrategy, RollingUpdateDeployment};
use setpoint_proto::meta::IntOrString;
use setpoint_proto::setpoint::Wait;

use super::template;
use super::{Paths, Replicas, Role, StoredKind};
use crate::validation::amount::{self, Amount};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::podspec;
use crate::validation::warnings::{Warnings, warn_of_pod_names};
use crate::waits::{Records, Rollout, failures};

impl StoredKind for Deployment {
    const STATUS_RESETS: Paths = &[&["spec"], &["metadata", "labels"]];

    template::workload_items!();

    fn fill_defaults(&mut self) {
        let spec = &mut self.spec;
        spec.replicas.get_or_insert(1);
        spec.revision_history_limit.get_or_insert(10);
        spec.progress_deadline_seconds.get_or_insert(600);
        fill_strategy(&mut spec.strategy);
        podspec::fill_defaults(&mut spec.template.spec);
    }

    /// Annotations may be changed: the controller stores the revision there.
    fn prepare_status_update(&mut self, old: &Self) {
        self.spec.clone_from(&old.spec);
        self.metadata.labels.clone_from(&old.metadata.labels);
    }

    /// Annotations count too, since the controller copies them to ReplicaSets.
    fn intent_changed(&self, old: &Self) -> bool {
        self.spec != old.spec || self.metadata.annotations != old.metadata.annotations
    }

    /// Met if all replicas have the newest template and are ready, and none of an older template is left.
    fn is_met(&self) -> Option<bool> {
        let (wanted, status) = (self.spec.replicas.unwrap_or(1), &self.status);
        let counts = [
            status.replicas,
            status.updated_replicas,
            status.ready_replicas,
        ];
        let observed = status.observed_generation >= self.metadata.generation;
        Some(observed && counts == [wanted; 3])
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let path = FieldPath::root("spec");
        let spec = &self.spec;
        errors.non_negative(&path.field("replicas"), spec.replicas.unwrap_or_default());
        let selector = spec.selector.as_ref();
        template::validate(selector, &spec.template, errors);
        validate_strategy(&spec.strategy, &path.field("strategy"), errors);
        errors.non_negative(&path.field("minReadySeconds"), spec.min_ready_seconds);
        let history = spec.revision_history_limit.unwrap_or_default();
        errors.non_negative(&path.field("revisionHistoryLimit"), history);
        if let Some(deadline) = spec.progress_deadline_seconds {
            let at = path.field("progressDeadlineSeconds");
            errors.non_negative(&at, deadline);
            if deadline <= spec.min_ready_seconds {
                errors.invalid(&at, deadline, "must be greater than minReadySeconds");
            }
        }
    }

    fn validate_status_update(&self, old: &Self, errors: &mut FieldErrors) {
        let (path, status) = (FieldPath::root("status"), &self.status);
        let (ready, available) = (status.ready_replicas, status.available_replicas);
        errors.non_negative(
            &path.field("observedGeneration"),
            status.observed_generation,
        );
        let counts = [
            ("updatedReplicas", status.updated_replicas),
            ("readyReplicas", ready),
            ("availableReplicas", available),
        ];
        template::validate_counts(status.replicas, &counts, &path, errors);
        let unavailable = status.unavailable_replicas;
        errors.non_negative(&path.field("unavailableReplicas"), unavailable);
        let terminating = status.terminating_replicas.unwrap_or_default();
        errors.non_negative(&path.field("terminatingReplicas"), terminating);
        template::validate_available(available, ready, &path, errors);
        let collisions = old.status.collision_count;
        template::validate_collisions(status.collision_count, collisions, &path, errors);
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        let (spec, status) = (&self.spec, &self.status);
        Some(match column {
            "Ready" => {
                let wanted = spec.replicas.unwrap_or_default();
                format!("{}/{wanted}", status.ready_replicas).into()
            }
            "Up-to-date" => status.updated_replicas.into(),
            "Available" => status.available_replicas.into(),
            _ => return template::cell(column, &spec.template, spec.selector.as_ref()),
        })
    }

    fn waits(&self, _records: &Records<'_>) -> Vec<Wait> {
        let (spec, status) = (&self.spec, &self.status);
        let rollout = Rollout {
            observed_generation: status.observed_generation,
            paused: spec.paused,
            reported: failures(&status.conditions),
            wanted: spec.replicas.unwrap_or_default(),
            ready: status.ready_replicas,
        };
        rollout.waits(self.metadata.generation)
    }
}

fn fill_strategy(strategy: &mut DeploymentStrategy) {
    if strategy.r#type.is_empty() {
        strategy.r#type = "RollingUpdate".into();
    }
    if strategy.r#type == "RollingUpdate" {
        let quarter = || IntOrString::string("25%");
        let rolling = strategy.rolling_update.get_or_insert_default();
        rolling.max_unavailable.get_or_insert_with(quarter);
        rolling.max_surge.get_or_insert_with(quarter);
    }
}

fn validate_strategy(
    strategy: &DeploymentStrategy,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("rollingUpdate");
    match (strategy.r#type.as_str(), &strategy.rolling_update) {
        ("Recreate", Some(_)) => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            errors.forbidden(&at, detail);
        }
        ("RollingUpdate", None) => {
            errors.required(&at, "this should be defaulted and never be nil");
        }
        ("RollingUpdate", Some(rolling)) => validate_rolling(rolling, &at, errors),
        ("Recreate", None) => {}
        (other, _) => {
            // Upstream names the whole strategy, not its type.
            errors.unsupported(path, other, &["Recreate", "RollingUpdate"]);
        }
    }
}

fn validate_rolling(
    rolling: &RollingUpdateDeployment,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let unavailable = path.field("maxUnavailable");
    let down = rolling.max_unavailable.as_ref();
    let down = down.map(|value| Amount::validate(value, &unavailable, errors));
    let (surge, up) = (path.field("maxSurge"), rolling.max_surge.as_ref());
    let up = up.map(|value| Amount::validate(value, &surge, errors));
    if [down, up]
        .into_iter()
        .all(|amount| amount.is_none_or(Amount::is_zero))
    {
        let value = rolling.max_unavailable.as_ref();
        errors.invalid(&unavailable, value, "may not be 0 when `maxSurge` is 0");
    }
    if let Some(value) = &rolling.max_unavailable {
        amount::validate_percentage(value, &unavailable, errors);
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::Container;
    use setpoint_proto::meta::LabelSelector;

    use super::*;

    fn deployment() -> Deployment {
        let labels = [("app".to_owned(), "web".to_owned())];
        let mut web = Deployment::default();
        web.metadata.name = "web".into();
        web.spec.selector = Some(LabelSelector {
            match_labels: labels.clone().into(),
            ..Default::default()
        });
        web.spec.template.metadata.labels = labels.into();
        web.spec.template.spec.containers = vec![Container {
            name: "web".into(),
            image: "nginx".into(),
            ..Default::default()
        }];
        web.fill_defaults();
        web
    }

    fn errors_of(change: impl FnOnce(&mut Deployment)) -> String {
        let mut web = deployment();
        change(&mut web);
        let mut errors = FieldErrors::default();
        web.validate(&mut errors);
        errors.to_string()
    }

    #[test]
    fn unset_fields_get_the_defaults_of_kubernetes() {
        let spec = deployment().spec;
        assert_eq!(spec.replicas, Some(1));
        assert_eq!(spec.revision_history_limit, Some(10));
        assert_eq!(spec.progress_deadline_seconds, Some(600));
        let rolling = spec.strategy.rolling_update.unwrap();
        assert_eq!(rolling.max_surge.unwrap().as_str(), Some("25%"));
        assert_eq!(rolling.max_unavailable.unwrap().as_str(), Some("25%"));
        assert_eq!(errors_of(|_| {}), "[]");
    }

    #[test]
    fn the_selector_must_match_the_labels_of_the_template() {
        let message = errors_of(|web| {
            web.spec.template.metadata.labels = [("app".into(), "other".into())].into();
        });
        assert_eq!(
            message,
            "spec.template.metadata.labels: Invalid value: {\"app\":\"other\"}: `selector` does not match template `labels`"
        );
        assert!(
            errors_of(|web| web.spec.selector = None).contains("spec.selector: Required value")
        );
        let empty = errors_of(|web| web.spec.selector = Some(LabelSelector::default()));
        assert!(empty.contains("empty selector is invalid for deployment"));
    }

    #[test]
    fn the_rollout_strategy_must_allow_progress() {
        let message = errors_of(|web| {
            let rolling = web.spec.strategy.rolling_update.get_or_insert_default();
            rolling.max_surge = Some(IntOrString::int(0));
            rolling.max_unavailable = Some(IntOrString::string("0%"));
        });
        assert!(message.contains("may not be 0 when `maxSurge` is 0"));
        let message = errors_of(|web| {
            web.spec
                .strategy
                .rolling_update
                .get_or_insert_default()
                .max_surge = Some(IntOrString::string("a lot"));
        });
        assert!(message.contains("a valid percent string"));
        let message = errors_of(|web| web.spec.strategy.r#type = "Recreate".into());
        assert!(message.contains("may not be specified when strategy `type` is 'Recreate'"));
    }

    #[test]
    fn the_restart_policy_of_the_template_is_always() {
        let message = errors_of(|web| web.spec.template.spec.restart_policy = "Never".into());
        assert_eq!(
            message,
            r#"spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always""#
        );
    }

    #[test]
    fn the_selector_is_immutable() {
        let mut new = deployment();
        new.spec.selector = Some(LabelSelector::default());
        let mut errors = FieldErrors::default();
        new.validate_update(&deployment(), &mut errors);
        assert_eq!(
            errors.to_string(),
            "spec.selector: Invalid value: {}: field is immutable"
        );
    }

    #[test]
    fn negative_replicas_and_short_deadlines_are_invalid() {
        let message = errors_of(|web| web.spec.replicas = Some(-1));
        assert_eq!(
            message,
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0"
        );
        assert!(
            errors_of(|web| web.spec.progress_deadline_seconds = Some(0))
                .contains("must be greater than minReadySeconds")
        );
    }
}
