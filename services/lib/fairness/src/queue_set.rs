//! The queues and seats of a level (upstream: `queueset`, Fair Queuing for Server Requests).
//!
//! ```text
//!            arrive                        dispatch                    finish             release
//!   request ───────▶ waiting in a queue ─────────────▶ executing ─────────────▶ lingering ───────▶ gone
//!              │            │ withdraw                     │ withdraw                ▲
//!              └─▶ rejected └─▶ gone                       └─────────────────────────┘
//! ```
//! * A request holds its seats from its dispatch to its release: no more than the limit, or one request alone.
//! * The next request is that which ends first in virtual time, the time in which all queues with requests are served
//!   at the same rate. If it does not fit, none other is dispatched instead, or wide requests would wait for ever.
//! * Every change dispatches as many requests as possible, and returns what wakes them.
//!
//! A queue exists while it has requests: an empty one has no state that counts.

mod dispatched;
mod dump;

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use crate::dealer::Dealer;
use crate::demand::{Integrator, Observed};
use crate::queue::{ESTIMATE, Queue, Request};
use crate::work::Work;

pub use dispatched::{Bounds, Dispatched};
pub use dump::{QueueDump, RequestDump};

/// The queues of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queuing {
    /// The number of queues.
    pub queues: u32,
    /// The queues that are dealt to a flow.
    pub hand: u32,
    /// The most requests in a queue.
    pub length: usize,
}

/// A request in a set. It must be withdrawn or finished once.
#[derive(Debug)]
#[must_use]
pub struct Ticket {
    number: u64,
    queue: Option<u32>,
}

/// A request that was not rejected.
#[derive(Debug)]
#[must_use]
pub struct Arrived<W> {
    /// The request.
    pub ticket: Ticket,
    /// Whether it is executed. Otherwise it waits, and needs a waker.
    pub executes: bool,
    /// The requests in the queue that it was put into, itself included.
    pub queue_length: usize,
    /// The wakers of others that are executed now.
    pub woken: Vec<W>,
}

/// Why a request is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// There are no queues, and not enough seats.
    ConcurrencyLimit,
    /// Its queue has no place.
    QueueFull,
}

/// The end of a request.
#[derive(Debug)]
#[must_use]
pub struct Finished<W> {
    /// The seats that are to be released later, and after what time.
    pub lingering: Option<(usize, Duration)>,
    /// The wakers of others that are executed now.
    pub woken: Vec<W>,
}

/// The requests of a set since its begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Those that were executed.
    pub dispatched: u64,
    /// Those that were not.
    pub rejected: u64,
    /// Those of them whose time was over.
    pub timed_out: u64,
    /// Those of them whose clients were gone.
    pub cancelled: u64,
    /// The times when seats were free, but not enough for the next request.
    pub not_accommodated: u64,
}

/// The queues and seats of a level. `D` describes a request, `W` wakes one that waits.
#[derive(Debug)]
pub struct QueueSet<D, W> {
    queuing: Option<Queuing>,
    limit: usize,
    queues: BTreeMap<u32, Queue<D, W>>,
    executing: HashMap<u64, (Option<u32>, Request<D>)>,
    waiting: usize,
    seats: usize,
    seats_waiting: usize,
    /// The virtual time: the seat-seconds that each queue with requests was entitled to.
    virtual_time: f64,
    synced: Instant,
    /// The queue that was dispatched last; of equals, the one after it is next.
    last: u32,
    number: u64,
    demand: Integrator,
    totals: Totals,
    last_dispatch: Option<Dispatched>,
}

impl<D, W> QueueSet<D, W> {
    /// Returns a set with a limit of seats.
    pub fn new(queuing: Option<Queuing>, limit: usize, now: Instant) -> Self {
        Self {
            queuing,
            limit,
            queues: BTreeMap::new(),
            executing: HashMap::new(),
            waiting: 0,
            seats: 0,
            seats_waiting: 0,
            virtual_time: 0.0,
            synced: now,
            last: 0,
            number: 0,
            demand: Integrator::new(now),
            totals: Totals::default(),
            last_dispatch: None,
        }
    }

    /// Changes the queues. Requests in queues that are no longer dealt are served as before.
    pub fn set_queuing(&mut self, queuing: Option<Queuing>) {
        self.queuing = queuing;
    }

    /// Changes the limit of seats.
    #[must_use]
    pub fn set_limit(&mut self, now: Instant, limit: usize) -> Vec<W> {
        self.sync(now);
        self.limit = limit;
        self.dispatch(now)
    }

    /// Adds a request of the flow with a hash.
    ///
    /// # Errors
    /// Why it is rejected.
    pub fn arrive(
        &mut self,
        now: Instant,
        hash: u64,
        work: Work,
        about: D,
    ) -> Result<Arrived<W>, Rejected> {
        self.sync(now);
        let request = Request {
            about,
            work,
            arrived: now,
            arrived_at: self.virtual_time,
            started: None,
        };
        let arrived = match self.queuing {
            None => self.execute_at_once(now, request),
            Some(queuing) => self.enqueue(now, queuing, hash, request),
        };
        if arrived.is_err() {
            self.totals.rejected += 1;
        }
        arrived
    }

