//! A store in memory, for tests: what Setpoint uses of etcd, as simple as possible.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{
    Batch, Change, Entry, Error, Expect, Form, KeyChange, Page, Precondition, Range, Store, Term,
    Write, keys, outcome,
};
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt as _, ready};
use futures::stream::{self, BoxStream, StreamExt as _};
use parking_lot::Mutex;
use setpoint_model::Revision;
use tokio::sync::watch;

/// A store in memory. Clones share their contents, as several gateways share one etcd.
#[derive(Clone, Default)]
pub struct Memory {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    history: Mutex<History>,
    newest: watch::Sender<Revision>,
}

/// The whole history. Compacted revisions are kept, but cannot be read.
struct History {
    revision: u64,
    compacted: u64,
    /// The values of each key, with the revisions of their writes.
    keys: BTreeMap<String, Vec<(u64, Option<Bytes>)>>,
    /// The batches of revision 2 and later.
    batches: Vec<Batch>,
}

impl Default for History {
    /// Starts at revision 1, as an empty etcd does.
    fn default() -> Self {
        Self {
            revision: 1,
            compacted: 0,
            keys: BTreeMap::new(),
            batches: Vec::new(),
        }
    }
}

impl Store for Memory {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Entry>, Error>> {
        let history = self.shared.history.lock();
        ready(Ok(history.entry(key, history.revision))).boxed()
    }

    fn get_at<'a>(
        &'a self,
        key: &'a str,
        at: Revision,
    ) -> BoxFuture<'a, Result<Option<Entry>, Error>> {
        let history = self.shared.history.lock();
        let entry = history
            .check_past(at.raw())
            .map(|at| history.entry(key, at));
        ready(entry).boxed()
    }

    fn list(&self, range: Range) -> BoxFuture<'_, Result<Page, Error>> {
        ready(self.shared.history.lock().list(&range)).boxed()
    }

    fn commit(&self, write: Write) -> BoxFuture<'_, Result<Revision, Error>> {
        async move {
            let committed = self.shared.history.lock().commit(write)?;
            // Concurrent writers may arrive here in either order; the revision must not go back.
            self.shared
                .newest
                .send_modify(|newest| *newest = committed.max(*newest));
            Ok(committed)
        }
        .boxed()
    }

    fn revision(&self) -> BoxFuture<'_, Result<Revision, Error>> {
        ready(Ok(Revision::from_raw(self.shared.history.lock().revision))).boxed()
    }

    fn watch(&self, after: Revision) -> BoxStream<'static, Result<Batch, Error>> {
        let start = (self.shared.clone(), Some(after));
        stream::unfold(start, |(shared, after)| async move {
            let next = shared.next(after?).await;
            let after = next.as_ref().ok().map(|batch| batch.revision);
            Some((next, (shared, after)))
        })
        .boxed()
    }

    fn watch_key(
        &self,
        key: &str,
        after: Revision,
    ) -> BoxStream<'static, Result<KeyChange, Error>> {
        let start = (self.shared.clone(), key.to_owned(), Some(after));
        stream::unfold(start, |(shared, key, after)| async move {
            let next = shared.next_of(&key, after?).await;
            let after = next.as_ref().ok().map(|change| change.revision);
            Some((next, (shared, key, after)))
        })
        .boxed()
    }
}

impl Memory {
    /// Discards the history before this revision.
    pub fn compact(&self, at: Revision) {
        self.shared.history.lock().compacted = at.raw();
    }
}

impl Shared {
    async fn next(&self, after: Revision) -> Result<Batch, Error> {
        let mut newest = self.newest.subscribe();
        // Cannot fail: `self` holds the sender.
        let _ = newest.wait_for(|newest| *newest > after).await;
        self.history.lock().batch(after.raw() + 1)
    }

    async fn next_of(&self, key: &str, after: Revision) -> Result<KeyChange, Error> {
        let mut newest = self.newest.subscribe();
        loop {
            if let Some(change) = self.history.lock().change_after(key, after.raw())? {
                return Ok(change);
            }
            // Cannot fail: `self` holds the sender.
            let _ = newest.changed().await;
        }
    }
}

impl History {
    fn entry(&self, key: &str, at: u64) -> Option<Entry> {
        let versions = self.keys.get(key)?;
        let count = versions.partition_point(|(revision, _)| *revision <= at);
        let (revision, value) = versions.get(count.checked_sub(1)?)?;
        Some(Entry {
            key: key.to_owned(),
            value: value.clone()?,
            revision: Revision::from_raw(*revision),
            form: Form::default(),
        })
    }

    /// Returns the revision if it can still be read.
    fn check_past(&self, at: u64) -> Result<u64, Error> {
        let kept = self.compacted..=self.revision;
        kept.contains(&at).then_some(at).ok_or(Error::Expired)
    }

