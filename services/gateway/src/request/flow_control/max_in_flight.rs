//! Limits without priority and fairness: on reads, and on writes (upstream: `WithMaxInFlightLimit`).

use std::sync::Arc;

use setpoint_kinds::Identity;
use setpoint_proto::ApiError;
use tokio::sync::Semaphore;

use super::level::too_many;
use super::seat::Seat;
use crate::request::Attributes;
use crate::request::authorization::is_master;

/// The numbers of reads and of writes that may be executed at a time.
#[derive(Debug)]
pub(super) struct MaxInFlight {
    reads: Arc<Semaphore>,
    writes: Arc<Semaphore>,
}

impl MaxInFlight {
    pub(super) fn new(reads: usize, writes: usize) -> Self {
        let limit = |number: usize| Arc::new(Semaphore::new(number.min(Semaphore::MAX_PERMITS)));
        Self {
            reads: limit(reads),
            writes: limit(writes),
        }
    }

    /// Takes a place for a request that ends. Administrators are served beyond the limit, too.
    ///
    /// # Errors
    /// `TooManyRequests` if there is none.
    pub(super) fn take(&self, user: &Identity, asked: &Attributes) -> Result<Seat, ApiError> {
        let limit = match &*asked.verb {
            "watch" => return Ok(Seat::of_watch()),
            "get" | "list" => &self.reads,
            _ => &self.writes,
        };
        match limit.clone().try_acquire_owned() {
            Ok(permit) => Ok(Seat::in_flight(Some(permit), &asked.verb)),
            Err(_) if is_master(user) => Ok(Seat::in_flight(None, &asked.verb)),
            Err(_) => Err(too_many(1)),
        }
    }
}
