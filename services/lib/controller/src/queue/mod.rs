//! The work queue of a controller: event handlers add keys, workers take them.
//!
//! Guarantees:
//! * Fair: keys are taken in the order in which they were added, or by rank if the worker ranks them.
//! * Stingy: a key that is added several times before it is taken is taken once.
//! * Exclusive: no two workers have the same key; one that is added while a worker has it is taken again afterwards.
//! * A delayed key waits for its earliest time; adding the key ends the delay.
//! * A failing key is delayed longer each time, without an effect on other keys.
//! * After [`Queue::close`], the queued keys are taken, then none.

mod limiter;
mod state;
mod ticket;

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use setpoint_proto::Cause;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

pub(crate) use limiter::Bucket;
pub use limiter::Limiter;
pub use ticket::{Rest, Ticket, Waits};

use crate::metrics;
pub use metrics::Load;
use state::State;

/// The largest number of causes that a key keeps, so that one that is not taken stays bounded.
pub const MAX_CAUSES: usize = 8;

/// The items of a queue.
pub trait Item: Clone + Debug + Eq + Hash + Ord + Send + 'static {}
impl<K: Clone + Debug + Eq + Hash + Ord + Send + 'static> Item for K {}

/// A queue of keys to reconcile. Clones are the same queue.
///
/// ```
/// use setpoint_controller::Queue;
/// use setpoint_controller::queue::Limiter;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let queue = Queue::new("example", Limiter::default());
/// queue.add("web", None);
/// queue.add("web", None);
/// let ticket = queue.next().await.expect("the queue is open");
/// assert_eq!(ticket.key, "web");
/// assert!(queue.is_empty(), "it was added twice and is taken once");
/// ticket.done(None);
/// queue.close();
/// assert!(queue.next().await.is_none());
/// # });
/// ```
pub struct Queue<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    state: Mutex<State<K>>,
    changed: Notify,
    opened: Instant,
    metrics: metrics::Queue,
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<K: Item> Queue<K> {
    /// Returns an empty queue; `name` labels its metrics.
    pub fn new(name: &str, limiter: Limiter) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(limiter)),
            changed: Notify::new(),
            opened: Instant::now(),
            metrics: metrics::Queue::new(name),
        });
        let probe = Arc::downgrade(&shared);
        metrics::watch_queue(name, move || {
            Some(probe.upgrade()?.state.lock().load(Instant::now()))
        });
        Self { shared }
    }

    /// Adds a key, with the cause of the change if it is known.
    pub fn add(&self, key: K, cause: Option<Cause>) {
        self.change(|state, now| state.add(key, cause, now));
    }

    /// Adds a key after a delay. Of several delays the shortest counts, and [`Self::add`] ends it.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.change(|state, now| state.add_at(key, Vec::new(), Rest::Again, now + delay, now));
    }

    /// Waits for the next key; `None` once the queue is closed and drained.
    pub async fn next(&self) -> Option<Ticket<K>> {
        self.taken_by(|| self.take()).await
    }

    /// Waits for a key and returns up to `count` of those that are queued, the lowest ranks first. `None` once the
    /// queue is closed and drained.
    pub async fn next_batch<R: Ord>(
        &self,
        count: usize,
        rank: impl Fn(&K) -> R,
    ) -> Option<Vec<Ticket<K>>> {
        self.taken_by(|| self.take_batch(count, &rank)).await
    }

    async fn taken_by<T>(&self, take: impl Fn() -> Next<T>) -> Option<T> {
        loop {
            let mut changed = std::pin::pin!(self.shared.changed.notified());
            // Registered before the state is read, so that no change is missed in between.
            changed.as_mut().enable();
            let due = match take() {
                Next::Taken(taken) => return Some(taken),
                Next::Closed => {
                    self.shared.changed.notify_one(); // to whoever still waits
                    return None;
                }
                Next::At(due) => due,
            };
            tokio::select! {
                () = changed => {}
                () = until(due) => {}
            }
        }
    }

    /// Accepts no more keys and drops those that are delayed.
    pub fn close(&self) {
        self.shared.state.lock().close();
        self.shared.changed.notify_waiters();
    }

    /// Returns the number of keys that can be taken now.
    pub fn len(&self) -> usize {
        self.load().depth
    }

    /// Returns whether no key can be taken now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of delayed keys.
    pub fn delayed(&self) -> usize {
        self.load().delayed
    }

    /// Returns the load.
    pub fn load(&self) -> Load {
        self.shared.state.lock().load(Instant::now())
    }

    fn failures(&self, key: &K) -> u32 {
        self.shared.state.lock().failures(key)
    }

    fn rest(&self, key: &K) -> Duration {
        self.shared.state.lock().rest(key)
    }

    /// `rank` is called without the lock: it may be slow, and may read caches.
    fn take_batch<R: Ord>(&self, count: usize, rank: impl Fn(&K) -> R) -> Next<Vec<Ticket<K>>> {
        let many = self.shared.state.lock().more_than(count, Instant::now());
        if let Some(keys) = many {
            let ranks: HashMap<K, R> = keys
                .into_iter()
                .map(|key| (key.clone(), rank(&key)))
                .collect();
            // Keys that were added since then go last.
            let order = |a: &K, b: &K| match (ranks.get(a), ranks.get(b)) {
                (Some(a), Some(b)) => a.cmp(b),
                (a, b) => b.is_some().cmp(&a.is_some()),
            };
            self.shared.state.lock().sort(order);
        }
        let mut batch = Vec::new();
        while batch.len() < count {
            match self.take() {
                Next::Taken(ticket) => batch.push(ticket),
                Next::At(due) if batch.is_empty() => return Next::At(due),
                Next::Closed if batch.is_empty() => return Next::Closed,
                Next::At(_) | Next::Closed => break,
            }
        }
        Next::Taken(batch)
    }

    fn take(&self) -> Next<Ticket<K>> {
        let now = Instant::now();
        let mut state = self.shared.state.lock();
        let Some(taken) = state.take(now) else {
            return match state.is_closed() {
                true => Next::Closed,
                false => Next::At(state.next_due()),
            };
        };
        let others = state.len() > 0 || state.delayed() > 0 || state.is_closed();
        self.measure(&mut state);
        drop(state);
        if others {
            // Adds while all workers were busy left a single wake-up: pass it on to the next worker.
            self.shared.changed.notify_one();
        }
        self.shared
            .metrics
            .waited(now.saturating_duration_since(taken.since));
        Next::Taken(Ticket::new(self.clone(), taken, now))
    }

    fn change(&self, change: impl FnOnce(&mut State<K>, Instant)) {
        let mut state = self.shared.state.lock();
        change(&mut state, Instant::now());
        self.measure(&mut state);
        drop(state);
        self.shared.changed.notify_one();
    }

    fn measure(&self, state: &mut State<K>) {
        self.shared.metrics.added(state.take_added());
    }
}

enum Next<T> {
    Taken(T),
    /// Nothing before this time.
    At(Option<Instant>),
    Closed,
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
