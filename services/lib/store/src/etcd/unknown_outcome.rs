//! Writes with an unknown outcome: their response was lost. The outcome is determined by reading their key.

use std::time::Duration;

use setpoint_model::Revision;
use tokio::time::{Instant, sleep};

use super::Etcd;
use crate::{Entry, Error, Expect, Write};

/// The time after which the outcome stays unknown: enough for a killed etcd to restart, or a new leader to be
/// elected.
const TIMEOUT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(100);

impl Etcd {
    /// Reads the key until etcd answers, and compares the whole value with that of the write: envelopes include the
    /// uid and the cause, so equal values are of the same write.
    pub(super) async fn resolve(&self, write: &Write, error: Error) -> Result<Revision, Error> {
        tracing::warn!(key = %write.key, %error, "the response to a write was lost; reading its key");
        let deadline = Instant::now() + TIMEOUT;
        while Instant::now() < deadline {
            match self.read_with_revision(&write.key).await {
                Ok(seen) => return outcome(write, seen),
                Err(_) => sleep(PAUSE).await,
            }
        }
        Err(Error::Unknown)
    }

    /// Returns the entry and a revision at or after it. A reader that has reached that revision has seen the entry.
    async fn read_with_revision(&self, key: &str) -> Result<(Option<Entry>, Revision), Error> {
        let entry = self.read_one(key).await?;
        Ok((entry, self.read_revision().await?))
    }
}

fn outcome(
    write: &Write,
    (current, revision): (Option<Entry>, Revision),
) -> Result<Revision, Error> {
    match (&write.value, write.expect, &current) {
        (Some(value), _, Some(entry)) if entry.value == value => Ok(entry.revision),
        // Deleted, though perhaps by another write.
        (None, _, None) => Ok(revision),
        (_, Expect::At(expected), Some(entry)) if entry.revision == expected => Err(Error::Unknown),
        // Not written, written and deleted since, or still in flight.
        (_, Expect::Absent, None) => Err(Error::Unknown),
        _ => Err(Error::Conflict { current }),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    const NOW: Revision = Revision::from_raw(9);

    fn seen(value: &'static str, revision: u64) -> (Option<Entry>, Revision) {
        let entry = Entry {
            key: "k".into(),
            value: Bytes::from_static(value.as_bytes()),
            revision: Revision::from_raw(revision),
        };
        (Some(entry), NOW)
    }

    #[test]
    fn a_lost_write_whose_value_is_found_was_committed_at_the_revision_of_the_entry() {
        let write = Write::update("k", Revision::from_raw(3), "new".into());
        assert_eq!(outcome(&write, seen("new", 5)), Ok(Revision::from_raw(5)));
    }

    #[test]
    fn a_lost_write_is_unknown_while_the_key_is_unchanged() {
        let update = Write::update("k", Revision::from_raw(3), "new".into());
        assert_eq!(outcome(&update, seen("old", 3)), Err(Error::Unknown));
        let create = Write::create("k", "new".into());
        assert_eq!(outcome(&create, (None, NOW)), Err(Error::Unknown));
    }

    #[test]
    fn a_lost_write_is_a_conflict_if_the_key_was_changed_by_another() {
        let (current, now) = seen("theirs", 4);
        let conflict = Err(Error::Conflict {
            current: current.clone(),
        });
        let update = Write::update("k", Revision::from_raw(3), "ours".into());
        assert_eq!(outcome(&update, (current.clone(), now)), conflict);
        assert_eq!(
            outcome(&Write::create("k", "ours".into()), (current, now)),
            conflict
        );
    }

    #[test]
    fn a_lost_delete_succeeded_if_the_key_is_gone() {
        let delete = Write::delete("k", Revision::from_raw(3));
        assert_eq!(outcome(&delete, (None, NOW)), Ok(NOW));
    }
}
