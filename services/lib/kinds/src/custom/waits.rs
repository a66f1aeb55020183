//! The state of a custom object, as far as its status follows the conventions for status fields. Pure.

use serde_json::Value;
use setpoint_codec::{CustomObject, Object as _};
use setpoint_proto::setpoint::Wait;

use crate::Subresource;
use crate::waits::{not_observed, wait};

/// The conditions that report that an object is not as its spec wants, and their statuses that do (kstatus, and the API
/// conventions).
const UNMET: [(&str, &[&str]); 4] = [
    ("Stalled", &["True"]),
    ("Reconciling", &["True"]),
    ("Ready", &["False", "Unknown"]),
    ("Available", &["False", "Unknown"]),
];

/// Returns what an object waits for: its controller, and what its conditions report. They report nothing about a
/// deletion.
pub(super) fn waits(object: &CustomObject) -> Vec<Wait> {
    if object.meta().deletion_timestamp.is_some() {
        return Vec::new();
    }
    let generation = object.meta().generation;
    let Some(status) = object.content.get("status") else {
        let has_status = object.kind().has_subresource(Subresource::Status.name());
        let message = "no controller has written a status yet";
        return Vec::from_iter(has_status.then(|| wait("NoStatus", message)));
    };
    let observed = status["observedGeneration"].as_i64();
    let behind = observed.filter(|observed| *observed < generation);
    let behind = behind.map(|observed| not_observed(generation, observed));
    let unmet = UNMET.iter().filter_map(|(kind, statuses)| {
        let mut conditions = status["conditions"].as_array()?.iter();
        let condition = conditions.find(|condition| condition["type"] == *kind)?;
        statuses
            .contains(&text(condition, "status"))
            .then(|| reported(kind, condition))
    });
    behind.into_iter().chain(unmet).collect()
}

fn reported(kind: &str, condition: &Value) -> Wait {
    let reason = match text(condition, "reason") {
        "" => kind,
        reason => reason,
    };
    let message = match text(condition, "message") {
        "" => format!("the condition {kind} is {}", text(condition, "status")),
        message => message.to_owned(),
    };
    wait(reason, message)
}

fn text<'a>(condition: &'a Value, field: &str) -> &'a str {
    condition[field].as_str().unwrap_or_default()
}
