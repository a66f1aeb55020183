//! A write whose answer got lost: what stands at its key tells what became of it.

use std::time::Duration;

use setpoint_model::Revision;
use tokio::time::{Instant, sleep};

use super::Etcd;
use crate::store::{Entry, Error, Expect, Write};

/// How long a lost answer is looked for: an etcd that was killed is back, or its successor elected.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(100);

impl Etcd {
    /// Looks at the key until etcd answers. What is found is compared whole: envelopes carry uid and cause.
    pub(super) async fn resolve(&self, write: &Write, error: Error) -> Result<Revision, Error> {
        tracing::warn!(key = %write.key, %error, "the answer to a write got lost");
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            match self.look(&write.key).await {
                Ok(seen) => return outcome(write, seen),
                Err(_) => sleep(PAUSE).await,
            }
        }
        Err(Error::Unknown)
    }

    /// The entry, and a revision not before it stood so: whoever waits for that one has seen this.
    async fn look(&self, key: &str) -> Result<(Option<Entry>, Revision), Error> {
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
        // Gone as wished, if not by this write.
        (None, _, None) => Ok(revision),
        (_, Expect::At(expected), Some(entry)) if entry.revision == expected => Err(Error::Unknown),
        // Not written, or written and deleted since, or still on its way.
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
    fn a_write_that_is_found_was_committed_when_it_says() {
        let write = Write::update("k", Revision::from_raw(3), "new".into());
        assert_eq!(outcome(&write, seen("new", 5)), Ok(Revision::from_raw(5)));
    }

    #[test]
    fn a_write_that_is_not_found_may_still_come() {
        let update = Write::update("k", Revision::from_raw(3), "new".into());
        assert_eq!(outcome(&update, seen("old", 3)), Err(Error::Unknown));
        let create = Write::create("k", "new".into());
        assert_eq!(outcome(&create, (None, NOW)), Err(Error::Unknown));
    }

    #[test]
    fn a_write_that_another_came_before_is_a_conflict() {
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
    fn what_should_be_gone_and_is_gone_was_deleted() {
        let delete = Write::delete("k", Revision::from_raw(3));
        assert_eq!(outcome(&delete, (None, NOW)), Ok(NOW));
    }
}
