//! The queues and requests of a set, to be shown.

use std::collections::BTreeMap;
use std::time::Instant;

use super::QueueSet;
use crate::queue::Request;
use crate::work::Work;

/// A queue, to be shown.
#[derive(Debug)]
pub struct QueueDump<'a, D> {
    /// Its number.
    pub index: u32,
    /// The requests that wait, in their order.
    pub waiting: Vec<RequestDump<'a, D>>,
    /// Those that are executed.
    pub executing: Vec<RequestDump<'a, D>>,
    /// The seats of those that are executed.
    pub seats: usize,
    /// The virtual time at which its next request begins.
    pub next: f64,
    /// The seat-seconds of those that wait.
    pub work: f64,
}

/// A request, to be shown.
#[derive(Debug)]
pub struct RequestDump<'a, D> {
    /// Its description.
    pub about: &'a D,
    /// Its seats.
    pub work: Work,
    /// When it arrived.
    pub arrived: Instant,
    /// When it began to be executed.
    pub started: Option<Instant>,
}

impl<'a, D> RequestDump<'a, D> {
    fn of(request: &'a Request<D>) -> Self {
        Self {
            about: &request.about,
            work: request.work,
            arrived: request.arrived,
            started: request.started,
        }
    }
}

impl<D> QueueDump<'_, D> {
    fn empty(index: u32, next: f64) -> Self {
        Self {
            index,
            waiting: Vec::new(),
            executing: Vec::new(),
            seats: 0,
            next,
            work: 0.0,
        }
    }
}

impl<D, W> QueueSet<D, W> {
    /// Returns the queues. One without requests would begin its next one now.
    pub fn queues(&self) -> Vec<QueueDump<'_, D>> {
        let configured = self.queuing.map_or(0, |queuing| queuing.queues);
        let empty = |index| (index, QueueDump::empty(index, self.virtual_time));
        let mut dumps: BTreeMap<_, _> = (0..configured).map(empty).collect();
        for (index, queue) in &self.queues {
            let waiting = queue.waiting.values();
            let dump = QueueDump {
                index: *index,
                waiting: waiting.map(|one| RequestDump::of(&one.request)).collect(),
                executing: Vec::with_capacity(queue.executing),
                seats: 0,
                next: queue.next,
                work: queue.work,
            };
            dumps.insert(*index, dump);
        }
        for (index, request) in self.executing.values() {
            if let Some(dump) = index.and_then(|index| dumps.get_mut(&index)) {
                dump.seats += request.work.seats();
                dump.executing.push(RequestDump::of(request));
            }
        }
        dumps.into_values().collect()
    }

    /// Returns the requests that are executed without having been in a queue.
    pub fn queueless(&self) -> Vec<RequestDump<'_, D>> {
        let executing = self.executing.values().filter(|(index, _)| index.is_none());
        executing
            .map(|(_, request)| RequestDump::of(request))
            .collect()
    }
}