    /// Sets what wakes a request that waits.
    pub fn wake_by(&mut self, ticket: &Ticket, waker: W) {
        let queue = ticket.queue.and_then(|index| self.queues.get_mut(&index));
        if let Some(waiting) = queue.and_then(|queue| queue.waiting.get_mut(&ticket.number)) {
            waiting.waker = Some(waker);
        }
    }

    /// Ends a request before it was executed, because its time was over or its client is gone. It may have been
    /// dispatched meanwhile.
    pub fn withdraw(&mut self, now: Instant, ticket: Ticket, timed_out: bool) -> Finished<W> {
        if !self.is_waiting(&ticket) {
            return self.finish(now, ticket);
        }
        self.sync(now);
        match timed_out {
            true => self.totals.timed_out += 1,
            false => self.totals.cancelled += 1,
        }
        self.totals.rejected += 1;
        if let Some(index) = ticket.queue
            && let Some(queue) = self.queues.get_mut(&index)
            && let Some(removed) = queue.remove(ticket.number)
        {
            queue.catch_up();
            self.waiting -= 1;
            self.seats_waiting -= removed.request.work.seats();
            self.remove_if_idle(index);
        }
        Finished {
            lingering: None,
            woken: self.dispatch(now),
        }
    }

    /// Ends a request that was executed.
    pub fn finish(&mut self, now: Instant, ticket: Ticket) -> Finished<W> {
        self.sync(now);
        let Some((index, request)) = self.executing.remove(&ticket.number) else {
            return Finished {
                lingering: None,
                woken: Vec::new(),
            };
        };
        if let Some(index) = index {
            self.leave_queue(now, index, &request);
        }
        let (work, seats) = (request.work, request.work.seats());
        if !work.additional.is_zero() {
            return Finished {
                lingering: Some((seats, work.additional)),
                // Its queue has one request less, but the seats are the same.
                woken: Vec::new(),
            };
        }
        self.seats -= seats;
        Finished {
            lingering: None,
            woken: self.dispatch(now),
        }
    }

    /// Releases the seats of a request that has ended.
    #[must_use]
    pub fn release(&mut self, now: Instant, seats: usize) -> Vec<W> {
        self.sync(now);
        self.seats = self.seats.saturating_sub(seats);
        self.dispatch(now)
    }

    /// Returns the demand for seats since the last call.
    pub fn take_demand(&mut self, now: Instant) -> Observed {
        self.demand.reset(now)
    }

    /// Returns whether the request still waits.
    pub fn is_waiting(&self, ticket: &Ticket) -> bool {
        let queue = ticket.queue.and_then(|index| self.queues.get(&index));
        queue.is_some_and(|queue| queue.waiting.contains_key(&ticket.number))
    }

    /// Returns whether there are neither requests nor seats in use.
    pub fn is_idle(&self) -> bool {
        self.waiting == 0 && self.executing.is_empty() && self.seats == 0
    }

    /// Returns the number of waiting requests.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Returns the number of requests that are executed.
    pub fn executing(&self) -> usize {
        self.executing.len()
    }

    /// Returns the seats in use.
    pub fn seats(&self) -> usize {
        self.seats
    }

    /// Returns the seats that requests wait for.
    pub fn seats_waiting(&self) -> usize {
        self.seats_waiting
    }

    /// Returns the most requests that wait.
    pub fn places(&self) -> usize {
        let places = |queuing: Queuing| (queuing.queues as usize).saturating_mul(queuing.length);
        self.queuing.map_or(0, places)
    }

    /// Returns the request that is dispatched next, if one waits.
    pub fn next(&self) -> Option<&D> {
        let (_, head) = self.queues.get(&self.next_queue()?)?.head()?;
        Some(&head.about)
    }

    /// Returns the limit of seats.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the virtual time, in seat-seconds.
    pub fn virtual_time(&self) -> f64 {
        self.virtual_time
    }

