//! A priority level in force.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use setpoint_fairness::{Adjustment, LevelSpec, QueueSet, RetryAfter};
use setpoint_proto::meta::StatusDetails;
use setpoint_proto::{ApiError, Reason};

use super::exempt::Exempt;
use super::limited::Limited;
use super::schema::Schema;

/// A priority level. It outlives its configuration until its last request has ended.
#[derive(Debug)]
pub(super) struct Level {
    name: String,
    uid: Mutex<String>,
    is_quiescing: AtomicBool,
    retry_after: Mutex<RetryAfter>,
    pub(super) kind: Kind,
}

/// Whether the requests of a level are limited.
#[derive(Debug)]
pub(super) enum Kind {
    Exempt(Exempt),
    Limited(Arc<Limited>),
}

impl Level {
    pub(super) fn new(spec: &LevelSpec) -> Self {
        let kind = match spec.is_exempt {
            true => Kind::Exempt(Exempt::new(&spec.name, spec.limits)),
            false => Kind::Limited(Arc::new(Limited::new(spec))),
        };
        Self {
            name: spec.name.clone(),
            uid: Mutex::new(spec.uid.clone()),
            is_quiescing: AtomicBool::default(),
            retry_after: Mutex::default(),
            kind,
        }
    }

    /// Changes its configuration, which is of the same kind.
    pub(super) fn configure(&self, spec: &LevelSpec) {
        self.is_quiescing.store(false, Ordering::Relaxed);
        spec.uid.clone_into(&mut self.uid.lock());
        match &self.kind {
            Kind::Exempt(exempt) => exempt.configure(spec.limits),
            Kind::Limited(limited) => limited.configure(spec),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn uid(&self) -> String {
        self.uid.lock().clone()
    }

    pub(super) fn is_exempt(&self) -> bool {
        matches!(self.kind, Kind::Exempt(_))
    }

    /// Returns whether its configuration is gone.
    pub(super) fn is_quiescing(&self) -> bool {
        self.is_quiescing.load(Ordering::Relaxed)
    }

    /// Notes that its configuration is gone. Returns whether it still has requests.
    pub(super) fn quiesce(&self) -> bool {
        self.is_quiescing.store(true, Ordering::Relaxed);
        !self.is_idle()
    }

    pub(super) fn is_idle(&self) -> bool {
        match &self.kind {
            Kind::Exempt(exempt) => exempt.executing() == 0,
            Kind::Limited(limited) => limited.is_idle(),
        }
    }

    /// Returns the most seats that a request takes.
    pub(super) fn max_seats(&self) -> usize {
        match &self.kind {
            Kind::Exempt(_) => usize::MAX,
            Kind::Limited(limited) => limited.max_seats(),
        }
    }

    /// Returns the demand since the last time, for an adjustment.
    pub(super) fn demand(&self, now: Instant) -> Adjustment {
        match &self.kind {
            Kind::Exempt(exempt) => exempt.demand(),
            Kind::Limited(limited) => limited.demand(now),
        }
    }

    /// Returns the limit of seats now; 0 for an exempt level.
    pub(super) fn limit(&self) -> usize {
        match &self.kind {
            Kind::Exempt(_) => 0,
            Kind::Limited(limited) => limited.read(QueueSet::limit),
        }
    }

    /// Sets the limit of seats; an exempt level has none.
    pub(super) fn set_limit(&self, now: Instant, limit: usize) {
        if let Kind::Limited(limited) = &self.kind {
            limited.set_limit(now, limit);
        }
    }

    /// Returns the most requests that wait.
    pub(super) fn places(&self) -> usize {
        match &self.kind {
            Kind::Exempt(_) => 0,
            Kind::Limited(limited) => limited.read(QueueSet::places),
        }
    }

    /// Sets what its seats in use are a part of: its limit or, without one, a tenth of all seats.
    pub(super) fn set_metric_limits(&self, limit: usize, total: usize) {
        let seats = if limit > 0 { limit } else { total.div_ceil(10) };
        let series = match &self.kind {
            Kind::Exempt(exempt) => &exempt.series,
            Kind::Limited(limited) => &limited.series,
        };
        series.set_limits(seats, self.places());
    }

    /// Counts a rejection, and returns the error.
    pub(super) fn reject(&self, schema: &Schema, reason: &str) -> ApiError {
        schema.series.rejected(&self.name, &schema.name, reason);
        let second = tokio::time::Instant::now().into_std();
        let second = second
            .saturating_duration_since(*super::metrics::START)
            .as_secs();
        let seconds = self.retry_after.lock().rejected(second);
        too_many(i32::try_from(seconds).unwrap_or(i32::MAX))
    }
}

/// Returns the error of a request that is rejected.
pub(super) fn too_many(seconds: i32) -> ApiError {
    let message = "Too many requests, please try again later.";
    ApiError::new(Reason::TooManyRequests, message).with_details(StatusDetails {
        retry_after_seconds: seconds,
        ..Default::default()
    })
}
