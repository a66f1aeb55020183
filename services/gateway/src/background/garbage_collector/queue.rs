//! The queue of tasks, each at most once in it, with a backoff for those that failed.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use setpoint_task::Backoff;
use tokio::time::Instant;

use super::task::{Id, Task};

/// The largest delay after the first failure, and after any.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const MAX_DELAY: Duration = Duration::from_secs(5 * 60);

/// Tasks in the order in which they were added. A queued task is not added again, so the length is bounded by the number
/// of objects.
#[derive(Default)]
pub(super) struct Queue {
    order: VecDeque<Task>,
    waiting: HashSet<Id>,
    delayed: BTreeMap<DueTime, Task>,
    /// When each delayed task is due.
    due: HashMap<Id, DueTime>,
    failures: HashMap<Id, Backoff>,
    added: u64,
}

/// An instant, and a number that distinguishes tasks that are due at the same one.
type DueTime = (Instant, u64);

impl Queue {
    /// Adds a task because of an event. A delayed task becomes due at once, but its backoff is not reset.
    pub fn add(&mut self, task: Task) {
        self.undelay(&task.id());
        self.push(task);
    }

    /// Adds a task because of another task, unless it is delayed after a failure.
    pub fn add_follow_up(&mut self, task: Task) {
        if !self.due.contains_key(&task.id()) {
            self.push(task);
        }
    }

    /// Removes and returns the first task.
    pub fn next(&mut self) -> Option<Task> {
        let task = self.order.pop_front()?;
        self.waiting.remove(&task.id());
        Some(task)
    }

    /// Resets the backoff of a task that succeeded.
    pub fn done(&mut self, task: &Task) {
        self.failures.remove(&task.id());
    }

    /// Delays a task that failed, by 1 s·2ⁿ and at most 5 min.
    pub fn failed(&mut self, task: Task) {
        let backoff = || Backoff::new(FIRST_DELAY, MAX_DELAY);
        let failures = self.failures.entry(task.id()).or_insert_with(backoff);
        let delay = failures.next_delay();
        self.delay(task, delay);
    }

    /// Makes a task due after `delay`, unless it is queued or delayed already.
    fn delay(&mut self, task: Task, delay: Duration) {
        let id = task.id();
        if self.waiting.contains(&id) || self.due.contains_key(&id) {
            return;
        }
        self.added = self.added.wrapping_add(1);
        let due_time = (Instant::now() + delay, self.added);
        self.due.insert(id, due_time);
        self.delayed.insert(due_time, task);
    }

    /// Returns when the next delayed task is due.
    pub fn next_due(&self) -> Option<Instant> {
        let ((at, _), _) = self.delayed.first_key_value()?;
        Some(*at)
    }

    /// Adds the delayed tasks that are due.
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
        if let Some(due_time) = self.due.remove(id) {
            self.delayed.remove(&due_time);
        }
    }
}

#[cfg(test)]
mod tests {
    use setpoint_codec::kinds;
    use setpoint_model::Key;

    use super::super::node::Node;
    use super::super::task::Action;
    use super::*;

    fn task(uid: &str) -> Task {
        let node = Node {
            kind: kinds().by_resource("pods").unwrap(),
            key: Key::new("default", uid),
            uid: uid.into(),
            owners: Vec::new(),
            finalizers: Vec::new(),
            ending: false,
        };
        Task {
            action: Action::Attempt(node),
            cause: None,
        }
    }

    fn next(queue: &mut Queue) -> Option<Id> {
        queue.next().map(|task| task.id())
    }

    /// Checks I7.
    #[tokio::test(start_paused = true)]
    async fn a_task_is_queued_once_in_order() {
        let mut queue = Queue::default();
        for uid in ["a", "b", "a"] {
            queue.add(task(uid));
        }
        assert_eq!(next(&mut queue), Some(task("a").id()));
        queue.add(task("a"));
        assert_eq!(next(&mut queue), Some(task("b").id()));
        assert_eq!(next(&mut queue), Some(task("a").id()));
        assert_eq!(next(&mut queue), None);
    }

    /// Checks F1, I11: a task that always fails backs off, and the others do not wait for it.
    #[tokio::test(start_paused = true)]
    async fn a_task_that_fails_repeatedly_is_delayed_longer_each_time() {
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
        assert!(delays[11] >= MAX_DELAY / 2 && delays[11] <= MAX_DELAY + FIRST_DELAY);
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
