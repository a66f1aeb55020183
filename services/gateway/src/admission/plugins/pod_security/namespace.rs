//! Writes of Namespaces: the labels must be valid, and their user learns which Pods violate a new level.

use std::collections::BTreeMap;

use setpoint_kinds::Subresource;
use setpoint_kinds::validation::field_errors::FieldErrors;
use setpoint_kinds::validation::field_path::FieldPath;
use setpoint_pod_security::{Configuration, InvalidLabel, Level, LevelVersion, Mode, Policy};
use setpoint_proto::ApiError;

use super::existing_pods;
use crate::admission::{Attributes, Operation, Reader};

/// Checks a Namespace. Returns warnings.
///
/// # Errors
/// `Invalid` if a label is, and was not before.
pub(super) async fn check(
    configuration: &Configuration,
    request: Attributes<'_>,
    reader: &dyn Reader,
) -> Result<Vec<String>, ApiError> {
    let Some(object) = request.object else {
        return Ok(Vec::new());
    };
    if request.subresource != Subresource::None {
        return Ok(Vec::new());
    }
    let (name, labels) = (&request.target.name, &object.meta().labels);
    let of_labels = |labels| Policy::of_labels(labels, configuration.defaults);
    let (policy, invalid) = of_labels(labels);
    let old = request.old.map(|old| of_labels(&old.meta().labels));
    let was_invalid = old.as_ref().is_some_and(|(_, old)| *old == invalid);
    if !was_invalid {
        check_labels(&invalid, &request)?;
    }
    let is_stricter = old.is_none_or(|(old, _)| is_stricter(policy.enforce, old.enforce));
    if !is_stricter {
        return Ok(Vec::new());
    }
    if configuration.exemptions.namespaces.contains(name) {
        return Ok(exempt(name, &policy, configuration, labels));
    }
    match request.operation {
        Operation::Create => Ok(Vec::new()),
        _ => {
            let classes = &configuration.exemptions.runtime_classes;
            Ok(existing_pods::check(name, policy.enforce, classes, reader).await)
        }
    }
}

fn check_labels(invalid: &[InvalidLabel], request: &Attributes<'_>) -> Result<(), ApiError> {
    let mut errors = FieldErrors::default();
    let metadata = FieldPath::root("metadata");
    let path = metadata.field("labels");
    for one in invalid {
        errors.invalid(&path.key(&one.label), &one.value, one.requirement);
    }
    errors.into_result(request.target.served, &request.target.name)
}

/// Returns whether Pods that a level allowed may violate another. A change of the version counts as one.
fn is_stricter(new: LevelVersion, old: LevelVersion) -> bool {
    let is_relaxed = new.version == old.version && new.level <= old.level;
    new.level != Level::Privileged && !is_relaxed
}

/// Returns the warning that the labels of an exempt namespace have no effect, if they would have one.
fn exempt(
    name: &str,
    policy: &Policy,
    configuration: &Configuration,
    labels: &BTreeMap<String, String>,
) -> Vec<String> {
    if policy.is_privileged() || policy.is_equivalent(&configuration.defaults) {
        return Vec::new();
    }
    let ignored = Mode::ALL.into_iter().filter(|mode| {
        let is_privileged = policy.of(*mode).level == Level::Privileged;
        !is_privileged && mode.is_set_in(labels)
    });
    let ignored = ignored.map(|mode| format!("{}={}", mode.name(), policy.of(mode)));
    let ignored: Vec<_> = ignored.collect();
    vec![format!(
        "namespace {name:?} is exempt from Pod Security, and the policy ({}) will be ignored",
        ignored.join(", ")
    )]
}
