//! The writes of one object of late, and who of its writers undo each other. Pure.
//!
//! Most objects have one writer, or several that never come back: nothing of theirs is ever compared. Only where two
//! writers take turns is it asked which fields they changed.

use std::cell::OnceCell;
use std::collections::{BTreeSet, VecDeque};

/// So many turns of two managers at one field are a flap: each has undone the other, and done it again.
const TURNS: usize = 4;
/// So many turns of an object are remembered, those of bystanders included.
const RUNS: usize = 16;

/// What a write changed, looked at only when it matters.
pub(super) trait Changed {
    /// The paths of the fields.
    fn fields(&self) -> BTreeSet<String>;
    /// Another write by the same writer follows.
    fn then(&mut self, later: Self);
    /// About how much memory it holds.
    fn size(&self) -> usize;
}

/// One write.
#[derive(Clone, Debug)]
pub(super) struct Write<C> {
    pub writer: String,
    pub at_ns: i64,
    pub change: C,
}

/// Two managers that undo each other at one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flap {
    pub field: String,
    /// In the order of their names.
    pub managers: [String; 2],
}

/// Writes of one writer in a row.
struct Run<C> {
    write: Write<C>,
    fields: OnceCell<BTreeSet<String>>,
    /// Fields of which was told already.
    told: BTreeSet<String>,
}

/// The writes of one object of late.
pub(super) struct Trail<C> {
    runs: VecDeque<Run<C>>,
}

impl<C> Default for Trail<C> {
    fn default() -> Self {
        let runs = VecDeque::new();
        Self { runs }
    }
}

impl<C: Changed> Trail<C> {
    /// Enters a write, and answers what has become a flap with it. Each takes as many turns anew to be told again.
    pub fn enter(&mut self, write: Write<C>, window_ns: i64) -> Vec<Flap> {
        let oldest = write.at_ns.saturating_sub(window_ns);
        while self
            .runs
            .front()
            .is_some_and(|run| run.write.at_ns < oldest)
        {
            self.runs.pop_front();
        }
        let writer = write.writer.clone();
        self.append(write);
        let others: BTreeSet<_> = self
            .runs
            .iter()
            .map(|run| run.write.writer.clone())
            .collect();
        let others = others.into_iter().filter(|other| *other != writer);
        let mut flaps = Vec::new();
        for other in others.collect::<Vec<_>>() {
            for field in self.contested(&writer, &other) {
                self.settle(&writer, &other, &field);
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
            last.write.change.then(write.change);
            last.fields.take();
            return;
        }
        self.runs.push_back(Run {
            write,
            fields: OnceCell::new(),
            told: BTreeSet::new(),
        });
        if self.runs.len() > RUNS {
            self.runs.pop_front();
        }
    }

    /// The fields at which these two have taken enough turns, `writer` the last of them.
    fn contested(&self, writer: &str, other: &str) -> Vec<String> {
        let both = |run: &&Run<C>| [writer, other].contains(&run.write.writer.as_str());
        let runs: Vec<_> = self.runs.iter().filter(both).collect();
        if turns(runs.iter().map(|run| run.write.writer.as_str())) < TURNS {
            return Vec::new();
        }
        let Some(last) = runs.last() else {
            return Vec::new();
        };
        let at_it = |field: &str| {
            let writers = runs.iter().filter(|run| run.changes(field));
            turns(writers.map(|run| run.write.writer.as_str()))
        };
        let fields = last.changed().iter();
        fields
            .filter(|field| at_it(field) >= TURNS)
            .cloned()
            .collect()
    }

    /// What has been told counts no more.
    fn settle(&mut self, writer: &str, other: &str, field: &str) {
        for run in &mut self.runs {
            if [writer, other].contains(&run.write.writer.as_str()) {
                run.told.insert(field.to_owned());
            }
        }
    }
}

impl<C: Changed> Run<C> {
    fn changed(&self) -> &BTreeSet<String> {
        self.fields.get_or_init(|| self.write.change.fields())
    }

    fn changes(&self, field: &str) -> bool {
        !self.told.contains(field) && self.changed().contains(field)
    }
}

/// How often the writer changes in a row of writers, the first included.
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

    /// Fields, and how often anybody asked for them.
    struct Fields(Vec<&'static str>, Rc<Cell<usize>>);

    impl Changed for Fields {
        fn fields(&self) -> BTreeSet<String> {
            self.1.set(self.1.get() + 1);
            self.0.iter().map(|field| (*field).to_owned()).collect()
        }

        fn then(&mut self, later: Self) {
            self.0.extend(later.0);
        }

        fn size(&self) -> usize {
            1
        }
    }

    /// One write a second: `a:x` is a change of field x by a. Answers the flaps, each with when it was told, and how
    /// often fields were asked for.
    fn play(writes: &'static str, step: i64) -> (Vec<(i64, String, [String; 2])>, usize) {
        let (mut trail, asked) = (Trail::default(), Rc::default());
        let mut told = Vec::new();
        for (at, write) in (1..).zip(writes.split_whitespace()) {
            let (writer, fields) = write.split_once(':').unwrap();
            let write = Write {
                writer: writer.to_owned(),
                at_ns: at * step,
                change: Fields(fields.split(',').collect(), Rc::clone(&asked)),
            };
            let flaps = trail.enter(write, WINDOW);
            told.extend(
                flaps
                    .into_iter()
                    .map(|flap| (at, flap.field, flap.managers)),
            );
        }
        (told, asked.get())
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
    fn it_takes_as_many_turns_anew_to_be_told_again() {
        let twice = [flap(4, "x", "a", "b"), flap(8, "x", "a", "b")];
        assert_eq!(flaps("a:x b:x a:x b:x a:x b:x a:x b:x a:x"), twice);
    }

    #[test]
    fn bystanders_do_not_hide_it() {
        let writes = "a:x c:s b:x c:s a:x c:s,t b:x c:s";
        assert_eq!(flaps(writes), [flap(7, "x", "a", "b")]);
    }

    /// A controller writes the spec and another the status, again and again: nobody undoes anything.
    #[test]
    fn taking_turns_at_different_fields_is_no_flap() {
        assert_eq!(flaps("a:spec b:status a:spec b:status a:spec b:status"), []);
    }

    #[test]
    fn one_who_writes_again_and_again_takes_one_turn() {
        assert_eq!(flaps("a:x a:x b:x b:x a:x a:x"), []);
        assert_eq!(flaps("a:x a:x b:x a:y a:x b:x"), [flap(6, "x", "a", "b")]);
    }

    #[test]
    fn three_in_a_circle_are_no_pair_until_two_of_them_have_taken_four_turns() {
        let told = flaps("a:x b:x c:x a:x b:x c:x");
        let expected = [
            flap(5, "x", "a", "b"),
            flap(6, "x", "a", "c"),
            flap(6, "x", "b", "c"),
        ];
        assert_eq!(told[0], expected[0]);
    }

    #[test]
    fn turns_that_are_too_far_apart_do_not_count() {
        assert_eq!(play("a:x b:x a:x b:x", 15 * SECOND).0.len(), 1);
        assert_eq!(play("a:x b:x a:x b:x a:x b:x", 21 * SECOND).0, []);
    }

    #[test]
    fn what_writers_changed_is_asked_only_where_two_of_them_take_turns() {
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
