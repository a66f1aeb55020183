//! Event: it is in the namespace of its object, and one with an `eventTime` names its reporter.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::names;
use setpoint_proto::core::Event;

use super::{StoredKind, Writes, age};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

/// The namespaces of Events about cluster-scoped objects; the second is for Events of the newer form only.
const DEFAULT: &str = "default";
const SYSTEM: &str = "kube-system";
/// The largest lengths, in bytes.
const WORD_MAX: usize = 128;
const MESSAGE_MAX: usize = 1024;

impl StoredKind for Event {
    const CREATES_ON_UPDATE: bool = true;
    const WRITES: Writes = Writes::Reports;

    fn check_name(name: &str) -> Vec<String> {
        names::validate_path_segment(name)
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let (about, namespace) = (&self.involved_object.namespace, &self.metadata.namespace);
        let new = self.event_time.timestamp().is_some();
        let fits = match (about.as_str(), new) {
            ("", false) => namespace == DEFAULT,
            ("", true) => [DEFAULT, SYSTEM].contains(&namespace.as_str()),
            (about, false) => about == namespace,
            (_, true) => true,
        };
        if !fits {
            let path = FieldPath::root("involvedObject");
            let detail = "does not match event.namespace";
            errors.invalid(&path.field("namespace"), about, detail);
        }
        if new {
            validate_new(self, errors);
        }
    }

    fn cell(&self, column: &str, now: Timestamp) -> Option<Value> {
        Some(match column {
            "Last Seen" => age::since(last_seen(self), now).into(),
            "First Seen" => age::since(first_seen(self), now).into(),
            "Object" => {
                let object = &self.involved_object;
                format!("{}/{}", object.kind.to_lowercase(), object.name).into()
            }
            "Subobject" => self.involved_object.field_path.clone().into(),
            "Source" => source(self).into(),
            "Message" => self.message.trim().into(),
            "Count" => count(self).into(),
            _ => return None,
        })
    }
}

/// Validates an Event of the newer form, which has an `eventTime`.
fn validate_new(event: &Event, errors: &mut FieldErrors) {
    let (path, name) = (
        FieldPath::root("reportingComponent"),
        &event.reporting_component,
    );
    errors.not_empty(&path, name);
    errors.check(&path, name, names::validate_qualified_name);
    for (field, word) in [
        ("reportingInstance", &event.reporting_instance),
        ("action", &event.action),
        ("reason", &event.reason),
    ] {
        errors.not_empty(&FieldPath::root(field), word);
        validate_length(word, WORD_MAX, &FieldPath::root(field), errors);
    }
    validate_length(
        &event.message,
        MESSAGE_MAX,
        &FieldPath::root("message"),
        errors,
    );
}

fn validate_length(text: &str, limit: usize, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if text.len() > limit {
        let detail = format!("can have at most {limit} characters");
        errors.invalid(path, "", detail);
    }
}

fn last_seen(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref();
    series
        .and_then(|series| series.last_observed_time.timestamp())
        .or_else(|| event.last_timestamp.timestamp())
        .or_else(|| event.event_time.timestamp())
}

fn first_seen(event: &Event) -> Option<Timestamp> {
    let first = event.first_timestamp.timestamp();
    first.or_else(|| event.event_time.timestamp())
}

fn source(event: &Event) -> String {
    let component = match event.source.component.as_str() {
        "" => event.reporting_component.as_str(),
        component => component,
    };
    let host = match event.source.host.as_str() {
        "" => event.reporting_instance.as_str(),
        host => host,
    };
    match host {
        "" => component.to_owned(),
        host => format!("{component}, {host}"),
    }
}

/// Returns the number of occurrences. An Event of a single occurrence may have a count of 0.
fn count(event: &Event) -> i32 {
    let series = event.series.as_ref().map(|series| series.count);
    series.unwrap_or(event.count).max(1)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    /// Returns whether the namespace of an Event is refused.
    fn is_misplaced(here: &str, about: &str, new: bool) -> bool {
        let mut event = Event::default();
        event.metadata.namespace = here.into();
        event.involved_object.namespace = about.into();
        if new {
            event.event_time = Timestamp::from_second(1_505_828_956).unwrap().into();
        }
        let mut errors = FieldErrors::default();
        event.validate(&mut errors);
        errors
            .to_string()
            .contains("does not match event.namespace")
    }

    #[test]
    fn events_about_cluster_scoped_objects_are_in_default_or_kube_system() {
        assert!(!is_misplaced("default", "", false));
        assert!(!is_misplaced("default", "default", false));
        assert!(is_misplaced("default", "foo", false));
        assert!(is_misplaced("foo", "", false));
        assert!(is_misplaced("foo", "bar", false));
        assert!(is_misplaced(SYSTEM, "", false));
        for here in [DEFAULT, SYSTEM] {
            assert!(!is_misplaced(here, "", true));
            assert!(!is_misplaced(here, "foo", true));
        }
        assert!(is_misplaced("foo", "", true));
    }
}
