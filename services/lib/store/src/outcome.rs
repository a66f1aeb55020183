//! Writes whose answer was lost. Their outcome is read from the history of their key.
//!
//! A write is compared with a revision of its key, so only the first change of the key after that revision can be this
//! write: it has the identity of this write, or it is another's, and this write was or will be refused. A create is
//! compared with the absence of the key, which may recur, so each change since it was sent can be the create. Contents
//! are not compared: another write may have changed the object since, or have written the same.
//!
//! The outcome stays unknown if the key has not changed, since the write may still be on its way, and if the history
//! has been compacted.

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use setpoint_model::Revision;
use tokio::time::{Instant, sleep, timeout};

use crate::{Entry, Error, Expect, KeyChange, Store, Write, keys};

/// The time after which the outcome stays unknown: enough for a killed etcd to restart, or a new leader to be
/// elected.
const TIMEOUT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(100);
/// The time to wait for a change of the key. etcd sends the history of a key within a tenth of a second.
const HISTORY_TIMEOUT: Duration = Duration::from_secs(1);

/// Returns the outcome of a write that may have been committed. `sent_after` is a revision that the store had reached
/// before the write was sent.
///
/// # Errors
/// `Conflict` if the key was not as expected, `Unknown` if the history does not decide that.
pub(crate) async fn of_lost(
    store: &dyn Store,
    write: &Write,
    sent_after: Revision,
) -> Result<Revision, Error> {
    let deadline = Instant::now() + TIMEOUT;
    while Instant::now() < deadline {
        match decide(store, write, sent_after).await {
            Err(Error::Expired) => break,
            Err(Error::Unavailable(_) | Error::Refused(_) | Error::Timeout) => sleep(PAUSE).await,
            decided => return decided,
        }
    }
    Err(Error::Unknown)
}

async fn decide(store: &dyn Store, write: &Write, sent_after: Revision) -> Result<Revision, Error> {
    if store.revision().await? < sent_after {
        // The store was replaced by an older one.
        return Err(Error::Unknown);
    }
    let current = store.get(&write.key).await?;
    if let Some(entry) = &current
        && write.has_put(&entry.value)
    {
        return Ok(entry.revision);
    }
    let last = current.as_ref().map(|entry| entry.revision);
    let is_as_expected = last.map_or(Expect::Absent, Expect::At) == write.expect;
    if !is_as_expected && last.is_some_and(|last| last <= sent_after) {
        return Err(Error::Conflict { current });
    }
    let after = match write.expect {
        Expect::At(expected) => expected.max(sent_after),
        Expect::Absent => sent_after,
    };
    let changes = store.watch_key(&write.key, after);
    let found = find(store, write, changes, last);
    match timeout(HISTORY_TIMEOUT, found).await {
        Ok(Ok(Some(committed))) => Ok(committed),
        Ok(Ok(None)) => Err(conflict(store, write).await?),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(Error::Unknown),
    }
}

/// Returns the revision of the change that this write has made; `None` if the changes, of which `last` was the last
/// one, show that it has made none.
async fn find(
    store: &dyn Store,
    write: &Write,
    mut changes: BoxStream<'static, Result<KeyChange, Error>>,
    last: Option<Revision>,
) -> Result<Option<Revision>, Error> {
    while let Some(change) = changes.next().await {
        let change = change?;
        if is_made_by(store, write, &change).await? {
            return Ok(Some(change.revision));
        }
        let decided = match write.expect {
            Expect::At(_) => true,
            Expect::Absent => last.is_some_and(|last| change.revision >= last),
        };
        if decided {
            return Ok(None);
        }
    }
    Err(Error::Unavailable("the watch has ended".into()))
}

async fn is_made_by(store: &dyn Store, write: &Write, change: &KeyChange) -> Result<bool, Error> {
    match &change.value {
        Some(value) => Ok(write.has_put(value)),
        None if write.value.is_some() => Ok(false),
        None => {
            let tombstone = store.get_at(keys::TOMBSTONE, change.revision).await?;
            Ok(tombstone.is_some_and(|tombstone| {
                tombstone.revision == change.revision && has_deleted(write, &tombstone)
            }))
        }
    }
}

/// Returns whether a tombstone is that of this write.
pub(crate) fn has_deleted(write: &Write, tombstone: &Entry) -> bool {
    write.value.is_none() && write.identity.is_in(&tombstone.value)
}

async fn conflict(store: &dyn Store, write: &Write) -> Result<Error, Error> {
    let current = store.get(&write.key).await?;
    Ok(Error::Conflict { current })
}
