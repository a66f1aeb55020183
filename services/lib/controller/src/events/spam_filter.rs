//! Limits the Events of a component about an object: something that stays broken is not told forever at full speed.

use tokio::time::Instant;

use super::Note;
use super::lru::Lru;
use crate::queue::Bucket;

/// The number of Events that a component may write about an object at once; upstream's.
const BURST: f64 = 25.0;
/// The rate at which it may write further ones; upstream's: one in five minutes.
const PER_SECOND: f64 = 1.0 / 300.0;
/// A bound on memory; upstream's.
const MAX_SOURCES: usize = 4096;

/// The writes that each component has left about each object.
pub(super) struct SpamFilter {
    left: Lru<Source, Allowance>,
}

/// A component, with the object and the type of its Events.
pub(super) type Source = (String, String, &'static str);

struct Allowance(Bucket);

impl Default for Allowance {
    fn default() -> Self {
        Self(Bucket::new(PER_SECOND, BURST))
    }
}

impl Default for SpamFilter {
    fn default() -> Self {
        Self {
            left: Lru::new(MAX_SOURCES),
        }
    }
}

impl SpamFilter {
    /// Takes one of the writes that are left for the source of a note. Returns whether there was one.
    pub(super) fn admits(&mut self, note: &Note, now: Instant) -> bool {
        self.left.entry(source(note)).0.take(now)
    }
}

/// Returns the source of a note. An object without a uid is known by its name.
pub(super) fn source(note: &Note) -> Source {
    let about = &note.about;
    let object = match about.uid.as_str() {
        "" => format!("{}/{}/{}", about.kind, about.namespace, about.name),
        uid => format!("{}/{uid}", about.kind),
    };
    (note.component.to_string(), object, note.kind.name())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;
    use setpoint_proto::TraceContext;
    use setpoint_proto::core::ObjectReference;

    use super::super::Type;
    use super::*;

    fn note(component: &str, name: &str, kind: Type) -> Note {
        Note {
            component: component.into(),
            about: ObjectReference {
                name: name.into(),
                ..ObjectReference::default()
            },
            kind,
            reason: "Failed".into(),
            message: "no luck".into(),
            at: Timestamp::now(),
            trace: TraceContext::default(),
        }
    }

    #[test]
    fn a_source_has_a_burst_and_then_one_event_in_five_minutes() {
        let mut filter = SpamFilter::default();
        let (begin, note) = (Instant::now(), note("kubelet", "web", Type::Warning));
        let admitted = (0..100).filter(|_| filter.admits(&note, begin)).count();
        assert_eq!(admitted, 25);
        let nearly = begin + Duration::from_secs(299);
        assert!(!filter.admits(&note, nearly));
        let later = begin + Duration::from_secs(301);
        assert_eq!(
            [filter.admits(&note, later), filter.admits(&note, later)],
            [true, false]
        );
    }

    #[test]
    fn components_objects_and_types_are_limited_apart() {
        let mut filter = SpamFilter::default();
        let now = Instant::now();
        let first = note("kubelet", "web", Type::Warning);
        while filter.admits(&first, now) {}
        for other in [
            note("scheduler", "web", Type::Warning),
            note("kubelet", "db", Type::Warning),
            note("kubelet", "web", Type::Normal),
        ] {
            assert!(filter.admits(&other, now), "{other:?}");
        }
    }
}
