//! ControllerRevision: its data is an object, and immutable.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::owner::controller_of;
use setpoint_proto::apps::ControllerRevision;

use super::StoredKind;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

impl StoredKind for ControllerRevision {
    fn validate(&self, errors: &mut FieldErrors) {
        errors.non_negative(&FieldPath::root("revision"), self.revision);
    }

    fn validate_create(&self, errors: &mut FieldErrors) {
        let path = FieldPath::root("data");
        match serde_json::from_slice(&self.data.raw) {
            Ok(Value::Object(_)) => {}
            Ok(Value::Null) => errors.required(&path, "data is mandatory"),
            Ok(_) => errors.required(&path, "data must be a valid JSON object"),
            Err(_) if self.data.raw.is_empty() => errors.required(&path, "data is mandatory"),
            Err(error) => {
                let detail = format!("error parsing data: {error}");
                errors.invalid(&path, "<value omitted>", detail);
            }
        }
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        errors.immutable(&FieldPath::root("data"), &self.data, &old.data);
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        (column == "Controller").then(|| {
            let Some(owner) = controller_of(&self.metadata) else {
                return "<none>".into();
            };
            let group = owner.api_version.split_once('/').map(|(group, _)| group);
            let group = group.map(|group| format!(".{group}")).unwrap_or_default();
            let kind = owner.kind.to_lowercase();
            format!("{kind}{group}/{}", owner.name).into()
        })
    }
}