    fn list(&self, range: &Range) -> Result<Page, Error> {
        let at = self.check_past(range.at.map_or(self.revision, Revision::raw))?;
        let keys = self.keys.range(range.prefix.clone()..).map(|(key, _)| key);
        let mut entries: Vec<_> = keys
            .take_while(|key| key.starts_with(&range.prefix))
            .filter(|key| range.after.as_ref().is_none_or(|after| *key > after))
            .filter_map(|key| self.entry(key, at))
            .collect();
        let limit = if range.limit == 0 {
            entries.len()
        } else {
            range.limit
        };
        let remaining = entries.len().saturating_sub(limit);
        entries.truncate(limit);
        if range.keys_only {
            entries.iter_mut().for_each(|entry| entry.value.clear());
        }
        Ok(Page {
            entries,
            revision: Revision::from_raw(at),
            remaining,
        })
    }

    fn commit(&mut self, write: Write) -> Result<Revision, Error> {
        if let Err(refused) = self.check(&write) {
            return self.committed_before(&write).ok_or(refused);
        }
        self.revision += 1;
        let revision = Revision::from_raw(self.revision);
        if let Some(tombstone) = write.tombstone() {
            self.put(keys::TOMBSTONE.into(), Some(tombstone));
        }
        if let Some(term) = &write.term {
            self.put(term.key(), term.to.map(|to| to.to_string().into()));
        }
        self.put(write.key.clone(), write.value.clone());
        let mut changes = vec![Change {
            cause: write.cause.filter(|_| write.value.is_none()),
            key: write.key,
            value: write.value,
            form: Form::default(),
        }];
        for Precondition { key, put, .. } in write.preconditions {
            if put.is_some() {
                self.put(key.clone(), put.clone());
                changes.push(Change {
                    cause: None,
                    key,
                    value: put,
                    form: Form::default(),
                });
            }
        }
        changes.retain(|change| change.key.starts_with(keys::ROOT));
        self.batches.push(Batch { revision, changes });
        Ok(revision)
    }

    /// Returns the revision at which this very write was committed, if it was the last one of its key.
    fn committed_before(&self, write: &Write) -> Option<Revision> {
        let last = |key| self.entry(key, self.revision);
        let put = last(&write.key).filter(|entry| write.has_put(&entry.value));
        let deleted = || last(keys::TOMBSTONE).filter(|entry| outcome::has_deleted(write, entry));
        Some(put.or_else(deleted)?.revision)
    }

    fn check(&self, write: &Write) -> Result<(), Error> {
        if let Some(fence) = &write.fence
            && self.term(&keys::fence(fence)) != Some(fence.term)
        {
            return Err(Error::Fenced);
        }
        if !self.is_as_expected(&write.key, write.expect) {
            let current = self.entry(&write.key, self.revision);
            return Err(Error::Conflict { current });
        }
        if let Some(term) = &write.term
            && self.term(&term.key()) != term.from
        {
            let current = self.term(&term.key());
            return Err(Error::TermMoved { current });
        }
        let mut preconditions = write.preconditions.iter();
        match preconditions
            .all(|precondition| self.is_as_expected(&precondition.key, precondition.expect))
        {
            true => Ok(()),
            false => Err(Error::PreconditionFailed),
        }
    }

    fn is_as_expected(&self, key: &str, expect: Expect) -> bool {
        let current = self.entry(key, self.revision).map(|entry| entry.revision);
        match expect {
            Expect::Absent => current.is_none(),
            Expect::At(revision) => current == Some(revision),
        }
    }

    fn term(&self, key: &str) -> Option<u64> {
        Term::read(&self.entry(key, self.revision)?.value)
    }

    fn put(&mut self, key: String, value: Option<Bytes>) {
        self.keys
            .entry(key)
            .or_default()
            .push((self.revision, value));
    }

    fn change_after(&self, key: &str, after: u64) -> Result<Option<KeyChange>, Error> {
        if after + 1 < self.compacted {
            return Err(Error::Expired);
        }
        let mut versions = self.keys.get(key).into_iter().flatten();
        let next = versions.find(|(revision, _)| *revision > after);
        Ok(next.map(|(revision, value)| KeyChange {
            revision: Revision::from_raw(*revision),
            value: value.clone(),
        }))
    }

    fn batch(&self, revision: u64) -> Result<Batch, Error> {
        // The first write is at revision 2.
        let index = usize::try_from(revision.saturating_sub(2)).expect("history fits in memory");
        match self.batches.get(index) {
            Some(batch) if revision >= self.compacted => Ok(batch.clone()),
            _ => Err(Error::Expired),
        }
    }
}
