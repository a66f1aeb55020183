//! The queue between those who notice that a key needs a look and those who take it.
//!
//! Guarantees:
//! * Fair: keys are taken in the order in which they were added, or by rank if the taker ranks them.
//! * Stingy: a key that is added several times before it is taken is taken once.
//! * Exclusive: a key is never with two workers; added while with one, it is taken again after that.
//! * Delayed keys wait apart, each for its earliest time; adding a key takes it out of there.
//! * Failing keys rest longer each time and delay nobody else.
//! * After [`Queue::close`], what is queued is handed out, then nothing.

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

/// The most causes of coalesced adds that a key keeps, so that a key that is not taken stays bounded.
pub const MAX_CAUSES: usize = 8;

/// The items of a queue.
pub trait Item: Clone + Debug + Eq + Hash + Ord + Send + 'static {}
impl<K: Clone + Debug + Eq + Hash + Ord + Send + 'static> Item for K {}

/// Keys that need a look. Clones are the same queue.
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
    /// An empty queue; `name` labels its metrics.
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

    /// The key needs a look, for this cause.
    pub fn add(&self, key: K, cause: Option<Cause>) {
        self.change(|state, now| state.add(key, cause, now));
    }

    /// The key needs a look after this time, or earlier if something else asks for one earlier.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.change(|state, now| state.add_at(key, Vec::new(), Rest::Again, now + delay, now));
    }

    /// The next key, as soon as there is one; `None` once the queue is closed and drained.
    pub async fn next(&self) -> Option<Ticket<K>> {
        self.taken_by(|| self.take()).await
    }

    /// Up to `count` keys, as soon as there is one: of all that are queued, those of the lowest ranks. `None` once the
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
            // Registered before looking, so that no change falls in between.
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

    /// Takes no more keys; forgets those that are delayed.
    pub fn close(&self) {
        self.shared.state.lock().close();
        self.shared.changed.notify_waiters();
    }

    /// Returns the number of keys that can be taken now.
    pub fn len(&self) -> usize {
        self.load().depth
    }

    /// Whether no key can be taken now.
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

    /// `rank` is called without a lock: it may be slow, and look at anything.
    fn take_batch<R: Ord>(&self, count: usize, rank: impl Fn(&K) -> R) -> Next<Vec<Ticket<K>>> {
        let many = self.shared.state.lock().more_than(count, Instant::now());
        if let Some(keys) = many {
            let ranks: HashMap<K, R> = keys
                .into_iter()
                .map(|key| (key.clone(), rank(&key)))
                .collect();
            // Keys that were added meanwhile go last.
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
            // Adds that came while everybody was busy left one wake-up for all of them: pass it on.
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
