//! HorizontalPodAutoscaler: bounds, metrics, and the rules of scaling.

mod cells;
mod metrics;
mod waits;

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::names;
use setpoint_model::quantity::Amount;
use setpoint_proto::autoscaling_v2::{
    CrossVersionObjectReference, HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec,
    HpaScalingPolicy, HpaScalingRules, MetricSpec, MetricTarget, ResourceMetricSource,
};
use setpoint_proto::setpoint::Wait;

use super::{StoredKind, status};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::waits::Records;

const DEFAULT_CPU_UTILIZATION: i32 = 80;
/// The largest window and period of scaling rules.
const MAX_WINDOW_SECONDS: i32 = 3600;
const MAX_PERIOD_SECONDS: i32 = 1800;

const SELECTIONS: &[&str] = &["Disabled", "Max", "Min"];
const POLICY_TYPES: &[&str] = &["Percent", "Pods"];

impl StoredKind for HorizontalPodAutoscaler {
    status::status_items!(uncounted);

    fn fill_defaults(&mut self) {
        let spec = &mut self.spec;
        spec.min_replicas.get_or_insert(1);
        if spec.metrics.is_empty() {
            spec.metrics.push(cpu_utilization());
        }
        if let Some(behavior) = &mut spec.behavior {
            let pods = policy("Pods", 4);
            let percent = policy("Percent", 100);
            let up = behavior.scale_up.get_or_insert_default();
            up.stabilization_window_seconds.get_or_insert(0);
            fill_rules(up, &[pods, percent.clone()]);
            fill_rules(behavior.scale_down.get_or_insert_default(), &[percent]);
        }
    }

    fn prepare_status_update(&mut self, old: &Self) {
        self.spec.clone_from(&old.spec);
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let (path, spec) = (FieldPath::root("spec"), &self.spec);
        validate_replicas(spec, &path, errors);
        validate_names(
            &spec.scale_target_ref,
            &path.field("scaleTargetRef"),
            errors,
        );
        metrics::validate(&spec.metrics, &path.field("metrics"), errors);
        let Some(behavior) = &spec.behavior else {
            return;
        };
        let path = path.field("behavior");
        for (field, rules) in [
            ("scaleUp", &behavior.scale_up),
            ("scaleDown", &behavior.scale_down),
        ] {
            if let Some(rules) = rules {
                validate_rules(rules, &path.field(field), errors);
            }
        }
    }

    fn validate_create(&self, errors: &mut FieldErrors) {
        validate_target_group(&self.spec.scale_target_ref, errors);
    }

    /// The version of a target that stays is not validated, so that an old one can be kept.
    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        let (new, old) = (&self.spec.scale_target_ref, &old.spec.scale_target_ref);
        if (&new.api_version, &new.kind) != (&old.api_version, &old.kind) {
            validate_target_group(new, errors);
        }
    }

    fn validate_status_update(&self, _old: &Self, errors: &mut FieldErrors) {
        let (path, status) = (FieldPath::root("status"), &self.status);
        errors.non_negative(&path.field("currentReplicas"), status.current_replicas);
        errors.non_negative(&path.field("desiredReplicas"), status.desired_replicas);
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        let spec = &self.spec;
        Some(match column {
            "Reference" => {
                let target = &spec.scale_target_ref;
                format!("{}/{}", target.kind, target.name).into()
            }
            "Targets" => cells::targets(&spec.metrics, &self.status.current_metrics).into(),
            "MinPods" => match spec.min_replicas {
                None => "<unset>".into(),
                Some(count) => count.to_string().into(),
            },
            "MaxPods" => spec.max_replicas.into(),
            "Replicas" => self.status.current_replicas.into(),
            _ => return None,
        })
    }

    fn waits(&self, _records: &Records<'_>) -> Vec<Wait> {
        waits::waits(self)
    }
}

fn cpu_utilization() -> MetricSpec {
    MetricSpec {
        r#type: "Resource".into(),
        resource: Some(ResourceMetricSource {
            name: "cpu".into(),
            target: MetricTarget {
                r#type: "Utilization".into(),
                average_utilization: Some(DEFAULT_CPU_UTILIZATION),
                ..Default::default()
            },
        }),
        ..Default::default()
    }
}

