//! Which notes are repetitions of each other, and which Event counts them.

use std::collections::HashMap;

use jiff::Timestamp;
use setpoint_model::Key;

use super::note::{Note, Type};

/// So many different messages about one object for one reason are told apart; the rest is one Event.
const MAX_MESSAGES: usize = 10;
/// A bound on memory. Beyond it all is forgotten: repetitions then begin a new Event, which is harmless.
const MAX_SERIES: usize = 1024;

/// Events that have been written, by what they tell.
#[derive(Default)]
pub(super) struct Known {
    series: HashMap<Series, HashMap<String, Option<Counted>>>,
}

/// Whom it is about, how grave it is, and why it happened.
type Series = (String, Type, String);

/// An Event that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) event: Key,
    pub(super) count: i32,
}

/// A note, or several that say the same, on the way to one Event.
#[derive(Clone, Debug)]
pub(super) struct Repeated {
    pub(super) note: Note,
    pub(super) times: i32,
}

impl Repeated {
    const fn again(&mut self, at: Timestamp) {
        self.times += 1;
        self.note.at = at;
    }
}

impl Known {
    /// Merges what says the same, in the order of the first of each; messages that are too many say the same.
    pub(super) fn merge(&mut self, notes: impl Iterator<Item = Note>) -> Vec<Repeated> {
        let mut merged: Vec<Repeated> = Vec::new();
        let mut places = HashMap::new();
        for mut note in notes {
            self.admit(&mut note);
            let place = *places
                .entry((series(&note), note.message.clone()))
                .or_insert(merged.len());
            match merged.get_mut(place) {
                Some(repeated) => repeated.again(note.at),
                None => merged.push(Repeated { note, times: 1 }),
            }
        }
        merged
    }

    /// Reserves the message a place in its series, or replaces it by the one that stands for all the rest.
    fn admit(&mut self, note: &mut Note) {
        if self.series.len() >= MAX_SERIES {
            self.series.clear();
        }
        let messages = self.series.entry(series(note)).or_default();
        if messages.len() >= MAX_MESSAGES && !messages.contains_key(&note.message) {
            note.message = format!("(more {} events about this object)", note.reason);
        }
        messages.entry(note.message.clone()).or_default();
    }

    /// The Event that counts such notes already.
    pub(super) fn get(&self, note: &Note) -> Option<&Counted> {
        self.series.get(&series(note))?.get(&note.message)?.as_ref()
    }

    /// This Event counts such notes from now on; with `None`, none does any more.
    pub(super) fn set(&mut self, note: &Note, counted: Option<Counted>) {
        let series = self.series.entry(series(note)).or_default();
        series.insert(note.message.clone(), counted);
    }
}

fn series(note: &Note) -> Series {
    let about = match note.about.uid.as_str() {
        "" => format!("{}/{}", note.about.namespace, note.about.name),
        uid => uid.to_owned(),
    };
    (about, note.kind, note.reason.clone())
}

/// A name that no other Event of this object has.
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
    use setpoint_proto::core::ObjectReference;

    use super::*;

    fn note(message: &str) -> Note {
        Note {
            about: ObjectReference {
                uid: "u".into(),
                ..ObjectReference::default()
            },
            kind: Type::Normal,
            reason: "Created".into(),
            message: message.into(),
            at: Timestamp::now(),
            traceparent: None,
        }
    }

    #[test]
    fn what_says_the_same_is_one_event_with_a_count() {
        let merged = Known::default().merge(["a", "b", "a"].into_iter().map(note));
        let told: Vec<_> = merged.iter().map(|r| (&*r.note.message, r.times)).collect();
        assert_eq!(told, [("a", 2), ("b", 1)]);
    }

    #[test]
    fn a_flood_about_one_object_ends_in_one_event() {
        let notes = (0..1000).map(|n| note(&format!("pod {n}")));
        let merged = Known::default().merge(notes);
        assert_eq!(merged.len(), MAX_MESSAGES + 1);
        assert_eq!(merged[MAX_MESSAGES].times, 990);
    }

    #[test]
    fn memory_is_bounded() {
        let mut known = Known::default();
        for n in 0..10 * MAX_SERIES {
            let mut note = note("a");
            note.about.uid = n.to_string();
            known.merge(std::iter::once(note));
        }
        assert!(known.series.len() <= MAX_SERIES);
    }
}
