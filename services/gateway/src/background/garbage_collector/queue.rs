//! Tasks that wait, each at most once, and the delays of those that failed.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use setpoint_task::Backoff;
use tokio::time::Instant;

use super::task::{Id, Task};

/// The longest delay after the first failure, and after any.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_secs(5 * 60);

/// Tasks in the order in which they were added. Memory is bounded by the number of objects: a task that waits already is
/// not added again.
#[derive(Default)]
pub(super) struct Queue {
    order: VecDeque<Task>,
    waiting: HashSet<Id>,
    delayed: BTreeMap<Moment, Task>,
    /// When each delayed task is due.
    due: HashMap<Id, Moment>,
    failures: HashMap<Id, Backoff>,
    added: u64,
}

/// An instant, and a number that tells tasks apart that are due at the same one.
type Moment = (Instant, u64);

impl Queue {
    /// Adds a task that an event made necessary. One that is delayed after a failure is not delayed any longer, but the
    /// next delay is no shorter for that.
    pub fn add(&mut self, task: Task) {
        self.undelay(&task.id());
        self.push(task);
    }

    /// Adds a task that another one made necessary, unless it is delayed after a failure.
    pub fn add_follow_up(&mut self, task: Task) {
        if !self.due.contains_key(&task.id()) {
            self.push(task);
        }
    }

    /// Removes and returns the task that has waited longest.
    pub fn next(&mut self) -> Option<Task> {
        let task = self.order.pop_front()?;
        self.waiting.remove(&task.id());
        Some(task)
    }

    /// The task was done: its next failure is the first again.
    pub fn done(&mut self, task: &Task) {
        self.failures.remove(&task.id());
    }

    /// The task failed, and is due again after a delay of 1 s·2ⁿ, at most 5 min.
    pub fn failed(&mut self, task: Task) {
        let backoff = || Backoff::new(FIRST_DELAY, LONGEST_DELAY);
        let failures = self.failures.entry(task.id()).or_insert_with(backoff);
        let delay = failures.next_delay();
        self.delay(task, delay);
    }

    /// The task is due again after `delay`.
    pub fn delay(&mut self, task: Task, delay: Duration) {
        let id = task.id();
        if self.waiting.contains(&id) || self.due.contains_key(&id) {
            return;
        }
        self.added = self.added.wrapping_add(1);
        let moment = (Instant::now() + delay, self.added);
        self.due.insert(id, moment);
        self.delayed.insert(moment, task);
    }

    /// Returns when the next delayed task is due.
    pub fn next_due(&self) -> Option<Instant> {
        let ((at, _), _) = self.delayed.first_key_value()?;
        Some(*at)
    }

    /// Adds the delayed tasks that are due by now.
    pub fn add_due(&mut self) {
        let now = Instant::now();
        while let Some(entry) = self.delayed.first_entry()
            && entry.key().0 <= now
        {
            let task = entry.remove();
            self.due.remove(&task.id());
            self.push(task);
        }
    }

    fn push(&mut self, task: Task) {
        if self.waiting.insert(task.id()) {
            self.order.push_back(task);
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
    use super::super::task::Action;
    use super::*;

    fn task(namespace: &str) -> Task {
        Task {
            action: Action::Empty(namespace.into()),
            cause: None,
        }
    }

    fn next(queue: &mut Queue) -> Option<Id> {
        queue.next().map(|task| task.id())
    }

    /// Checks I7.
    #[tokio::test(start_paused = true)]
    async fn a_task_waits_once_and_in_turn() {
        let mut queue = Queue::default();
        for namespace in ["a", "b", "a"] {
            queue.add(task(namespace));
        }
        assert_eq!(next(&mut queue), Some(task("a").id()));
        queue.add(task("a"));
        assert_eq!(next(&mut queue), Some(task("b").id()));
        assert_eq!(next(&mut queue), Some(task("a").id()));
        assert_eq!(next(&mut queue), None);
    }

    /// Checks F1, I11: one task that always fails is tried ever more rarely, and the others do not wait for it.
    #[tokio::test(start_paused = true)]
    async fn a_task_that_fails_is_due_later_each_time() {
        let mut queue = Queue::default();
        let mut delays = Vec::new();
        for _ in 0..12 {
            queue.failed(task("bad"));
            queue.add_follow_up(task("bad"));
            queue.add_due();
            assert_eq!(next(&mut queue), None);
            let began = Instant::now();
            tokio::time::sleep_until(queue.next_due().unwrap()).await;
            delays.push(began.elapsed());
            queue.add_due();
            assert_eq!(next(&mut queue), Some(task("bad").id()));
            assert_eq!(queue.next_due(), None);
        }
        assert!(delays[0] <= FIRST_DELAY, "{delays:?}");
        assert!(delays[11] >= LONGEST_DELAY / 2 && delays[11] <= LONGEST_DELAY + FIRST_DELAY);
        queue.done(&task("bad"));
        queue.failed(task("bad"));
        assert!(queue.next_due().unwrap() <= Instant::now() + FIRST_DELAY);
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_ends_the_delay() {
        let mut queue = Queue::default();
        queue.failed(task("a"));
        queue.add(task("a"));
        assert_eq!(queue.next_due(), None);
        assert_eq!(next(&mut queue), Some(task("a").id()));
    }
}
