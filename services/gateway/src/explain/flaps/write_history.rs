//! The recent writes of one object, and the flaps among them. Pure.
//!
//! Most objects have one writer, or several that do not take turns. The changed fields, which are expensive to compute,
//! are compared only if two writers do.

use std::cell::OnceCell;
use std::collections::{BTreeSet, VecDeque};

/// The number of turns of two managers at one field that make a flap: each undid the other's write twice.
const TURNS: usize = 4;
/// The maximum number of turns kept for an object, those of other writers included.
const RUNS: usize = 16;

/// The change of an object by consecutive writes of one writer.
pub(super) trait FieldChanges {
    /// Returns the paths of the changed fields.
    fn fields(&self) -> BTreeSet<String>;
    /// Adds the next write of the same writer.
    fn extend(&mut self, later: Self);
    /// Returns the approximate size in memory, in bytes.
    fn size(&self) -> usize;
}

/// One write.
#[derive(Clone, Debug)]
pub(super) struct Write<C> {
    pub writer: String,
    pub at_ns: i64,
    pub change: C,
}

/// Two managers that undo each other's writes of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flap {
    pub field: String,
    /// Sorted by name.
    pub managers: [String; 2],
}

/// Consecutive writes of one writer.
struct Run<C> {
    write: Write<C>,
    fields: OnceCell<BTreeSet<String>>,
    /// The fields that do not count any more, because their flap was returned.
    reported: BTreeSet<String>,
}

/// The recent writes of one object.
pub(super) struct WriteHistory<C> {
    runs: VecDeque<Run<C>>,
}

impl<C> Default for WriteHistory<C> {
    fn default() -> Self {
        let runs = VecDeque::new();
        Self { runs }
    }
}

impl<C: FieldChanges> WriteHistory<C> {
    /// Adds a write and returns the flaps that it completes. The turns of a returned flap do not count for the next
    /// one.
    pub fn enter(&mut self, write: Write<C>, window_ns: i64) -> Vec<Flap> {
        let oldest = write.at_ns.saturating_sub(window_ns);
        let is_old = |run: &Run<C>| run.write.at_ns < oldest;
        while self.runs.front().is_some_and(is_old) {
            self.runs.pop_front();
        }
        let writer = write.writer.clone();
        self.append(write);
        let writers = self.runs.iter().map(|run| run.write.writer.clone());
        let mut others: BTreeSet<_> = writers.collect();
        others.remove(&writer);
        let mut flaps = Vec::new();
        for other in others {
            for field in self.contested(&writer, &other) {
                self.mark_reported(&writer, &other, &field);
                let mut managers = [writer.clone(), other.clone()];
                managers.sort();
                flaps.push(Flap { field, managers });
            }
        }
        flaps
    }

    pub fn size(&self) -> usize {
        self.runs.iter().map(|run| run.write.change.size()).sum()
    }

    fn append(&mut self, write: Write<C>) {
        if let Some(last) = self.runs.back_mut()
            && last.write.writer == write.writer
        {
            last.write.at_ns = write.at_ns;
            last.write.change.extend(write.change);
            last.fields.take();
            return;
        }
        self.runs.push_back(Run {
            write,
            fields: OnceCell::new(),
            reported: BTreeSet::new(),
        });
        if self.runs.len() > RUNS {
            self.runs.pop_front();
        }
    }

    /// Returns the fields at which both writers have taken enough turns, the last one by `writer`.
    fn contested(&self, writer: &str, other: &str) -> Vec<String> {
        let both = |run: &&Run<C>| [writer, other].contains(&run.write.writer.as_str());
        let runs: Vec<_> = self.runs.iter().filter(both).collect();
        if turns(runs.iter().map(|run| run.write.writer.as_str())) < TURNS {
            return Vec::new();
        }
        let Some(last) = runs.last() else {
            return Vec::new();
        };
        let turns_at = |field: &str| {
            let writers = runs.iter().filter(|run| run.changes(field));
            turns(writers.map(|run| run.write.writer.as_str()))
        };
        let fields = last.changed().iter();
        fields
            .filter(|field| turns_at(field) >= TURNS)
            .cloned()
            .collect()
    }

    fn mark_reported(&mut self, writer: &str, other: &str, field: &str) {
        for run in &mut self.runs {
            if [writer, other].contains(&run.write.writer.as_str()) {
                run.reported.insert(field.to_owned());
            }
        }
    }
}

impl<C: FieldChanges> Run<C> {
    fn changed(&self) -> &BTreeSet<String> {
        self.fields.get_or_init(|| self.write.change.fields())
    }

    fn changes(&self, field: &str) -> bool {
        !self.reported.contains(field) && self.changed().contains(field)
    }
}

