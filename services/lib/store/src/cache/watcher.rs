//! A watch: a cursor into the log.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use parking_lot::Mutex;
use prometheus::IntCounter;
use setpoint_model::Revision;
use setpoint_proto::{ApiError, EventType, Reason};
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep_until};

use super::event::{Event, Start, Watch, WatchSpec};
use super::log::Topic;
use super::watch_buffer::WatchBuffer;
use super::{Cached, Filter, Shared, Snapshot, metrics};

/// The largest number of records that a watcher reads under one lock.
const MAX_RECORDS: usize = 256;

/// The number of watchers of one topic beyond which their wake-ups are coalesced: then waking them costs more than
/// sending the events.
const MANY_WATCHERS: usize = 64;

/// The least time between two reads of the log by one of many watchers, or by a watch of all kinds, which each write
/// wakes. The first record after a longer time is read at once.
pub(super) const COALESCE: Duration = Duration::from_millis(10);

struct Watcher {
    shared: Arc<Shared>,
    filter: Filter,
    topic: Topic,
    wake: Arc<Notify>,
    /// The number of the next record to read.
    next: u64,
    buffer: Arc<Mutex<WatchBuffer>>,
    bookmarks: bool,
    /// The time of the next bookmark, unless there is an event before.
    bookmark_at: Instant,
    /// Elapses at that time or before: it is reset when it elapses, not with each event.
    timer: Pin<Box<Sleep>>,
    expired: IntCounter,
    /// The revision of the last event or bookmark.
    sent: Revision,
    /// The time before which one of many watchers does not read the log.
    paused_until: Instant,
}

/// The result of one read of the log.
struct ReadLog {
    events: Vec<Event>,
    /// The revision of the state. Everything up to it was read if `drained`.
    revision: Revision,
    drained: bool,
    /// The revision at which the holder of any Lease last changed.
    elected: Revision,
}

/// Starts a watch. The cache must have reached the start that `spec` asks for. `check` passes the initial state or
/// refuses it.
pub(super) fn start(
    shared: Arc<Shared>,
    spec: WatchSpec,
    check: impl FnOnce(Snapshot) -> Result<Snapshot, ApiError>,
) -> Result<Watch, ApiError> {
    let topic = Topic::of(&spec.filter);
    let mut state = shared.state.write();
    state.kind_store(spec.filter.kind())?;
    let wake = state.log.subscribe(&topic);
    let next = match spec.start {
        Start::After(revision) => state.log.after(&topic, revision)?,
        Start::Now | Start::Initial(_) => state.log.next(),
    };
    let sent = match spec.start {
        Start::After(revision) => revision,
        Start::Now | Start::Initial(_) => state.revision,
    };
    let initial = matches!(spec.start, Start::Initial(_))
        .then(|| state.snapshot(&spec.filter).and_then(check))
        .transpose()?;
    drop(state);
    let before = match initial {
        Some(snapshot) => initial_events(snapshot, &spec),
        None => Vec::new(),
    };
    let kind = spec.filter.kind();
    metrics::initial(kind).inc_by(before.len() as u64);
    let bookmark_at = Instant::now() + shared.settings.bookmark_interval;
    let watcher = Watcher {
        bookmark_at,
        timer: Box::pin(sleep_until(bookmark_at)),
        expired: metrics::expired(kind),
        buffer: WatchBuffer::new(&shared.buffers, before, kind),
        filter: spec.filter,
        bookmarks: spec.bookmarks,
        sent,
        paused_until: Instant::now(),
        shared,
        topic,
        wake,
        next,
    };
    let changes = stream::try_unfold(watcher, |mut watcher| async {
        let event = watcher.event().await?;
        Ok::<_, ApiError>(Some((event, watcher)))
    });
    Ok(changes.boxed())
}

fn initial_events(snapshot: Snapshot, spec: &WatchSpec) -> Vec<Event> {
    let added = |object: Arc<Cached>| Event::new(EventType::Added, object);
    let mut events: Vec<_> = snapshot.items.into_iter().map(added).collect();
    if spec.bookmarks {
        events.push(Event::bookmark(&spec.filter, snapshot.revision, true));
    }
    events
}

impl Watcher {
    /// Waits for the next event.
    async fn event(&mut self) -> Result<Event, ApiError> {
        loop {
            if let Some(event) = self.buffer.lock().take()? {
                return Ok(event);
            }
            let events = self.events().await?;
            self.buffer.lock().fill(events);
        }
    }

    /// Waits for the next events.
    async fn events(&mut self) -> Result<Vec<Event>, ApiError> {
        loop {
            self.coalesce().await;
            let wake = self.wake.clone();
            let mut woken = pin!(wake.notified());
            // Enabled before the log is read, so that no record is missed in between.
            woken.as_mut().enable();
            let read = self.read()?;
            if let Some(last) = read.events.last() {
                let now = Instant::now();
                self.sent = last.object.revision;
                self.paused_until = now + COALESCE;
                self.bookmark_at = now + self.shared.settings.bookmark_interval;
                return Ok(read.events);
            }
            if read.drained {
                if let Some(bookmark) = self.bookmark(&read) {
                    return Ok(vec![bookmark]);
                }
                tokio::select! {
                    () = woken => {}
                    () = &mut self.timer => self.timer.as_mut().reset(self.bookmark_at),
                }
            }
        }
    }

    /// Pauses if there are many watchers of the topic and this one has just read the log.
    async fn coalesce(&self) {
        // An estimate: the log and the current wait hold handles too.
        if Arc::strong_count(&self.wake) > MANY_WATCHERS && Instant::now() < self.paused_until {
            sleep_until(self.paused_until).await;
        }
    }

    fn read(&mut self) -> Result<ReadLog, ApiError> {
        let state = self.shared.state.read();
        if state.is_closed() {
            let message = "the gateway is shutting down: watch again at another one";
            return Err(ApiError::new(Reason::ServiceUnavailable, message));
        }
        let read = state.log.read(&self.topic, self.next, MAX_RECORDS);
        let (records, next) = read.inspect_err(|_| self.expired.inc())?;
        let (revision, drained) = (state.revision, next == state.log.next());
        let elected = state.elected;
        drop(state);
        self.next = next;
        let events: Vec<_> = records
            .iter()
            .filter_map(|record| record.event(&self.filter))
            .collect();
        Ok(ReadLog {
            events,
            revision,
            drained,
            elected,
        })
    }

    /// Returns a bookmark if one is due, asked for, and of a new revision.
    ///
    /// Bookmarks are due at intervals, and at once when the holder of a Lease has changed: a new leader must not act
    /// before it has seen all writes of its predecessor.
    fn bookmark(&mut self, read: &ReadLog) -> Option<Event> {
        let now = Instant::now();
        if now < self.bookmark_at && read.elected <= self.sent {
            return None;
        }
        self.bookmark_at = now + self.shared.settings.bookmark_interval;
        let new = self.bookmarks && self.sent < read.revision;
        self.sent = read.revision;
        new.then(|| Event::bookmark(&self.filter, read.revision, false))
    }
}
