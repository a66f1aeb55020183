//! A store with faults that a test switches on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use setpoint_gateway::store::{Batch, Entry, Error, Page, Range, Store, Write};
use setpoint_model::Revision;

/// Passes everything on, but for its faults.
pub struct Faulty {
    store: Arc<dyn Store>,
    /// Panics to come: when a watch begins, and at each of its batches.
    pub watch_panics: Arc<AtomicUsize>,
    /// Panics to come when it is asked for its newest revision.
    pub revision_panics: AtomicUsize,
    /// Whether changes get lost on their way.
    pub loses_changes: Arc<AtomicBool>,
}

impl Faulty {
    pub fn over(store: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self {
            store,
            watch_panics: Arc::default(),
            revision_panics: AtomicUsize::default(),
            loses_changes: Arc::default(),
        })
    }
}

fn panic_if_due(panics: &AtomicUsize) {
    let left = |panics: usize| panics.checked_sub(1);
    let due = panics.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
    assert!(due.is_err(), "thrown by a test");
}

impl Store for Faulty {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Entry>, Error>> {
        self.store.get(key)
    }

    fn get_at<'a>(
        &'a self,
        key: &'a str,
        at: Revision,
    ) -> BoxFuture<'a, Result<Option<Entry>, Error>> {
        self.store.get_at(key, at)
    }

    fn list(&self, range: Range) -> BoxFuture<'_, Result<Page, Error>> {
        self.store.list(range)
    }

    fn commit(&self, write: Write) -> BoxFuture<'_, Result<Revision, Error>> {
        self.store.commit(write)
    }

    fn revision(&self) -> BoxFuture<'_, Result<Revision, Error>> {
        panic_if_due(&self.revision_panics);
        self.store.revision()
    }

    fn watch(&self, after: Revision) -> BoxStream<'static, Result<Batch, Error>> {
        panic_if_due(&self.watch_panics);
        let panics = self.watch_panics.clone();
        let loses = self.loses_changes.clone();
        let batches = self.store.watch(after);
        let batches = batches.map(move |batch| {
            panic_if_due(&panics);
            let mut batch = batch?;
            if loses.load(Ordering::Relaxed) {
                batch.changes.clear();
            }
            Ok(batch)
        });
        batches.boxed()
    }
}
