//! Chores that wait, each at most once, and the delays of those that failed.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use setpoint_task::Backoff;
use tokio::time::Instant;

use super::chore::{Chore, Id};

/// The longest delay after the first failure, and after any.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_secs(5 * 60);

/// Chores in the order in which they were added. Memory is bounded by the number of objects: a chore that waits already is
/// not added again.
#[derive(Default)]
pub(super) struct Queue {
    order: VecDeque<Chore>,
    waiting: HashSet<Id>,
    delayed: BTreeMap<Moment, Chore>,
    /// When each delayed chore is due.
    due: HashMap<Id, Moment>,
    failures: HashMap<Id, Backoff>,
    added: u64,
}

/// An instant, and a number that tells chores apart that are due at the same one.
type Moment = (Instant, u64);

impl Queue {
    /// Adds a chore that an event made necessary. One that is delayed after a failure is not delayed any longer, but the
    /// next delay is no shorter for that.
    pub fn add(&mut self, chore: Chore) {
        self.undelay(&chore.id());
        self.push(chore);
    }

    /// Adds a chore that another one made necessary, unless it is delayed after a failure.
    pub fn add_follow_up(&mut self, chore: Chore) {
        if !self.due.contains_key(&chore.id()) {
            self.push(chore);
        }
    }

    /// Removes and returns the chore that has waited longest.
    pub fn next(&mut self) -> Option<Chore> {
        let chore = self.order.pop_front()?;
        self.waiting.remove(&chore.id());
        Some(chore)
    }

    /// The chore was done: its next failure is the first again.
    pub fn done(&mut self, chore: &Chore) {
        self.failures.remove(&chore.id());
    }

    /// The chore failed, and is due again after a delay of 1 s·2ⁿ, at most 5 min.
    pub fn failed(&mut self, chore: Chore) {
        let backoff = || Backoff::new(FIRST_DELAY, LONGEST_DELAY);
        let failures = self.failures.entry(chore.id()).or_insert_with(backoff);
        let delay = failures.next_delay();
        self.delay(chore, delay);
    }

    /// The chore is due again after `delay`.
    pub fn delay(&mut self, chore: Chore, delay: Duration) {
        let id = chore.id();
        if self.waiting.contains(&id) || self.due.contains_key(&id) {
            return;
        }
        self.added = self.added.wrapping_add(1);
        let moment = (Instant::now() + delay, self.added);
        self.due.insert(id, moment);
        self.delayed.insert(moment, chore);
    }

    /// Returns when the next delayed chore is due.
    pub fn next_due(&self) -> Option<Instant> {
        let ((at, _), _) = self.delayed.first_key_value()?;
        Some(*at)
    }

    /// Adds the delayed chores that are due by now.
    pub fn add_due(&mut self) {
        let now = Instant::now();
        while let Some(entry) = self.delayed.first_entry()
            && entry.key().0 <= now
        {
            let chore = entry.remove();
            self.due.remove(&chore.id());
            self.push(chore);
        }
    }

    fn push(&mut self, chore: Chore) {
        if self.waiting.insert(chore.id()) {
            self.order.push_back(chore);
        }
    }

    fn undelay(&mut self, id: &Id) {
        if let Some(moment) = self.due.remove(id) {
            self.delayed.remove(&moment);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::chore::Task;
    use super::*;

    fn chore(namespace: &str) -> Chore {
        Chore {
            task: Task::Empty(namespace.into()),
            because: None,
        }
    }

    fn next(queue: &mut Queue) -> Option<Id> {
        queue.next().map(|chore| chore.id())
    }

    /// Checks I7.
    #[tokio::test(start_paused = true)]
    async fn a_chore_waits_once_and_in_turn() {
        let mut queue = Queue::default();
        for namespace in ["a", "b", "a"] {
            queue.add(chore(namespace));
        }
        assert_eq!(next(&mut queue), Some(chore("a").id()));
        queue.add(chore("a"));
        assert_eq!(next(&mut queue), Some(chore("b").id()));
        assert_eq!(next(&mut queue), Some(chore("a").id()));
        assert_eq!(next(&mut queue), None);
    }

    /// Checks F1, I11: one chore that always fails is tried ever more rarely, and the others do not wait for it.
    #[tokio::test(start_paused = true)]
    async fn a_chore_that_fails_is_due_later_each_time() {
        let mut queue = Queue::default();
        let mut delays = Vec::new();
        for _ in 0..12 {
            queue.failed(chore("bad"));
            queue.add_follow_up(chore("bad"));
            queue.add_due();
            assert_eq!(next(&mut queue), None);
            let began = Instant::now();
            tokio::time::sleep_until(queue.next_due().unwrap()).await;
            delays.push(began.elapsed());
            queue.add_due();
            assert_eq!(next(&mut queue), Some(chore("bad").id()));
            assert_eq!(queue.next_due(), None);
        }
        assert!(delays[0] <= FIRST_DELAY, "{delays:?}");
        assert!(delays[11] >= LONGEST_DELAY / 2 && delays[11] <= LONGEST_DELAY + FIRST_DELAY);
        queue.done(&chore("bad"));
        queue.failed(chore("bad"));
        assert!(queue.next_due().unwrap() <= Instant::now() + FIRST_DELAY);
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_ends_the_delay() {
        let mut queue = Queue::default();
        queue.failed(chore("a"));
        queue.add(chore("a"));
        assert_eq!(queue.next_due(), None);
        assert_eq!(next(&mut queue), Some(chore("a").id()));
    }
}
