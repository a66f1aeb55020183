//! Classes of claims and Ingresses, one of which an annotation marks as the default.

use setpoint_proto::meta::ObjectMeta;

/// Returns whether one of the annotations marks a class as the default.
pub fn is_default(meta: &ObjectMeta, annotations: &[&str]) -> bool {
    let mut values = annotations.iter().map(|name| meta.annotations.get(*name));
    values.any(|value| value.is_some_and(|value| value == "true"))
}

/// Returns the name of a class as a table cell.
pub(super) fn name_cell(meta: &ObjectMeta, annotations: &[&str]) -> String {
    match is_default(meta, annotations) {
        true => format!("{} (default)", meta.name),
        false => meta.name.clone(),
    }
}