    /// Returns the requests since its begin.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    fn execute_at_once(
        &mut self,
        now: Instant,
        request: Request<D>,
    ) -> Result<Arrived<W>, Rejected> {
        if !self.accommodates(request.work.seats()) {
            return Err(Rejected::ConcurrencyLimit);
        }
        let number = self.next_number();
        self.execute(now, number, None, request);
        self.observe(now);
        let ticket = Ticket {
            number,
            queue: None,
        };
        Ok(Arrived {
            ticket,
            executes: true,
            queue_length: 0,
            woken: Vec::new(),
        })
    }

    fn enqueue(
        &mut self,
        now: Instant,
        queuing: Queuing,
        hash: u64,
        request: Request<D>,
    ) -> Result<Arrived<W>, Rejected> {
        let index = self.choose(queuing, hash);
        let length = self
            .queues
            .get(&index)
            .map_or(0, |queue| queue.waiting.len());
        if length >= queuing.length {
            return Err(Rejected::QueueFull);
        }
        let number = self.next_number();
        self.waiting += 1;
        self.seats_waiting += request.work.seats();
        let virtual_time = self.virtual_time;
        let queue = self.queues.entry(index);
        queue
            .or_insert_with(|| Queue::new(virtual_time))
            .push(number, request);
        let woken = self.dispatch(now);
        let ticket = Ticket {
            number,
            queue: Some(index),
        };
        Ok(Arrived {
            executes: !self.is_waiting(&ticket),
            ticket,
            queue_length: length + 1,
            woken,
        })
    }

    /// Returns the queue of the hand in which the least work waits. Of equals it is not always the first, which flows
    /// with hands in common would share.
    fn choose(&self, queuing: Queuing, hash: u64) -> u32 {
        let dealer = Dealer::new(queuing.queues, queuing.hand);
        let hand: Vec<u32> = dealer.deal(hash).collect();
        let offset = (self.number % u64::from(dealer.hand_size())) as usize;
        let work = |index: &u32| self.queues.get(index).map_or(0.0, |queue| queue.work);
        let turned = hand[offset..].iter().chain(&hand[..offset]);
        let least = turned.min_by(|a, b| work(a).total_cmp(&work(b)));
        least.copied().unwrap_or_default()
    }

    fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// Advances the virtual time: the seats are divided among the queues with requests.
    fn sync(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.synced).as_secs_f64();
        self.synced = self.synced.max(now);
        if !self.queues.is_empty() {
            let wanted = (self.seats + self.seats_waiting).min(self.limit);
            self.virtual_time += passed * wanted as f64 / self.queues.len() as f64;
        }
    }

    /// Executes as many requests as possible, and returns their wakers.
    fn dispatch(&mut self, now: Instant) -> Vec<W> {
        let mut woken = Vec::new();
        while self.waiting > 0 && self.seats < self.limit {
            let Some(index) = self.next_queue() else {
                break;
            };
            let Some((number, seats)) = self.head_of(index) else {
                break;
            };
            if !self.accommodates(seats) {
                self.totals.not_accommodated += 1;
                break;
            }
            woken.extend(self.dispatch_head(now, index, number));
        }
        self.observe(now);
        woken
    }

    /// Returns the queue whose next request ends first in virtual time.
    fn next_queue(&self) -> Option<u32> {
        let after = self.last.saturating_add(1);
        let turned = self.queues.range(after..).chain(self.queues.range(..after));
        let finishes = turned.filter_map(|(index, queue)| Some((*index, queue.finish()?)));
        let first = finishes.min_by(|(_, a), (_, b)| a.total_cmp(b));
        first.map(|(index, _)| index)
    }

    fn head_of(&self, index: u32) -> Option<(u64, usize)> {
        let (number, head) = self.queues.get(&index)?.head()?;
        Some((number, head.work.seats()))
    }

    fn dispatch_head(&mut self, now: Instant, index: u32, number: u64) -> Option<W> {
        self.last_dispatch = self.dispatched(index);
        let queue = self.queues.get_mut(&index)?;
        let waiting = queue.remove(number)?;
        let mut request = waiting.request;
        self.waiting -= 1;
        self.seats_waiting -= request.work.seats();
        request.work = request.work.within(self.limit);
        queue.next += request.seat_seconds();
        queue.executing += 1;
        queue.seats += request.work.seats();
        queue.catch_up();
        self.last = index;
        self.execute(now, number, Some(index), request);
        waiting.waker
    }

    fn execute(&mut self, now: Instant, number: u64, queue: Option<u32>, mut request: Request<D>) {
        request.started = Some(now);
        self.seats += request.work.seats();
        self.totals.dispatched += 1;
        self.executing.insert(number, (queue, request));
    }

    /// Returns whether a request may be executed now. One that is wider than the limit is executed alone.
    fn accommodates(&self, seats: usize) -> bool {
        match seats > self.limit {
            true => self.seats == 0,
            false => self.seats + seats <= self.limit,
        }
    }

    /// Corrects the virtual time of a queue by the time that a request has really taken.
    fn leave_queue(&mut self, now: Instant, index: u32, request: &Request<D>) {
        if let Some(queue) = self.queues.get_mut(&index) {
            let started = request.started.unwrap_or(now);
            let took = now.saturating_duration_since(started).as_secs_f64();
            queue.next += request.work.initial as f64 * (took - ESTIMATE.as_secs_f64());
            queue.executing = queue.executing.saturating_sub(1);
            queue.seats = queue.seats.saturating_sub(request.work.seats());
            queue.catch_up();
        }
        self.remove_if_idle(index);
    }

    fn remove_if_idle(&mut self, index: u32) {
        if self.queues.get(&index).is_some_and(Queue::is_idle) {
            self.queues.remove(&index);
        }
    }

    fn observe(&mut self, now: Instant) {
        self.demand.set(now, self.seats + self.seats_waiting);
    }
}
