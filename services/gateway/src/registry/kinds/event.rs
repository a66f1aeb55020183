//! The rules of an Event: it lies in the namespace of what it tells of, and one of the newer form says who tells it.

use setpoint_model::names;
use setpoint_proto::core::Event;

use crate::registry::path::Path;
use crate::registry::problems::Problems;
use crate::registry::strategy::Rules;

/// Where Events lie that tell of what lives in no namespace.
const DEFAULT: &str = "default";
const SYSTEM: &str = "kube-system";
/// How long most of its words may be.
const WORD_MAX: usize = 128;
const MESSAGE_MAX: usize = 1024;

impl Rules for Event {
    fn validate(&self, problems: &mut Problems) {
        let (about, here) = (&self.involved_object.namespace, &self.metadata.namespace);
        let new = self.event_time.timestamp().is_some();
        let fits = match (about.as_str(), new) {
            ("", false) => here == DEFAULT,
            ("", true) => [DEFAULT, SYSTEM].contains(&here.as_str()),
            (about, false) => about == here,
            (_, true) => true,
        };
        if !fits {
            let path = Path::root("involvedObject");
            let detail = "does not match event.namespace";
            problems.invalid(&path.field("namespace"), about, detail);
        }
        if new {
            validate_new(self, problems);
        }
    }
}

/// Finds what is wrong with an Event that says when it happened to the microsecond, as the newer ones do.
fn validate_new(event: &Event, problems: &mut Problems) {
    let (path, name) = (Path::root("reportingComponent"), &event.reporting_component);
    if name.is_empty() {
        problems.required(&path, "");
    }
    problems.all_invalid(&path, name, names::validate_qualified_name(name));
    for (field, word) in [
        ("reportingInstance", &event.reporting_instance),
        ("action", &event.action),
        ("reason", &event.reason),
    ] {
        if word.is_empty() {
            problems.required(&Path::root(field), "");
        }
        validate_length(word, WORD_MAX, &Path::root(field), problems);
    }
    validate_length(
        &event.message,
        MESSAGE_MAX,
        &Path::root("message"),
        problems,
    );
}

fn validate_length(text: &str, limit: usize, path: &Path<'_>, problems: &mut Problems) {
    if text.len() > limit {
        let detail = format!("can have at most {limit} characters");
        problems.invalid(path, "", detail);
    }
}
