//! The queues and seats of a level, for tasks that wait.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use setpoint_fairness::{
    Adjustment, Arrived, Demand, Finished, LevelSpec, Limits, QueueSet, Rejected, Ticket, Work,
};
use setpoint_kinds::Identity;
use tokio::sync::oneshot;

use super::level_metrics::LevelSeries;
use super::schema::Schema;
use crate::request::Attributes;

/// The state of a request in a queue.
#[derive(Debug)]
pub(super) struct About {
    pub(super) schema: Arc<Schema>,
    pub(super) user: Arc<Identity>,
    pub(super) asked: Arc<Attributes>,
}

type Waker = oneshot::Sender<()>;

#[derive(Debug)]
struct State {
    set: QueueSet<About, Waker>,
    limits: Limits,
    max_seats: usize,
    demand: Demand,
    /// The times without enough seats that have been counted.
    not_accommodated: u64,
}

/// The queues and seats of a level. The lock is never held across a wait.
#[derive(Debug)]
pub(super) struct Limited {
    state: Mutex<State>,
    pub(super) series: LevelSeries,
}

/// A request that has arrived.
pub(super) struct Entry {
    pub(super) ticket: Ticket,
    /// Ends the wait; `None` if the request is executed at once.
    pub(super) wait: Option<oneshot::Receiver<()>>,
    pub(super) queue_length: usize,
}

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Wakes requests that have been dispatched. One that is gone meanwhile gives its seats back itself.
fn wake(woken: Vec<Waker>) {
    for waker in woken {
        let _ = waker.send(());
    }
}

impl Limited {
    pub(super) fn new(spec: &LevelSpec) -> Self {
        let state = State {
            set: QueueSet::new(spec.queuing, spec.limits.initial(), now()),
            limits: spec.limits,
            max_seats: spec.max_seats.unwrap_or(usize::MAX),
            demand: Demand::default(),
            not_accommodated: 0,
        };
        Self {
            state: Mutex::new(state),
            series: LevelSeries::of(&spec.name),
        }
    }

    /// Changes the queues, and notes what they are now.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let changed = change(&mut state);
        self.series.observe(&state.set);
        let times = state.set.totals().not_accommodated;
        let before = std::mem::replace(&mut state.not_accommodated, times);
        if times > before
            && let Some(next) = state.set.next()
        {
            next.schema.series.not_accommodated(times - before);
        }
        changed
    }

    /// Changes the configuration. What is lent and borrowed stays as it is until the next adjustment, within the new
    /// limits.
    pub(super) fn configure(&self, spec: &LevelSpec) {
        let woken = self.change(|state| {
            state.max_seats = spec.max_seats.unwrap_or(usize::MAX);
            state.set.set_queuing(spec.queuing);
            state.limits = spec.limits;
            let current = state.set.limit();
            let current = current.clamp(spec.limits.minimum, spec.limits.maximum);
            state.set.set_limit(now(), current)
        });
        wake(woken);
    }

    pub(super) fn max_seats(&self) -> usize {
        self.state.lock().max_seats
    }

    pub(super) fn is_idle(&self) -> bool {
        self.state.lock().set.is_idle()
    }

    pub(super) fn demand(&self, now: Instant) -> Adjustment {
        let mut state = self.state.lock();
        let observed = state.set.take_demand(now);
        state.demand.update(observed);
        Adjustment {
            limits: state.limits,
            demand: state.demand,
            current: state.set.limit(),
            is_exempt: false,
        }
    }

    pub(super) fn set_limit(&self, now: Instant, limit: usize) {
        let woken = self.change(|state| state.set.set_limit(now, limit));
        wake(woken);
    }

    /// Adds a request of the flow with a hash.
    pub(super) fn arrive(&self, hash: u64, work: Work, about: About) -> Result<Entry, Rejected> {
        let (entry, woken) = self.change(|state| {
            let Arrived {
                ticket,
                executes,
                queue_length,
                woken,
            } = state.set.arrive(now(), hash, work, about)?;
            let wait = (!executes).then(|| {
                let (waker, wait) = oneshot::channel();
                state.set.wake_by(&ticket, waker);
                wait
            });
            let entry = Entry {
                ticket,
                wait,
                queue_length,
            };
            Ok((entry, woken))
        })?;
        wake(woken);
        Ok(entry)
    }

    /// Ends the wait of a request whose time is over. Returns its ticket if it was dispatched at this moment.
    pub(super) fn time_out(&self, ticket: Ticket) -> Option<Ticket> {
        let withdrawn = self.change(|state| match state.set.is_waiting(&ticket) {
            true => Ok(state.set.withdraw(now(), ticket, true)),
            false => Err(ticket),
        });
        match withdrawn {
            Ok(withdrawn) => wake(withdrawn.woken),
            Err(ticket) => return Some(ticket),
        }
        None
    }

    /// Ends a request, executed or not. Returns the seats that it still holds, and for how long.
    pub(super) fn leave(&self, ticket: Ticket) -> Option<(usize, Duration)> {
        let Finished { lingering, woken } =
            self.change(|state| state.set.withdraw(now(), ticket, false));
        wake(woken);
        lingering
    }

    /// Releases seats of a request that has ended before.
    pub(super) fn release(&self, seats: usize) {
        let woken = self.change(|state| state.set.release(now(), seats));
        wake(woken);
    }

    /// Reads the queues.
    pub(super) fn read<T>(&self, read: impl FnOnce(&QueueSet<About, Waker>) -> T) -> T {
        read(&self.state.lock().set)
    }
}
