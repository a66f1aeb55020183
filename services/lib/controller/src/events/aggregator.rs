//! Aggregates Events that repeat each other.
//!
//! As in upstream: equal occurrences are one Event with a count; if many differ in their messages only, the further
//! ones are combined into one Event.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use jiff::Timestamp;
use setpoint_model::Key;

use super::Note;
use super::lru::Lru;
use super::spam_filter::{Source, source};

/// The number of different messages about one object for one reason from which on they are combined.
const MAX_MESSAGES: usize = 10;
/// The time without an occurrence after which different messages are separate Events again.
const SILENCE: Duration = Duration::from_secs(600);
/// A bound on memory; upstream's.
const MAX_SERIES: usize = 4096;
/// The prefix of the message of combined Events.
const COMBINED: &str = "(combined from similar events): ";

/// The Events that were written, by group and message.
pub(super) struct Aggregator {
    groups: Lru<Group, Similar>,
}

/// The key of aggregation: component, object, type and reason.
type Group = (Source, String);

/// The recent notes of one group, which differ in their messages only.
#[derive(Default)]
struct Similar {
    /// The recent messages.
    messages: HashSet<String>,
    last: Timestamp,
    counted: HashMap<Line, Counted>,
}

/// The field path and message of an Event; `None` for the combined one.
type Line = Option<(String, String)>;

/// The count of an Event, and its name once it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) event: Option<Key>,
    pub(super) count: i32,
}

/// Occurrences of one Event, to be written together.
#[derive(Clone, Debug)]
pub(super) struct Repeated {
    pub(super) note: Note,
    pub(super) times: i32,
    pub(super) combined: bool,
}

impl Repeated {
    fn again(&mut self, note: Note) {
        self.times += 1;
        self.note.message = note.message;
        self.note.at = note.at;
    }

    fn line(&self) -> Line {
        (!self.combined).then(|| words(&self.note))
    }
}

impl Default for Aggregator {
    fn default() -> Self {
        Self {
            groups: Lru::new(MAX_SERIES),
        }
    }
}

impl Aggregator {
    /// Merges notes of the same Event, in the order of the first of each.
    pub(super) fn merge(&mut self, notes: impl Iterator<Item = Note>) -> Vec<Repeated> {
        let mut merged: Vec<Repeated> = Vec::new();
        let mut places = HashMap::new();
        for mut note in notes {
            let group = group(&note);
            let combined = self.groups.entry(group.clone()).exceeds_limit(&note);
            let line = (!combined).then(|| words(&note));
            if combined {
                note.message.insert_str(0, COMBINED);
            }
            let place = *places.entry((group, line)).or_insert(merged.len());
            match merged.get_mut(place) {
                Some(repeated) => repeated.again(note),
                None => merged.push(Repeated {
                    note,
                    times: 1,
                    combined,
                }),
            }
        }
        merged
    }

    /// Returns the Event for such notes, and its count so far.
    pub(super) fn get(&mut self, repeated: &Repeated) -> Counted {
        let similar = self.groups.entry(group(&repeated.note));
        let counted = similar.counted.get(&repeated.line()).cloned();
        counted.unwrap_or_default()
    }

    /// Adds occurrences that are not written: the next one that is has their count, too.
    pub(super) fn count(&mut self, repeated: &Repeated) {
        let mut counted = self.get(repeated);
        counted.count = counted.count.saturating_add(repeated.times);
        self.set(repeated, Some(counted));
    }

    /// Sets the Event that was written for such notes; `None` if there is none.
    pub(super) fn set(&mut self, repeated: &Repeated, counted: Option<Counted>) {
        let similar = self.groups.entry(group(&repeated.note));
        if similar.counted.len() > 2 * MAX_MESSAGES {
            similar.counted.clear();
        }
        match counted {
            Some(counted) => _ = similar.counted.insert(repeated.line(), counted),
            None => _ = similar.counted.remove(&repeated.line()),
        }
    }
}

impl Similar {
    fn exceeds_limit(&mut self, note: &Note) -> bool {
        if note.at.duration_since(self.last).unsigned_abs() > SILENCE {
            self.messages.clear();
        }
        self.last = note.at;
        if self.messages.contains(&note.message) {
            return false;
        }
        if self.messages.len() + 1 < MAX_MESSAGES {
            self.messages.insert(note.message.clone());
            return false;
        }
        true
    }
}

