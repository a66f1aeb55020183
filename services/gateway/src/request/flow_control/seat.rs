//! The seat of a request, which is free again when the request ends or is dropped.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::HeaderMap;
use parking_lot::Mutex;
use setpoint_fairness::{Rejected, Ticket, Work, distinguisher, flow_hash};
use setpoint_kinds::Identity;
use setpoint_proto::ApiError;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{sleep, timeout};

use super::level::Kind;
use super::level_metrics::Counted;
use super::limited::{About, Entry, Limited};
use super::matched::{Matched, set_headers};
use super::schema::Schema;
use crate::request::Attributes;

/// The admission of a request to be executed. Clones are the same; its seat is released with the last one.
#[derive(Clone, Debug)]
pub(crate) struct Admission(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// `None` without priority and fairness.
    classified: Option<Classified>,
    seat: Mutex<Option<Seat>>,
}

/// A request with its schema.
#[derive(Debug)]
struct Classified {
    schema: Arc<Schema>,
    work: Work,
    wait: Duration,
    user: Arc<Identity>,
    asked: Arc<Attributes>,
}

impl Admission {
    pub(super) fn new(
        schema: Arc<Schema>,
        work: Work,
        wait: Duration,
        user: &Identity,
        asked: &Arc<Attributes>,
    ) -> Self {
        // Its groups and other attributes are not shown.
        let user = Arc::new(Identity {
            name: user.name.clone(),
            ..Identity::default()
        });
        let classified = Classified {
            schema,
            work,
            wait,
            user,
            asked: asked.clone(),
        };
        Self(Arc::new(Inner {
            classified: Some(classified),
            seat: Mutex::default(),
        }))
    }

    /// Returns the admission of a request without a schema.
    pub(super) fn unclassified() -> Self {
        Self(Arc::new(Inner {
            classified: None,
            seat: Mutex::default(),
        }))
    }

    /// Holds a seat that the request has.
    pub(super) fn begin(&self, seat: Seat) {
        *self.0.seat.lock() = Some(seat);
    }

    /// Gives the seat back for as long as the request waits for its own client. Without priority and fairness, the
    /// place of a request is its own until it ends.
    pub(crate) fn rest(&self) {
        if self.0.classified.is_some() {
            let seat = self.0.seat.lock().take();
            drop(seat);
        }
    }

    /// Takes a seat, at once or after a wait.
    ///
    /// # Errors
    /// `TooManyRequests` when a queue is full or the wait times out.
    pub(crate) async fn resume(&self) -> Result<(), ApiError> {
        if let Some(classified) = &self.0.classified {
            let seat = classified.seat().await?;
            self.begin(seat);
        }
        Ok(())
    }

    /// Sets the headers of the response.
    pub(crate) fn set_headers(&self, headers: &mut HeaderMap) {
        if let Some(classified) = &self.0.classified {
            set_headers(&classified.schema, headers);
        }
    }

    /// Notes the schema for the headers of the response.
    pub(crate) fn note_in(&self, matched: &Matched) {
        if let Some(classified) = &self.0.classified {
            matched.note(&classified.schema);
        }
    }

    /// Returns the seat, which is no longer released with the last clone.
    pub(super) fn hand_over(&self) -> Option<Seat> {
        self.0.seat.lock().take()
    }
}

impl Classified {
    async fn seat(&self) -> Result<Seat, ApiError> {
        let schema = &self.schema;
        let limited = match &schema.level.kind {
            Kind::Exempt(exempt) => {
                let held = Held::Exempt(exempt.begin(self.about()));
                return Ok(Seat::executing(schema, held, 1, &self.asked));
            }
            Kind::Limited(limited) => limited,
        };
        let (hash, seats) = (self.hash(), self.work.seats());
        schema.series.estimated(seats);
        let entry = limited.arrive(hash, self.work, self.about());
        let Entry {
            ticket,
            wait,
            queue_length,
        } = entry.map_err(|why| schema.level.reject(schema, reason(why)))?;
        schema.series.enqueued(queue_length);
        let mut waiting = Waiting::new(schema, limited, ticket, seats);
        let Some(wait) = wait else {
            return Ok(waiting.executes(&self.asked, false));
        };
        schema.series.waits(seats, true);
        waiting.queued = Some(Counted::waiting(&self.asked.verb));
        // Both outcomes are read from the set: one may time out at the moment when it is dispatched.
        let woken = timeout(self.wait, wait).await;
        if woken.is_err() && !waiting.is_dispatched() {
            return Err(schema.level.reject(schema, "time-out"));
        }
        Ok(waiting.executes(&self.asked, true))
    }

    fn hash(&self) -> u64 {
        let digest = super::digest(&self.user, &self.asked);
        let method = self.schema.spec.distinguisher_method.as_ref();
        flow_hash(&self.schema.name, distinguisher(&digest, method))
    }

    fn about(&self) -> About {
        About {
            schema: self.schema.clone(),
            user: self.user.clone(),
            asked: self.asked.clone(),
        }
    }
}

