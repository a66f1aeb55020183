//! `history`: what became of an object, write by write, back to where the store's history ends.

use std::sync::Arc;

use serde_json::Value;
use setpoint_codec::{Difference, diff};
use setpoint_model::{Revision, Verb};
use setpoint_proto::{ApiError, Cause};

use crate::heavy::heavy;
use crate::registry::{AtLeast, Before, Cached, Registry, RequestContext, Target, errors};

/// Versions of one object, the newest first.
#[derive(Clone, Debug)]
pub struct History {
    /// The newest first.
    pub versions: Vec<Version>,
    /// Why there are no more.
    pub end: End,
}

/// An object as one write left it.
#[derive(Clone, Debug)]
pub struct Version {
    /// When it was written.
    pub revision: Revision,
    /// Grows with each change of the spec.
    pub generation: i64,
    /// What the write did.
    pub what: What,
    /// Why it was written.
    pub cause: Option<Cause>,
    /// What it changed.
    pub changes: Vec<Difference>,
    /// The object; of a deletion, as it last stood.
    pub object: Arc<Cached>,
}

/// What a write did to its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// There was none.
    Created,
    /// It was otherwise.
    Changed,
    /// It is no more.
    Deleted,
    /// Nobody knows what was there before.
    Found,
}

/// Why a history goes no further back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// There was nothing before.
    Created,
    /// What was before is forgotten.
    Compacted,
    /// No more was asked for.
    Limit,
    /// Nothing is known of such an object.
    Unknown,
}

impl Registry {
    /// At most `limit` versions of an object, which need not exist any more.
    ///
    /// # Errors
    /// Those of a store that cannot be reached.
    pub async fn history(
        &self,
        context: &RequestContext,
        target: &Target,
        limit: usize,
    ) -> Result<History, ApiError> {
        self.allow(context, Verb::Get, target)?;
        let (kind, key) = (target.kind, target.key());
        let mut history = History {
            versions: Vec::new(),
            end: End::Unknown,
        };
        let (mut what, mut object) = match self.cache().get(kind, &key, AtLeast::Newest).await? {
            Some(object) => (What::Changed, object),
            None => match self.cache().tombstone(kind, &key).await? {
                Some(gone) => (What::Deleted, gone),
                None => return Ok(history),
            },
        };
        while history.versions.len() < limit {
            let before = self.cache().before(kind, &key, object.revision).await?;
            let (what_it_was, earlier, end) = match (what, before) {
                (what, Before::Version(earlier)) => (what, Some(earlier), End::Limit),
                (What::Deleted, _) => (What::Deleted, None, End::Compacted),
                (_, Before::Nothing) => (What::Created, None, End::Created),
                (_, Before::Forgotten) => (What::Found, None, End::Compacted),
            };
            let bytes = object.raw.len();
            let version = || Version::new(what_it_was, object, earlier.as_deref());
            let version = heavy(bytes, version).await?;
            history.versions.push(version);
            history.end = end;
            match earlier {
                Some(earlier) => (what, object) = (What::Changed, earlier),
                None => break,
            }
        }
        Ok(history)
    }
}

impl Version {
    fn new(what: What, object: Arc<Cached>, earlier: Option<&Cached>) -> Result<Self, ApiError> {
        let changes = match (what, earlier) {
            (What::Changed, Some(earlier)) => differences(earlier, &object)?,
            _ => Vec::new(),
        };
        let decoded = errors::readable(object.decode())?;
        Ok(Self {
            revision: object.revision,
            generation: decoded.meta().generation,
            what,
            cause: object.cause(),
            changes,
            object,
        })
    }
}

/// The fields in which two versions of one object differ.
///
/// # Errors
/// `InternalError` when what is stored cannot be read.
pub fn differences(before: &Cached, after: &Cached) -> Result<Vec<Difference>, ApiError> {
    Ok(diff(after.kind, &json(before)?, &json(after)?))
}

/// The object as JSON.
pub fn json(object: &Cached) -> Result<Value, ApiError> {
    let text = errors::readable(object.decode())?.to_json();
    errors::readable(serde_json::from_slice(&text))
}
