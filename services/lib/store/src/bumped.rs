//! A store whose revisions go on where those of a lost store ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use setpoint_model::Revision;

use crate::{Batch, Entry, Error, Expect, KeyChange, Page, Range, Store, Write, keys};

/// The value of [`keys::REVISION_BUMP`] while a restore goes on.
pub(crate) const UNFINISHED: &str = "unfinished";

/// The state of [`Bumped::bump`] before it was read. No revision of etcd is as great.
const UNKNOWN: u64 = u64::MAX;

/// A store with revisions that are greater than those of the store below by a constant, which a restore has written
/// to [`keys::REVISION_BUMP`]; 0 without one. So a new etcd can hold the data of a lost one, and a revision from before
/// never names another state than it did: reads and watches at it are [`Error::Expired`].
///
/// The constant is read when the store is first used, and whenever a watch begins, since etcd may have been replaced
/// while it was away.
#[derive(Clone)]
pub struct Bumped<S> {
    store: S,
    bump: Arc<AtomicU64>,
}

impl<S: Store + Clone> Bumped<S> {
    /// Returns a store over `store`.
    pub fn new(store: S) -> Self {
        Self {
            store,
            bump: Arc::new(AtomicU64::new(UNKNOWN)),
        }
    }

    async fn bump(&self) -> Result<Bump, Error> {
        match self.bump.load(Ordering::Relaxed) {
            UNKNOWN => self.read().await,
            bump => Ok(Bump(bump)),
        }
    }

    async fn read(&self) -> Result<Bump, Error> {
        let entry = self.store.get(keys::REVISION_BUMP).await?;
        let read = bump(entry.map(|entry| entry.value).as_deref())?;
        self.bump.store(read, Ordering::Relaxed);
        Ok(Bump(read))
    }

    /// Reads the constant and returns the revision below after which a watch begins.
    async fn begin(&self, after: Revision) -> Result<(Bump, Revision), Error> {
        let bump = self.read().await?;
        Ok((bump, bump.below(after)?))
    }
}

/// Returns the constant that a value of [`keys::REVISION_BUMP`] says.
///
/// # Errors
/// `Unavailable` if a restore has not ended, or the value is no number.
pub(crate) fn bump(value: Option<&[u8]>) -> Result<u64, Error> {
    let Some(value) = value else { return Ok(0) };
    let text = String::from_utf8_lossy(value);
    let number = text.parse().ok().filter(|number| *number < UNKNOWN);
    number.ok_or_else(|| match &*text {
        UNFINISHED => Error::Unavailable("a restore of a backup has not ended".into()),
        _ => Error::Unavailable(format!("{} is not a number: {text}", keys::REVISION_BUMP)),
    })
}

/// The constant between the revisions of the two stores.
#[derive(Clone, Copy)]
struct Bump(u64);

impl Bump {
    fn above(self, revision: Revision) -> Revision {
        Revision::from_raw(revision.raw().saturating_add(self.0))
    }

    /// Returns the revision of the store below; `Expired` for one from before the restore.
    fn below(self, revision: Revision) -> Result<Revision, Error> {
        let below = revision.raw().checked_sub(self.0);
        below.map(Revision::from_raw).ok_or(Error::Expired)
    }

    /// As [`below`](Self::below), for a state: that before the first write is of no restored store.
    fn state(self, at: Revision) -> Result<Revision, Error> {
        match self.below(at)? {
            first if self.0 > 0 && first == Revision::default() => Err(Error::Expired),
            below => Ok(below),
        }
    }

    fn entry(self, entry: Entry) -> Entry {
        Entry {
            revision: self.above(entry.revision),
            ..entry
        }
    }

    fn page(self, page: Page) -> Page {
        Page {
            revision: self.above(page.revision),
            entries: page
                .entries
                .into_iter()
                .map(|entry| self.entry(entry))
                .collect(),
            ..page
        }
    }

    fn expect(self, expect: Expect) -> Result<Expect, Error> {
        match expect {
            Expect::Absent => Ok(Expect::Absent),
            Expect::At(at) => self.below(at).map(Expect::At),
        }
    }

    fn write(self, mut write: Write) -> Result<Write, Error> {
        write.expect = self.expect(write.expect)?;
        for precondition in &mut write.preconditions {
            precondition.expect = self.expect(precondition.expect)?;
        }
        Ok(write)
    }

    fn error(self, error: Error) -> Error {
        match error {
            Error::Conflict { current } => Error::Conflict {
                current: current.map(|entry| self.entry(entry)),
            },
            error => error,
        }
    }
}

impl<S: Store + Clone> Store for Bumped<S> {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Entry>, Error>> {
        async move {
            let bump = self.bump().await?;
            let entry = self.store.get(key).await?;
            Ok(entry.map(|entry| bump.entry(entry)))
        }
        .boxed()
    }