fn words(note: &Note) -> (String, String) {
    (note.about.field_path.clone(), note.message.clone())
}

fn group(note: &Note) -> Group {
    (source(note), note.reason.clone())
}

/// Returns a unique key for an Event about the object of the note.
pub(super) fn event_key(note: &Note) -> Key {
    let nanoseconds = Timestamp::now().as_nanosecond();
    let namespace = match note.about.namespace.as_str() {
        "" => "default",
        namespace => namespace,
    };
    Key::new(namespace, format!("{}.{nanoseconds:x}", note.about.name))
}

#[cfg(test)]
mod tests {
    use setpoint_proto::TraceContext;
    use setpoint_proto::core::ObjectReference;

    use super::super::Type;
    use super::*;

    fn note(message: &str) -> Note {
        Note {
            component: "test".into(),
            about: ObjectReference {
                uid: "u".into(),
                ..ObjectReference::default()
            },
            kind: Type::Normal,
            reason: "Created".into(),
            message: message.into(),
            at: Timestamp::now(),
            trace: TraceContext::default(),
        }
    }

    #[test]
    fn equal_notes_are_one_event_with_a_count() {
        let merged = Aggregator::default().merge(["a", "b", "a"].into_iter().map(note));
        let events: Vec<_> = merged.iter().map(|r| (&*r.note.message, r.times)).collect();
        assert_eq!(events, [("a", 2), ("b", 1)]);
    }

    #[test]
    fn equal_messages_about_other_field_paths_are_other_events() {
        let of = |part: &str| {
            let mut note = note("a");
            note.about.field_path = part.into();
            note
        };
        let merged = Aggregator::default().merge(["first", "main", "main"].into_iter().map(of));
        let events: Vec<_> = merged
            .iter()
            .map(|r| (&*r.note.about.field_path, r.times))
            .collect();
        assert_eq!(events, [("first", 1), ("main", 2)]);
    }

    #[test]
    fn components_are_counted_apart() {
        let by = |component: &str| Note {
            component: component.into(),
            ..note("a")
        };
        let merged = Aggregator::default().merge(["one", "other", "one"].into_iter().map(by));
        let counts: Vec<_> = merged.iter().map(|repeated| repeated.times).collect();
        assert_eq!(counts, [2, 1]);
    }

    #[test]
    fn occurrences_that_are_not_written_are_counted_later() {
        let mut series = Aggregator::default();
        let repeated = &series.merge([note("a"), note("a")].into_iter())[0];
        series.count(repeated);
        series.count(repeated);
        let counted = series.get(repeated);
        assert_eq!((counted.event, counted.count), (None, 4));
    }

    #[test]
    fn many_messages_about_one_object_are_combined_into_one_event_with_the_last_message() {
        let mut series = Aggregator::default();
        let merged = series.merge((0..1000).map(|n| note(&format!("pod {n}"))));
        assert_eq!(merged.len(), MAX_MESSAGES);
        let last = merged.last().unwrap();
        assert_eq!((last.times, last.combined), (991, true));
        let message = "(combined from similar events): pod 999";
        assert_eq!(last.note.message, message);
        let known = series.merge(std::iter::once(note("pod 3")));
        assert!(
            !known[0].combined,
            "a message that is known is counted by itself"
        );
    }

    #[test]
    fn messages_are_no_longer_combined_after_ten_minutes_without_one() {
        let mut series = Aggregator::default();
        series.merge((0..1000).map(|n| note(&format!("pod {n}"))));
        let mut late = note("pod 1000");
        late.at += SILENCE + Duration::from_secs(1);
        assert!(!series.merge(std::iter::once(late))[0].combined);
    }

    #[test]
    fn entries_are_bounded_and_those_in_use_are_kept() {
        let mut series = Aggregator::default();
        let about = |n: usize| {
            let mut note = note("a");
            note.about.uid = n.to_string();
            note
        };
        let counted = Counted {
            event: Some(Key::new("default", "e")),
            count: 1,
        };
        let first = &series.merge(std::iter::once(about(0)))[0];
        series.set(first, Some(counted.clone()));
        for n in 1..10 * MAX_SERIES {
            series.merge([about(n), about(0)].into_iter());
        }
        assert!(series.groups.len() <= MAX_SERIES);
        assert_eq!(series.get(first), counted);
    }
}