fn policy(of: &str, value: i32) -> HpaScalingPolicy {
    HpaScalingPolicy {
        r#type: of.into(),
        value,
        period_seconds: 15,
    }
}

fn fill_rules(rules: &mut HpaScalingRules, policies: &[HpaScalingPolicy]) {
    let selection = &mut rules.select_policy;
    selection.get_or_insert_with(|| "Max".into());
    if rules.policies.is_empty() {
        rules.policies = policies.to_vec();
    }
}

fn validate_replicas(
    spec: &HorizontalPodAutoscalerSpec,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let (max, at) = (spec.max_replicas, path.field("maxReplicas"));
    let min = spec.min_replicas.unwrap_or(1);
    if min < 1 {
        let detail = "must be greater than or equal to 1";
        errors.invalid(&path.field("minReplicas"), min, detail);
    }
    match max {
        0 => errors.required(&at, "must be set and greater than 0"),
        1.. => {}
        _ => errors.invalid(&at, max, "must be greater than or equal to 1"),
    }
    if max < min {
        errors.invalid(&at, max, "must be greater than or equal to `minReplicas`");
    }
    if min == 0 && !metrics::allow_zero(&spec.metrics) {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.forbidden(&path.field("metrics"), detail);
    }
}

/// Validates the kind and the name of an object.
fn validate_names(
    object: &CrossVersionObjectReference,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let check = names::validate_path_segment;
    errors.check_required(&path.field("kind"), &object.kind, check);
    errors.check_required(&path.field("name"), &object.name, check);
}

/// Validates the version of the target. Of the core group, only ReplicationControllers can be scaled.
fn validate_target_group(target: &CrossVersionObjectReference, errors: &mut FieldErrors) {
    let path = FieldPath::root("spec");
    let path = path.field("scaleTargetRef");
    let is_core = target.kind == "ReplicationController";
    validate_version(&target.api_version, is_core, &path, errors);
}

fn validate_version(
    version: &str,
    may_be_core: bool,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let path = path.field("apiVersion");
    match version.matches('/').count() {
        2.. => {
            let detail = format!("unexpected GroupVersion string: {version}");
            errors.invalid(&path, version, detail);
        }
        0 if !may_be_core => {
            errors.invalid(&path, version, "apiVersion must specify API group");
        }
        1 if !may_be_core && version.starts_with('/') && version.len() > 1 => {
            errors.invalid(&path, version, "apiVersion must specify API group");
        }
        _ => {}
    }
}

fn validate_rules(rules: &HpaScalingRules, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if let Some(window) = rules.stabilization_window_seconds {
        let at = path.field("stabilizationWindowSeconds");
        if window < 0 {
            errors.invalid(&at, window, "must be greater than or equal to zero");
        }
        validate_limit(window, MAX_WINDOW_SECONDS, &at, errors);
    }
    let selection = rules.select_policy.as_deref();
    errors.one_of(&path.field("selectPolicy"), selection, SELECTIONS);
    let policies = path.field("policies");
    if rules.policies.is_empty() {
        errors.required(&policies, "must specify at least one Policy");
    }
    for (index, policy) in rules.policies.iter().enumerate() {
        validate_policy(policy, &policies.index(index), errors);
    }
    if let Some(tolerance) = &rules.tolerance
        && Amount::parse(&tolerance.string).is_ok_and(|amount| amount < Amount::ZERO)
    {
        let detail = "must be greater than or equal to 0";
        errors.invalid(&path.field("tolerance"), tolerance, detail);
    }
}

fn validate_policy(policy: &HpaScalingPolicy, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    errors.one_of(&path.field("type"), policy.r#type.as_str(), POLICY_TYPES);
    let (value, period) = (policy.value, policy.period_seconds);
    for (field, number) in [("value", value), ("periodSeconds", period)] {
        if number <= 0 {
            errors.invalid(&path.field(field), number, "must be greater than zero");
        }
    }
    validate_limit(
        period,
        MAX_PERIOD_SECONDS,
        &path.field("periodSeconds"),
        errors,
    );
}

fn validate_limit(value: i32, limit: i32, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if value > limit {
        let detail = format!("must be less than or equal to {limit}");
        errors.invalid(path, value, detail);
    }
}
