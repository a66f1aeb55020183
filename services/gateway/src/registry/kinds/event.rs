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
    fn check_name(name: &str) -> Vec<String> {
        names::validate_path_segment(name)
    }

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

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    /// Is an Event found in the wrong namespace?
    fn is_misplaced(here: &str, about: &str, new: bool) -> bool {
        let mut event = Event::default();
        event.metadata.namespace = here.into();
        event.involved_object.namespace = about.into();
        if new {
            event.event_time = Timestamp::from_second(1_505_828_956).unwrap().into();
        }
        let mut problems = Problems::default();
        event.validate(&mut problems);
        problems
            .to_string()
            .contains("does not match event.namespace")
    }

    #[test]
    fn what_lives_in_no_namespace_is_told_of_in_default_or_kube_system() {
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
