//! One watch: a cursor into the log.

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
use super::pending::Pending;
use super::{Cached, Filter, Shared, Snapshot, metrics};

/// How many records a watcher looks at before others have their turn.
const AT_ONCE: usize = 256;

/// Where more than so many watch the same, waking them costs more than telling them.
const CROWD: usize = 64;

/// So long one of a crowd rests after it was told something, to be told of more at once. What comes after a quiet time
/// is told without delay.
const REST: Duration = Duration::from_millis(10);

struct Watcher {
    shared: Arc<Shared>,
    filter: Filter,
    topic: Topic,
    wake: Arc<Notify>,
    /// The number of the record to look at next.
    next: u64,
    pending: Arc<Mutex<Pending>>,
    bookmarks: bool,
    /// When to say how far it has come, if there is nothing else to say.
    bookmark_at: Instant,
    /// Rings then or before: it is set once a round, not once an event.
    timer: Pin<Box<Sleep>>,
    expired: IntCounter,
    /// How far it has said that it has come.
    told: Revision,
    /// Before this, one of a crowd looks at nothing new.
    rests_until: Instant,
}

/// What one look into the log has brought.
struct Look {
    events: Vec<Event>,
    /// Everything up to here has been looked at, if `drained`.
    revision: Revision,
    drained: bool,
    /// When a new leader was last elected.
    elected: Revision,
}

/// Begins a watch at the state as it is.
pub(super) fn start(shared: Arc<Shared>, spec: WatchSpec) -> Result<Watch, ApiError> {
    let topic = Topic::of(&spec.filter);
    let mut state = shared.state.write();
    let wake = state.log.subscribe(&topic);
    let next = match spec.start {
        Start::After(revision) => state.log.after(&topic, revision)?,
        Start::Now | Start::Initial(_) => state.log.next(),
    };
    let told = match spec.start {
        Start::After(revision) => revision,
        Start::Now | Start::Initial(_) => state.revision,
    };
    let initial = matches!(spec.start, Start::Initial(_)).then(|| state.snapshot(&spec.filter));
    drop(state);
    let before = match initial {
        Some(snapshot) => introduction(snapshot, &spec),
        None => Vec::new(),
    };
    let kind = spec.filter.kind();
    metrics::initial(kind).inc_by(before.len() as u64);
    let bookmark_at = Instant::now() + shared.settings.bookmark_every;
    let watcher = Watcher {
        bookmark_at,
        timer: Box::pin(sleep_until(bookmark_at)),
        expired: metrics::expired(kind),
        pending: Pending::new(&shared.pending, before, kind),
        filter: spec.filter,
        bookmarks: spec.bookmarks,
        told,
        rests_until: Instant::now(),
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

fn introduction(snapshot: Snapshot, spec: &WatchSpec) -> Vec<Event> {
    let added = |object: Arc<Cached>| Event::new(EventType::Added, object);
    let mut events: Vec<_> = snapshot.items.into_iter().map(added).collect();
    if spec.bookmarks {
        events.push(Event::bookmark(&spec.filter, snapshot.revision, true));
    }
    events
}

impl Watcher {
    /// The next event; waits until there is one.
    async fn event(&mut self) -> Result<Event, ApiError> {
        loop {
            if let Some(event) = self.pending.lock().take()? {
                return Ok(event);
            }
            let events = self.events().await?;
            self.pending.lock().fill(events);
        }
    }

    /// The next events; waits until there are some.
    async fn events(&mut self) -> Result<Vec<Event>, ApiError> {
        loop {
            self.rest().await;
            let wake = self.wake.clone();
            let mut woken = pin!(wake.notified());
            // From here on no wake is missed, so what is not there when looked for is announced.
            woken.as_mut().enable();
            let look = self.look()?;
            if let Some(last) = look.events.last() {
                let now = Instant::now();
                self.told = last.object.revision;
                self.rests_until = now + REST;
                self.bookmark_at = now + self.shared.settings.bookmark_every;
                return Ok(look.events);
            }
            if look.drained {
                if let Some(bookmark) = self.bookmark(&look) {
                    return Ok(vec![bookmark]);
                }
                tokio::select! {
                    () = woken => {}
                    () = &mut self.timer => self.timer.as_mut().reset(self.bookmark_at),
                }
            }
        }
    }

    async fn rest(&self) {
        // The log holds one handle itself; exactness does not matter here.
        if Arc::strong_count(&self.wake) > CROWD && Instant::now() < self.rests_until {
            sleep_until(self.rests_until).await;
        }
    }

    fn look(&mut self) -> Result<Look, ApiError> {
        let state = self.shared.state.read();
        if state.is_closed() {
            let message = "the gateway is going away: watch again elsewhere";
            return Err(ApiError::new(Reason::ServiceUnavailable, message));
        }
        let read = state.log.read(&self.topic, self.next, AT_ONCE);
        let (records, next) = read.inspect_err(|_| self.expired.inc())?;
        let (revision, drained) = (state.revision, next == state.log.next());
        let elected = state.elected;
        drop(state);
        self.next = next;
        let events: Vec<_> = records
            .iter()
            .filter_map(|record| record.event(&self.filter))
            .collect();
        Ok(Look {
            events,
            revision,
            drained,
            elected,
        })
    }

    /// Due, wished for, and new.
    ///
    /// It is due now and then, and at once when a leader was elected: it may not decide before it knows that it has seen all
    /// that its predecessor wrote.
    fn bookmark(&mut self, look: &Look) -> Option<Event> {
        let now = Instant::now();
        if now < self.bookmark_at && look.elected <= self.told {
            return None;
        }
        self.bookmark_at = now + self.shared.settings.bookmark_every;
        let new = self.bookmarks && self.told < look.revision;
        self.told = look.revision;
        new.then(|| Event::bookmark(&self.filter, look.revision, false))
    }
}
