//! The versions of an object, newest first, as far back as the store's history reaches.

use std::sync::Arc;

use serde_json::Value;
use setpoint_codec::{Difference, diff};
use setpoint_model::Revision;
use setpoint_proto::setpoint::{HistoryEnd, WriteType};
use setpoint_proto::{ApiError, Cause};

use crate::offload::offload;
use crate::registry::{AtLeast, Before, Cached, Registry, RequestContext, Target, errors};

/// The versions of one object.
#[derive(Clone, Debug)]
pub struct History {
    /// Newest first.
    pub versions: Vec<Version>,
    /// The reason for which there are no earlier versions.
    pub end: HistoryEnd,
}

/// An object as one write left it.
#[derive(Clone, Debug)]
pub struct Version {
    /// The revision of the write.
    pub revision: Revision,
    /// The object's generation after the write.
    pub generation: i64,
    /// The effect of the write.
    pub write: WriteType,
    /// The cause of the write.
    pub cause: Option<Cause>,
    /// The fields that the write changed; empty unless `write` is `Changed`.
    pub changes: Vec<Difference>,
    /// The object after the write; for a deletion, before it.
    pub object: Arc<Cached>,
}

impl Registry {
    /// Returns at most `limit` versions of an object, which need not exist any more.
    ///
    /// # Errors
    /// Those of a store that cannot be reached.
    pub async fn history(
        &self,
        _context: &RequestContext,
        target: &Target,
        limit: usize,
    ) -> Result<History, ApiError> {
        let (kind, key) = (target.kind, target.key());
        let mut history = History {
            versions: Vec::new(),
            end: HistoryEnd::Unknown,
        };
        let (mut write, mut object) = match self.cache().get(kind, &key, AtLeast::Newest).await? {
            Some(object) => (WriteType::Changed, object),
            None => match self.cache().tombstone(kind, &key).await? {
                Some(deleted) => (WriteType::Deleted, deleted),
                None => return Ok(history),
            },
        };
        while history.versions.len() < limit {
            let before = self.cache().before(kind, &key, object.revision).await?;
            let (known_write, earlier, end) = match (write, before) {
                (write, Before::Version(earlier)) => (write, Some(earlier), HistoryEnd::Limit),
                (WriteType::Deleted, _) => (WriteType::Deleted, None, HistoryEnd::Compacted),
                (_, Before::Nothing) => (WriteType::Created, None, HistoryEnd::Created),
                (_, Before::Forgotten) => (WriteType::Found, None, HistoryEnd::Compacted),
            };
            let bytes = object.raw.len();
            let version = || Version::new(known_write, object, earlier.as_deref());
            let version = offload(bytes, version).await?;
            history.versions.push(version);
            history.end = end;
            match earlier {
                Some(earlier) => (write, object) = (WriteType::Changed, earlier),
                None => break,
            }
        }
        Ok(history)
    }
}

impl Version {
    fn new(
        write: WriteType,
        object: Arc<Cached>,
        earlier: Option<&Cached>,
    ) -> Result<Self, ApiError> {
        let changes = match (write, earlier) {
            (WriteType::Changed, Some(earlier)) => differences(earlier, &object)?,
            _ => Vec::new(),
        };
        let decoded = errors::readable(object.decode())?;
        Ok(Self {
            revision: object.revision,
            generation: decoded.meta().generation,
            write,
            cause: object.cause(),
            changes,
            object,
        })
    }
}

/// Returns the fields in which two versions of one object differ.
///
/// # Errors
/// `InternalError` if a version cannot be decoded.
pub fn differences(before: &Cached, after: &Cached) -> Result<Vec<Difference>, ApiError> {
    Ok(diff(after.kind, &json(before)?, &json(after)?))
}

/// Returns the object as JSON.
pub fn json(object: &Cached) -> Result<Value, ApiError> {
    let text = errors::readable(object.decode())?.to_json();
    errors::readable(serde_json::from_slice(&text))
}
