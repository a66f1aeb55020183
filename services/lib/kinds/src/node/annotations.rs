//! Validation of two deprecated annotations of Nodes: taints, and controllers whose Pods the Node prefers to avoid.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use setpoint_proto::core::Taint;

use super::validate_taints;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

const TAINTS: &str = "scheduler.alpha.kubernetes.io/taints";
const PREFER_AVOID_PODS: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";

/// Validates both annotations.
pub(super) fn validate(
    annotations: &BTreeMap<String, String>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let given = |key| annotations.get(key).filter(|text| !text.is_empty());
    if let Some(text) = given(TAINTS) {
        match serde_json::from_str::<Vec<Map<String, Value>>>(text) {
            Ok(taints) => {
                let taints: Vec<_> = taints.iter().map(taint).collect();
                validate_taints(&taints, &path.name(TAINTS), errors);
            }
            Err(error) => errors.invalid(path, TAINTS, error),
        }
    }
    if let Some(text) = given(PREFER_AVOID_PODS) {
        match serde_json::from_str::<Map<String, Value>>(text) {
            Ok(avoided) => validate_avoided(&avoided, &path.name(PREFER_AVOID_PODS), errors),
            Err(error) => errors.invalid(&path.field("AvoidPods"), PREFER_AVOID_PODS, error),
        }
    }
}

fn taint(fields: &Map<String, Value>) -> Taint {
    let text = |name| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    Taint {
        key: text("key").into(),
        value: text("value").into(),
        effect: text("effect").into(),
        ..Default::default()
    }
}

/// Validates that each entry names a controller.
fn validate_avoided(avoided: &Map<String, Value>, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let entries = avoided.get("preferAvoidPods").and_then(Value::as_array);
    for (index, entry) in entries.into_iter().flatten().enumerate() {
        let path = path.index(index);
        let path = path.field("PodSignature");
        let owner = &entry["podSignature"]["podController"];
        if !owner.is_object() {
            errors.required(&path, "");
        } else if owner["controller"] != true {
            let path = path.field("PodController");
            let detail = "must point to a controller";
            errors.invalid(&path.field("Controller"), false, detail);
        }
    }
}
