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

use crate::{Batch, Entry, Error, KeyChange, Page, Range, Store, Write, outcome};

type Changes = BoxStream<'static, Result<Batch, Error>>;
type Condition = Box<dyn Fn(&Write) -> bool + Send>;

/// A store that forwards all calls to another one, except for its faults: delays, a partition, lost changes, lost
/// answers, panics.
pub struct FaultyStore {
    store: Arc<dyn Store>,
    link: watch::Sender<Link>,
    lists: AtomicUsize,
    revision_panics: AtomicUsize,
    watches: AtomicUsize,
    watch_panics: Arc<AtomicUsize>,
    commit_panics: Mutex<Option<Condition>>,
    refusals: Mutex<Option<Condition>>,
    commits: AtomicUsize,
}

#[derive(Default)]
struct Link {
    /// Calls are answered, changes do not arrive.
    held: bool,
    /// The number of watches, in the order of their start, that are open but deliver nothing.
    stalled: usize,
    /// Changes are dropped, but not their revisions.
    lossy: bool,
    /// The delay of each call.
    delay: Duration,
    answers: Answers,
    /// Calls fail, and watches have ended.
    cut: bool,
    /// The number of cuts. Each ends all watches, however short it is.
    cuts: u32,
}

/// The answers to commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Answers {
    #[default]
    Arrive,
    /// In turn: one is lost, the commit of one is sent twice, one is late.
    Fail,
    /// Commits are made, and their answers held back; then they are lost.
    Held,
    /// Commits are made, and nobody can find that out.
    Unknown,
}

/// The fault of one answer.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Lost,
    Doubled,
    Late,
    Held,
    Unknown,
}

/// The delay of a late answer.
const LATE: Duration = Duration::from_millis(5);

impl FaultyStore {
    /// Returns a store without faults.
    pub fn new(store: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self {
            store,
            link: watch::Sender::default(),
            lists: AtomicUsize::default(),
            revision_panics: AtomicUsize::default(),
            watches: AtomicUsize::default(),
            watch_panics: Arc::default(),
            commit_panics: Mutex::default(),
            refusals: Mutex::default(),
            commits: AtomicUsize::default(),
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

    /// Holds back the changes of the watches that are open now, for ever.
    pub fn stall_open_watches(&self) {
        let open = self.watches.load(Ordering::Relaxed);
        self.link.send_modify(|link| link.stalled = open);
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

    /// Loses the answer to one commit, sends the next one twice, delays the third, and so on. The outcome of a commit
    /// whose answer was lost is read from the history.
    pub fn lose_double_and_delay_answers(&self) {
        self.link.send_modify(|link| link.answers = Answers::Fail);
    }

    /// Makes commits, and holds their answers back until [`lose_answers`](Self::lose_answers).
    pub fn hold_answers(&self) {
        self.link.send_modify(|link| link.answers = Answers::Held);
    }

    /// Loses the answers that were held back: the outcomes are read from the history. Later answers arrive.
    pub fn lose_answers(&self) {
        self.link.send_modify(|link| link.answers = Answers::Arrive);
    }

    /// Makes commits, but says that their outcome is unknown.
    pub fn forget_outcomes(&self) {
        self.link
            .send_modify(|link| link.answers = Answers::Unknown);
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

    /// Refuses each commit that fulfils a condition.
    pub fn refuse_commits(&self, condition: impl Fn(&Write) -> bool + Send + 'static) {
        *self.refusals.lock() = Some(Box::new(condition));
    }

    /// Returns the fault of the next answer to a commit.
    fn fault(&self) -> Option<Fault> {
        match self.link.borrow().answers {
            Answers::Arrive => None,
            Answers::Held => Some(Fault::Held),
            Answers::Unknown => Some(Fault::Unknown),
            Answers::Fail => {
                let faults = [Fault::Lost, Fault::Doubled, Fault::Late];
                let turn = self.commits.fetch_add(1, Ordering::Relaxed);
                Some(faults[turn % faults.len()])
            }
        }
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

/// Commits, with a fault in the answer.
async fn commit_faultily(
    store: Arc<dyn Store>,
    write: Write,
    fault: Fault,
    mut link: watch::Receiver<Link>,
) -> Result<Revision, Error> {
    let before = store.revision().await?;
    let answer = store.commit(write.clone()).await;
    match fault {
        Fault::Late => sleep(LATE).await,
        Fault::Doubled => return store.commit(write).await,
        Fault::Unknown => return answer.and(Err(Error::Unknown)),
        Fault::Lost | Fault::Held if answer.is_err() => {}
        Fault::Lost => return outcome::of_lost(&*store, &write, before).await,
        Fault::Held => {
            let _ = link.wait_for(|link| link.answers != Answers::Held).await;
            return outcome::of_lost(&*store, &write, before).await;
        }
    }
    answer
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
            assert!(
                !self.commit_panics.lock().as_ref().is_some_and(due),
                "thrown by a test"
            );
            self.pass().await?;
            if self.refusals.lock().as_ref().is_some_and(due) {
                return Err(Error::Refused("no".into()));
            }
            let Some(fault) = self.fault() else {
                return self.store.commit(write).await;
            };
            let link = self.link.subscribe();
            // A commit is completed even if its caller is dropped.
            let commit = commit_faultily(self.store.clone(), write, fault, link);
            tokio::spawn(commit).await.unwrap()
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
        let number = self.watches.fetch_add(1, Ordering::Relaxed);
        let (link, panics) = (self.link.subscribe(), self.watch_panics.clone());
        let cuts = link.borrow().cuts;
        stream::unfold(Some((changes, link, panics)), move |state| async move {
            let (mut changes, link, panics) = state?;
            let mut cut = link.clone();
            let batch = tokio::select! {
                biased;
                // Also resolves when the store is dropped.
                _ = cut.wait_for(|link| link.cuts > cuts) => Some(Err(cut_off())),
                batch = next(&mut changes, number, link.clone()) => batch,
            }?;
            panic_if_due(&panics);
            let rest = batch.is_ok().then_some((changes, link, panics));
            Some((batch, rest))
        })
        .boxed()
    }

    fn watch_key(
        &self,
        key: &str,
        after: Revision,
    ) -> BoxStream<'static, Result<KeyChange, Error>> {
        self.store.watch_key(key, after)
    }
}

async fn next(
    changes: &mut Changes,
    number: usize,
    mut link: watch::Receiver<Link>,
) -> Option<Result<Batch, Error>> {
    let mut batch = changes.next().await;
    let passes = |link: &Link| !link.held && number >= link.stalled;
    let _ = link.wait_for(passes).await;
    if let Some(Ok(batch)) = &mut batch
        && link.borrow().lossy
    {
        batch.changes.clear();
    }
    batch
}
