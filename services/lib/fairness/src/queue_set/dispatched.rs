//! The virtual times of a dispatch, for metrics.

use super::QueueSet;
use crate::queue::{ESTIMATE, Queue};

/// The least and the greatest of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

/// The virtual times of a dispatch, in seat-seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dispatched {
    /// That of the dispatch.
    pub virtual_time: f64,
    /// That at which the request begins.
    pub begin: f64,
    /// Those at which the next requests of all queues with waiting ones begin.
    pub begins: Bounds,
    /// The same, less the estimated work of those that are executed.
    pub discounted: Bounds,
}

impl Bounds {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let none = Self {
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        };
        values.fold(none, |bounds, value| Self {
            min: bounds.min.min(value),
            max: bounds.max.max(value),
        })
    }
}

impl<D, W> QueueSet<D, W> {
    /// Returns the times of the last dispatch from a queue.
    pub fn last_dispatch(&self) -> Option<&Dispatched> {
        self.last_dispatch.as_ref()
    }

    /// Returns the times of a dispatch from a queue now.
    pub(super) fn dispatched(&self, index: u32) -> Option<Dispatched> {
        let waiting = || self.queues.values().filter(|one| !one.waiting.is_empty());
        let work = |queue: &Queue<D, W>| queue.seats as f64 * ESTIMATE.as_secs_f64();
        Some(Dispatched {
            virtual_time: self.virtual_time,
            begin: self.queues.get(&index)?.next,
            begins: Bounds::of(waiting().map(|queue| queue.next)),
            discounted: Bounds::of(waiting().map(|queue| queue.next - work(queue))),
        })
    }
}
