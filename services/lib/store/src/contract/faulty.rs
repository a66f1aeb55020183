//! A store with faults that a test switches on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{self, BoxStream, StreamExt as _};
use parking_lot::Mutex;
use setpoint_model::Revision;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::{Batch, Entry, Error, Page, Range, Store, Write};

type Changes = BoxStream<'static, Result<Batch, Error>>;
type Condition = Box<dyn Fn(&Write) -> bool + Send>;

/// A store that forwards all calls to another one, except for its faults: delays, a partition, lost changes, panics.
pub struct FaultyStore {
    store: Arc<dyn Store>,
    link: watch::Sender<Link>,
    lists: AtomicUsize,
    revision_panics: AtomicUsize,
    watch_panics: Arc<AtomicUsize>,
    commit_panics: Mutex<Option<Condition>>,
}

#[derive(Default)]
struct Link {
    /// Calls are answered, changes do not arrive.
    held: bool,
    /// Changes are dropped, but not their revisions.
    lossy: bool,
    /// The delay of each call.
    delay: Duration,
    /// Calls fail, and watches have ended.
    cut: bool,
    /// The number of cuts. Each ends all watches, however short it is.
    cuts: u32,
}

impl FaultyStore {
    /// Returns a store without faults.
    pub fn new(store: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self {
            store,
            link: watch::Sender::default(),
            lists: AtomicUsize::default(),
            revision_panics: AtomicUsize::default(),
            watch_panics: Arc::default(),
            commit_panics: Mutex::default(),
        })
    }

    /// Returns the number of lists so far.
    pub fn lists(&self) -> usize {
        self.lists.load(Ordering::Relaxed)
    }

    /// Holds changes back until [`release`](Self::release).
    pub fn hold(&self) {
        self.link.send_modify(|link| link.held = true);
    }

    /// Delays each call by this time.
    pub fn delay(&self, by: Duration) {
        self.link.send_modify(|link| link.delay = by);
    }

    /// Drops the changes of all batches to come.
    pub fn lose_changes(&self) {
        self.link.send_modify(|link| link.lossy = true);
    }

    /// Fails every call and ends every watch until [`release`](Self::release).
    pub fn cut(&self) {
        self.link.send_modify(|link| {
            link.cut = true;
            link.cuts += 1;
        });
    }

    /// Undoes [`hold`](Self::hold) and [`cut`](Self::cut); what was held arrives.
    pub fn release(&self) {
        self.link
            .send_modify(|link| (link.held, link.cut) = (false, false));
    }

    /// Panics at the next `times` starts or batches of watches.
    pub fn panic_in_watches(&self, times: usize) {
        self.watch_panics.store(times, Ordering::Relaxed);
    }

    /// Panics at the next `times` reads of the newest revision.
    pub fn panic_in_revision(&self, times: usize) {
        self.revision_panics.store(times, Ordering::Relaxed);
    }

    /// Panics at each commit that fulfils a condition.
    pub fn panic_in_commits(&self, condition: impl Fn(&Write) -> bool + Send + 'static) {
        *self.commit_panics.lock() = Some(Box::new(condition));
    }

    async fn pass(&self) -> Result<(), Error> {
        let delay = self.link.borrow().delay;
        if !delay.is_zero() {
            sleep(delay).await;
        }
        match self.link.borrow().cut {
            true => Err(cut_off()),
            false => Ok(()),
        }
    }
}

fn cut_off() -> Error {
    Error::Unavailable("cut off".into())
}

fn panic_if_due(panics: &AtomicUsize) {
    let left = |panics: usize| panics.checked_sub(1);
    let due = panics.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
    assert!(due.is_err(), "thrown by a test");
}

impl Store for FaultyStore {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Entry>, Error>> {
        async move {
            self.pass().await?;
            self.store.get(key).await
        }
        .boxed()
    }

    fn get_at<'a>(
        &'a self,
        key: &'a str,
        at: Revision,
    ) -> BoxFuture<'a, Result<Option<Entry>, Error>> {
        async move {
            self.pass().await?;
            self.store.get_at(key, at).await
        }
        .boxed()
    }

    fn list(&self, range: Range) -> BoxFuture<'_, Result<Page, Error>> {
        async move {
            self.lists.fetch_add(1, Ordering::Relaxed);
            self.pass().await?;
            self.store.list(range).await
        }
        .boxed()
    }

    fn commit(&self, write: Write) -> BoxFuture<'_, Result<Revision, Error>> {
        async move {
            let due = |condition: &Condition| condition(&write);
            let due = self.commit_panics.lock().as_ref().is_some_and(due);
            assert!(!due, "thrown by a test");
            self.pass().await?;
            self.store.commit(write).await
        }
        .boxed()
    }

    fn revision(&self) -> BoxFuture<'_, Result<Revision, Error>> {
        async move {
            panic_if_due(&self.revision_panics);
            self.pass().await?;
            self.store.revision().await
        }
        .boxed()
    }

    fn watch(&self, after: Revision) -> BoxStream<'static, Result<Batch, Error>> {
        panic_if_due(&self.watch_panics);
        let changes = self.store.watch(after);
        let (link, panics) = (self.link.subscribe(), self.watch_panics.clone());
        let cuts = link.borrow().cuts;
        stream::unfold(Some((changes, link, panics)), move |state| async move {
            let (mut changes, link, panics) = state?;
            let mut cut = link.clone();
            let batch = tokio::select! {
                biased;
                // Also resolves when the store is dropped.
                _ = cut.wait_for(|link| link.cuts > cuts) => Some(Err(cut_off())),
                batch = next(&mut changes, link.clone()) => batch,
            }?;
            panic_if_due(&panics);
            let rest = batch.is_ok().then_some((changes, link, panics));
            Some((batch, rest))
        })
        .boxed()
    }
}

async fn next(
    changes: &mut Changes,
    mut link: watch::Receiver<Link>,
) -> Option<Result<Batch, Error>> {
    let mut batch = changes.next().await;
    let _ = link.wait_for(|link| !link.held).await;
    if let Some(Ok(batch)) = &mut batch
        && link.borrow().lossy
    {
        batch.changes.clear();
    }
    batch
}