/// Returns the number of runs of equal writers.
fn turns<'a>(writers: impl Iterator<Item = &'a str>) -> usize {
    let mut turns = 0;
    let mut last = None;
    for writer in writers {
        turns += usize::from(last != Some(writer));
        last = Some(writer);
    }
    turns
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    const SECOND: i64 = 1_000_000_000;
    const WINDOW: i64 = 60 * SECOND;

    /// Changed fields, and the number of calls of `fields`.
    struct Fields(Vec<&'static str>, Rc<Cell<usize>>);

    impl FieldChanges for Fields {
        fn fields(&self) -> BTreeSet<String> {
            self.1.set(self.1.get() + 1);
            self.0.iter().map(|field| (*field).to_owned()).collect()
        }

        fn extend(&mut self, later: Self) {
            self.0.extend(later.0);
        }

        fn size(&self) -> usize {
            1
        }
    }

    /// Enters one write per `step` nanoseconds; `a:x` is a change of field x by a. Returns the flaps, each with the
    /// number of the write that completed it, and the number of calls of `fields`.
    fn play(writes: &'static str, step: i64) -> (Vec<(i64, String, [String; 2])>, usize) {
        let (mut history, calls) = (WriteHistory::default(), Rc::default());
        let mut found = Vec::new();
        for (at, write) in (1..).zip(writes.split_whitespace()) {
            let (writer, fields) = write.split_once(':').unwrap();
            let write = Write {
                writer: writer.to_owned(),
                at_ns: at * step,
                change: Fields(fields.split(',').collect(), Rc::clone(&calls)),
            };
            let flaps = history.enter(write, WINDOW);
            found.extend(
                flaps
                    .into_iter()
                    .map(|flap| (at, flap.field, flap.managers)),
            );
        }
        (found, calls.get())
    }

    fn flaps(writes: &'static str) -> Vec<(i64, String, [String; 2])> {
        play(writes, SECOND).0
    }

    fn flap(at: i64, field: &str, a: &str, b: &str) -> (i64, String, [String; 2]) {
        (at, field.to_owned(), [a.to_owned(), b.to_owned()])
    }

    #[test]
    fn four_turns_of_two_managers_at_one_field_are_a_flap() {
        assert_eq!(flaps("a:x b:x a:x"), []);
        assert_eq!(flaps("a:x b:x a:x b:x"), [flap(4, "x", "a", "b")]);
        assert_eq!(flaps("b:x,y a:x b:z,x a:x,y"), [flap(4, "x", "a", "b")]);
    }

    #[test]
    fn the_turns_of_a_flap_do_not_count_for_the_next_one() {
        let twice = [flap(4, "x", "a", "b"), flap(8, "x", "a", "b")];
        assert_eq!(flaps("a:x b:x a:x b:x a:x b:x a:x b:x a:x"), twice);
    }

    #[test]
    fn writes_of_others_do_not_hide_a_flap() {
        let writes = "a:x c:s b:x c:s a:x c:s,t b:x c:s";
        assert_eq!(flaps(writes), [flap(7, "x", "a", "b")]);
    }

    /// For example, one controller writes the spec and another the status.
    #[test]
    fn turns_at_different_fields_are_not_a_flap() {
        assert_eq!(flaps("a:spec b:status a:spec b:status a:spec b:status"), []);
    }

    #[test]
    fn consecutive_writes_of_one_writer_are_one_turn() {
        assert_eq!(flaps("a:x a:x b:x b:x a:x a:x"), []);
        assert_eq!(flaps("a:x a:x b:x a:y a:x b:x"), [flap(6, "x", "a", "b")]);
    }

    #[test]
    fn of_three_writers_two_flap_after_four_turns_of_theirs() {
        let found = flaps("a:x b:x c:x a:x b:x c:x");
        let expected = [
            flap(5, "x", "a", "b"),
            flap(6, "x", "a", "c"),
            flap(6, "x", "b", "c"),
        ];
        assert_eq!(found[0], expected[0]);
    }

    #[test]
    fn turns_outside_of_the_window_do_not_count() {
        assert_eq!(play("a:x b:x a:x b:x", 15 * SECOND).0.len(), 1);
        assert_eq!(play("a:x b:x a:x b:x a:x b:x", 21 * SECOND).0, []);
    }

    #[test]
    fn fields_are_compared_only_if_two_writers_take_turns() {
        assert_eq!(
            play(
                "rs:spec scheduler:node kubelet:status kubelet:status rs:meta",
                SECOND
            )
            .1,
            0
        );
        assert_eq!(play("a:x a:y a:x a:y a:x a:y a:x", SECOND).1, 0);
        assert!(play("a:x b:y a:x b:y", SECOND).1 > 0);
    }
}
