//! The rules of an Event: it lies in the namespace of what it tells of.

use setpoint_proto::core::Event;

use crate::registry::path::Path;
use crate::registry::problems::Problems;
use crate::registry::strategy::Rules;

impl Rules for Event {
    fn validate(&self, problems: &mut Problems) {
        let about = self.involved_object.namespace.as_str();
        let here = self.metadata.namespace.as_str();
        // What lives in no namespace is told of in `default`, or where the teller thinks best.
        let fits = about == here || about.is_empty();
        if !fits {
            let path = Path::root("involvedObject");
            problems.invalid(
                &path.field("namespace"),
                about,
                "does not match event.namespace",
            );
        }
        problems.non_negative(&Path::root("count"), self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_lies_beside_what_it_tells_of() {
        let mut event = Event::default();
        event.metadata.namespace = "production".into();
        event.involved_object.namespace = "default".into();
        let mut problems = Problems::default();
        event.validate(&mut problems);
        assert_eq!(
            problems.to_string(),
            r#"involvedObject.namespace: Invalid value: "default": does not match event.namespace"#
        );
    }
}