    fn get_at<'a>(
        &'a self,
        key: &'a str,
        at: Revision,
    ) -> BoxFuture<'a, Result<Option<Entry>, Error>> {
        async move {
            let bump = self.bump().await?;
            let entry = self.store.get_at(key, bump.state(at)?).await?;
            Ok(entry.map(|entry| bump.entry(entry)))
        }
        .boxed()
    }

    fn list(&self, mut range: Range) -> BoxFuture<'_, Result<Page, Error>> {
        async move {
            let bump = self.bump().await?;
            range.at = range.at.map(|at| bump.state(at)).transpose()?;
            self.store.list(range).await.map(|page| bump.page(page))
        }
        .boxed()
    }

    fn commit(&self, write: Write) -> BoxFuture<'_, Result<Revision, Error>> {
        async move {
            let bump = self.bump().await?;
            let key = write.key.clone();
            let Ok(write) = bump.write(write) else {
                // It expects a revision from before the restore, which no key has.
                let current = self.get(&key).await?;
                return Err(Error::Conflict { current });
            };
            let committed = self.store.commit(write).await;
            committed
                .map(|at| bump.above(at))
                .map_err(|error| bump.error(error))
        }
        .boxed()
    }

    fn revision(&self) -> BoxFuture<'_, Result<Revision, Error>> {
        async move {
            let bump = self.bump().await?;
            self.store
                .revision()
                .await
                .map(|revision| bump.above(revision))
        }
        .boxed()
    }

    fn watch(&self, after: Revision) -> BoxStream<'static, Result<Batch, Error>> {
        let own = self.clone();
        let begun = stream::once(async move {
            let (bump, after) = own.begin(after).await?;
            let above = move |batch: Batch| Batch {
                revision: bump.above(batch.revision),
                ..batch
            };
            Ok(own.store.watch(after).map_ok(above))
        });
        begun.try_flatten().boxed()
    }

    fn watch_key(
        &self,
        key: &str,
        after: Revision,
    ) -> BoxStream<'static, Result<KeyChange, Error>> {
        let (own, key) = (self.clone(), key.to_owned());
        let begun = stream::once(async move {
            let (bump, after) = own.begin(after).await?;
            let above = move |change: KeyChange| KeyChange {
                revision: bump.above(change.revision),
                ..change
            };
            Ok(own.store.watch_key(&key, after).map_ok(above))
        });
        begun.try_flatten().boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    async fn bumped(value: &str) -> (Memory, Bumped<Memory>) {
        let memory = Memory::default();
        let write = Write::create(keys::REVISION_BUMP, value.to_owned().into());
        memory.commit(write).await.unwrap();
        (memory.clone(), Bumped::new(memory))
    }

    /// Checks DG21.
    #[tokio::test]
    async fn a_revision_from_before_a_restore_names_no_state_and_begins_no_watch() {
        let (_, store) = bumped("1000").await;
        let created = store
            .commit(Write::create("/registry/a", "a".into()))
            .await
            .unwrap();
        assert_eq!(created, Revision::from_raw(1003));
        for before in [1, 3, 999, 1000].map(Revision::from_raw) {
            let read = store.get_at("/registry/a", before).await;
            assert_eq!(read, Err(Error::Expired), "{before}");
            let range = Range {
                at: Some(before),
                ..Range::all("/registry/")
            };
            assert_eq!(store.list(range).await, Err(Error::Expired), "{before}");
        }
        let watched = store.watch(Revision::from_raw(999)).next().await;
        assert_eq!(watched, Some(Err(Error::Expired)));
        let stale = Write::update("/registry/a", Revision::from_raw(3), "b".into());
        let conflict = store.commit(stale).await;
        let current = store.get("/registry/a").await.unwrap();
        assert_eq!(conflict, Err(Error::Conflict { current }));
    }

    #[tokio::test]
    async fn nothing_is_served_before_a_restore_has_ended() {
        for value in [UNFINISHED, "many", "18446744073709551615"] {
            let (_, store) = bumped(value).await;
            let refused = store.revision().await;
            assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
        }
    }

    #[tokio::test]
    async fn a_watch_that_begins_finds_that_the_store_was_restored_meanwhile() {
        let memory = Memory::default();
        let store = Bumped::new(memory.clone());
        let before = store
            .commit(Write::create("/registry/a", "a".into()))
            .await
            .unwrap();
        let bump = Write::create(keys::REVISION_BUMP, "1000".into());
        memory.commit(bump).await.unwrap();
        let watched = store.watch(before).next().await;
        assert_eq!(watched, Some(Err(Error::Expired)));
        assert!(store.revision().await.unwrap() > Revision::from_raw(1000));
    }
}
