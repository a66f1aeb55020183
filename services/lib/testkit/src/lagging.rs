//! A store that can be slowed down, held up or cut off: how a replica that lags, or is partitioned, sees it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{self, BoxStream, StreamExt as _};
use setpoint_gateway::store::{Batch, Entry, Error, Page, Range, Store, Write};
use setpoint_model::Revision;
use tokio::sync::watch;
use tokio::time::sleep;

type Changes = BoxStream<'static, Result<Batch, Error>>;

/// Passes everything on, as far as its line to the store lets it.
pub struct Lagging {
    store: Arc<dyn Store>,
    line: watch::Sender<Line>,
    lists: AtomicUsize,
}

#[derive(Default)]
struct Line {
    /// Answers come, changes do not.
    held: bool,
    /// How long each call is on its way.
    delay: Duration,
    /// Nothing comes, and nothing goes.
    cut: bool,
    /// How often it was cut: a watch does not survive even the shortest.
    cuts: u32,
}

impl Lagging {
    /// Lets everything through, for now.
    pub fn new(store: Arc<dyn Store>) -> Arc<Self> {
        let line = watch::Sender::default();
        let lists = AtomicUsize::default();
        Arc::new(Self { store, line, lists })
    }

    /// How many lists it was asked for.
    pub fn lists(&self) -> usize {
        self.lists.load(Ordering::Relaxed)
    }

    /// From here on no change arrives.
    pub fn hold(&self) {
        self.line.send_modify(|line| line.held = true);
    }

    /// From here on each call takes so long to arrive.
    pub fn delay(&self, by: Duration) {
        self.line.send_modify(|line| line.delay = by);
    }

    /// From here on nothing works, and watches break.
    pub fn cut(&self) {
        self.line.send_modify(|line| {
            line.cut = true;
            line.cuts += 1;
        });
    }

    /// Everything works again; what was held arrives.
    pub fn release(&self) {
        self.line
            .send_modify(|line| (line.held, line.cut) = (false, false));
    }

    async fn pass(&self) -> Result<(), Error> {
        let delay = self.line.borrow().delay;
        if !delay.is_zero() {
            sleep(delay).await;
        }
        match self.line.borrow().cut {
            true => Err(cut_off()),
            false => Ok(()),
        }
    }
}

fn cut_off() -> Error {
    Error::Unavailable("cut off".into())
}

impl Store for Lagging {
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
            self.pass().await?;
            self.store.commit(write).await
        }
        .boxed()
    }

    fn revision(&self) -> BoxFuture<'_, Result<Revision, Error>> {
        async move {
            self.pass().await?;
            self.store.revision().await
        }
        .boxed()
    }

    fn watch(&self, after: Revision) -> BoxStream<'static, Result<Batch, Error>> {
        let changes = self.store.watch(after);
        let line = self.line.subscribe();
        let cuts = line.borrow().cuts;
        stream::unfold(Some((changes, line)), move |state| async move {
            let (mut changes, line) = state?;
            let mut cut = line.clone();
            let batch = tokio::select! {
                biased;
                // A line that is gone lets nothing through.
                _ = cut.wait_for(|line| line.cuts > cuts) => Some(Err(cut_off())),
                batch = next(&mut changes, line.clone()) => batch,
            }?;
            let rest = batch.is_ok().then_some((changes, line));
            Some((batch, rest))
        })
        .boxed()
    }
}

async fn next(
    changes: &mut Changes,
    mut line: watch::Receiver<Line>,
) -> Option<Result<Batch, Error>> {
    let batch = changes.next().await;
    let _ = line.wait_for(|line| !line.held).await;
    batch
}
