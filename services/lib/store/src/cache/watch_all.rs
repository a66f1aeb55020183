//! A watch of the objects of all kinds: a cursor into the whole log. Kinds that are defined later are part of it.

use std::pin::pin;
use std::sync::Arc;

use setpoint_model::Revision;
use setpoint_proto::{ApiError, Reason};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use super::record::Record;
use super::watcher::COALESCE;
use super::{Cache, Cached, Shared};

/// The largest number of records that are read under one lock.
const MAX_RECORDS: usize = 256;

/// A write of an object.
#[derive(Clone, Debug)]
pub struct Written {
    /// The version before; `None` for a new object.
    pub old: Option<Arc<Cached>>,
    /// The version after; of a deleted object the last one, with revision and cause of the deletion.
    pub new: Arc<Cached>,
    /// Whether the object was deleted.
    pub deleted: bool,
}

/// The writes of all objects after a revision, each once and in order.
pub struct AllWatch {
    shared: Arc<Shared>,
    wake: Arc<Notify>,
    /// The number of the next record to read.
    next: u64,
    reached: Revision,
    /// The time before which the log is not read again.
    paused_until: Instant,
}

impl Cache {
    /// Watches all objects. `after` is the revision to continue after; without one, the current objects are returned,
    /// and the watch continues after them.
    ///
    /// # Errors
    /// `Expired` if the log no longer includes the revision.
    pub async fn watch_all(
        &self,
        after: Option<Revision>,
    ) -> Result<(Vec<Arc<Cached>>, AllWatch), ApiError> {
        self.reach_for_all(after).await?;
        let state = self.shared.state.read();
        let (objects, next) = match after {
            Some(revision) => (Vec::new(), state.log.after_whole(revision)?),
            None => (state.all(), state.log.next()),
        };
        let watch = AllWatch {
            wake: state.log.subscribe_whole(),
            next,
            reached: after.unwrap_or(state.revision),
            paused_until: Instant::now(),
            shared: self.shared.clone(),
        };
        Ok((objects, watch))
    }
}

impl AllWatch {
    /// Returns the revision up to which all writes were returned.
    pub fn reached(&self) -> Revision {
        self.reached
    }

    /// Waits for the next writes; returns none after a while without any.
    ///
    /// # Errors
    /// `Expired` if some of them were dropped from the log, `ServiceUnavailable` if the cache was closed.
    pub async fn next(&mut self) -> Result<Vec<Written>, ApiError> {
        let quiet = self.shared.settings.bookmark_interval;
        timeout(quiet, self.some()).await.unwrap_or(Ok(Vec::new()))
    }

    async fn some(&mut self) -> Result<Vec<Written>, ApiError> {
        loop {
            sleep_until(self.paused_until).await;
            let wake = self.wake.clone();
            let mut woken = pin!(wake.notified());
            // Enabled before the log is read, so that no record is missed in between.
            woken.as_mut().enable();
            let records = self.read()?;
            if !records.is_empty() {
                self.paused_until = Instant::now() + COALESCE;
                return Ok(records.iter().filter_map(written).collect());
            }
            woken.await;
        }
    }

    fn read(&mut self) -> Result<Vec<Arc<Record>>, ApiError> {
        let state = self.shared.state.read();
        if state.is_closed() {
            let message = "the gateway is shutting down: watch again at another one";
            return Err(ApiError::new(Reason::ServiceUnavailable, message));
        }
        let records = state.log.read_whole(self.next, MAX_RECORDS)?;
        self.next += records.len() as u64;
        self.reached = match records.last() {
            // Further records of the last revision may follow.
            Some(last) if self.next < state.log.next() => before(last.revision).max(self.reached),
            _ => state.revision.max(self.reached),
        };
        Ok(records)
    }
}

fn before(revision: Revision) -> Revision {
    Revision::from_raw(revision.raw().saturating_sub(1))
}

fn written(record: &Arc<Record>) -> Option<Written> {
    let (deleted, new) = match record.tombstone() {
        Some(last) => (true, last),
        None => (false, record.new.clone()?),
    };
    Some(Written {
        old: record.old.clone(),
        new,
        deleted,
    })
}