fn reason(why: Rejected) -> &'static str {
    match why {
        Rejected::ConcurrencyLimit => "concurrency-limit",
        Rejected::QueueFull => "queue-full",
    }
}

/// A request that has arrived. If it is dropped, because its client is gone, it leaves its queue.
struct Waiting<'a> {
    schema: &'a Arc<Schema>,
    limited: &'a Arc<Limited>,
    ticket: Option<Ticket>,
    seats: usize,
    queued: Option<Counted>,
    since: Instant,
}

impl<'a> Waiting<'a> {
    fn new(
        schema: &'a Arc<Schema>,
        limited: &'a Arc<Limited>,
        ticket: Ticket,
        seats: usize,
    ) -> Self {
        Self {
            schema,
            limited,
            ticket: Some(ticket),
            seats,
            queued: None,
            since: Instant::now(),
        }
    }

    /// Ends the wait at its time. Returns whether the request was dispatched at this moment.
    fn is_dispatched(&mut self) -> bool {
        self.ticket = self
            .ticket
            .take()
            .and_then(|ticket| self.limited.time_out(ticket));
        self.ticket.is_some()
    }

    fn executes(mut self, asked: &Attributes, has_waited: bool) -> Seat {
        let ticket = self.ticket.take();
        if has_waited {
            self.ends(true);
        }
        let held = ticket.map_or(Held::Nothing, |ticket| {
            Held::Limited(self.limited.clone(), ticket)
        });
        Seat::executing(self.schema, held, self.seats, asked)
    }

    fn ends(&mut self, executed: bool) {
        if self.queued.take().is_some() {
            self.schema.series.waits(self.seats, false);
            self.schema.series.waited(self.since.elapsed(), executed);
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.ends(false);
        if let Some(ticket) = self.ticket.take() {
            // If it was dispatched meanwhile, it was not executed: nothing is told to watchers.
            let lingering = self.limited.leave(ticket);
            if let Some((seats, _)) = lingering {
                self.limited.release(seats);
            }
        }
    }
}

/// The right to be executed. Dropping it passes it to the next request.
#[derive(Debug)]
pub(crate) struct Seat {
    held: Held,
    of: Option<Execution>,
    _counted: Option<Counted>,
}

#[derive(Debug)]
enum Held {
    Nothing,
    Exempt(u64),
    Limited(Arc<Limited>, Ticket),
    /// Without priority and fairness.
    InFlight {
        _permit: OwnedSemaphorePermit,
    },
}

/// A request that is executed.
#[derive(Debug)]
struct Execution {
    schema: Arc<Schema>,
    seats: usize,
    is_watch: bool,
    since: Instant,
}

impl Seat {
    fn executing(schema: &Arc<Schema>, held: Held, seats: usize, asked: &Attributes) -> Self {
        schema.series.dispatched(seats);
        Self {
            held,
            _counted: Some(Counted::executing(&asked.verb)),
            of: Some(Execution {
                schema: schema.clone(),
                seats,
                is_watch: asked.verb == "watch",
                since: Instant::now(),
            }),
        }
    }

    /// Returns the place of a request without priority and fairness.
    pub(super) fn in_flight(permit: Option<OwnedSemaphorePermit>, verb: &str) -> Self {
        Self {
            held: permit.map_or(Held::Nothing, |_permit| Held::InFlight { _permit }),
            of: None,
            _counted: Some(Counted::executing(verb)),
        }
    }

    /// Returns the place of a watch without priority and fairness, which is not limited.
    pub(super) fn of_watch() -> Self {
        Self {
            held: Held::Nothing,
            of: None,
            _counted: None,
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let held = std::mem::replace(&mut self.held, Held::Nothing);
        let Some(execution) = self.of.take() else {
            return;
        };
        let Execution { schema, seats, .. } = &execution;
        schema
            .series
            .executed(execution.since.elapsed(), execution.is_watch);
        match (held, &schema.level.kind) {
            (Held::Exempt(number), Kind::Exempt(exempt)) => {
                exempt.end(number);
                schema.series.released(*seats);
            }
            (Held::Limited(limited, ticket), _) => match limited.leave(ticket) {
                None => schema.series.released(*seats),
                Some((held, after)) => {
                    let seats = Lingering {
                        held,
                        counted: *seats,
                    };
                    linger(schema.clone(), limited, seats, after);
                }
            },
            _ => schema.series.released(*seats),
        }
    }
}

/// The seats of a request that has ended, which are released later.
#[derive(Clone, Copy)]
struct Lingering {
    /// Those that it holds: no more than its level has.
    held: usize,
    /// Those that metrics count.
    counted: usize,
}

/// Releases seats after some time, or now if there is no runtime any more.
fn linger(schema: Arc<Schema>, limited: Arc<Limited>, seats: Lingering, after: Duration) {
    let release = move || {
        limited.release(seats.held);
        schema.series.released(seats.counted);
    };
    match Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn(async move {
            sleep(after).await;
            release();
        })),
        Err(_) => release(),
    }
}
