//! The waits between a write and the round that it caused, as spans beside the round.
//!
//! ```text
//! written ─delivery─▶ queued ─queue─▶ taken ─barrier─▶ looked ─plan─▶ round
//!         └takeover─▶ (written before this process began to lead)
//!          failed ─backoff─▶ queued       looks again ─rest─▶ queued
//! ```

use std::time::{Duration, SystemTime};

use opentelemetry::KeyValue;
use setpoint_model::Key;
use setpoint_proto::lineage::moment;
use setpoint_proto::{Cause, Wait};
use tokio::time::Instant;

use crate::Ticket;
use crate::queue::Rest;

/// Shorter ones cannot be seen beside what they are waits for.
const NOTICEABLE: Duration = Duration::from_micros(100);

/// What was waited for between a write and the round that begins now, for the span of that.
pub(super) fn between(
    write: &Cause,
    ticket: &Ticket<Key>,
    looked: Instant,
) -> impl Iterator<Item = KeyValue> {
    let clock = Clock::now();
    let waits = &ticket.waits;
    let written = moment(write.written_ns);
    let queued = clock.read(waits.queued).max(written);
    let [first, second] = match waits.rest {
        Some((rest, since)) => {
            let since = clock.read(since).max(written);
            [wait(rest.name(), since, queued), None]
        }
        None => {
            let opened = clock.read(waits.opened).clamp(written, queued);
            [
                wait("takeover", written, opened),
                wait("delivery", opened, queued),
            ]
        }
    };
    let taken = clock.read(waits.taken).max(queued);
    let looked = clock.read(looked).max(taken);
    let all = [
        first,
        second,
        wait("queue", queued, taken),
        wait("barrier", taken, looked),
        wait("plan", looked, clock.wall),
    ];
    all.into_iter().flatten().map(|wait| wait.attribute())
}

/// `None` for one that cannot be noticed.
fn wait(name: &'static str, from: SystemTime, to: SystemTime) -> Option<Wait<'static>> {
    let lasted = to.duration_since(from).unwrap_or_default();
    (lasted >= NOTICEABLE).then_some(Wait { name, from, to })
}

impl Rest {
    const fn name(self) -> &'static str {
        match self {
            Self::Backoff => "backoff",
            Self::Again => "rest",
        }
    }
}

/// The monotonic clock's moments as times of day.
struct Clock {
    wall: SystemTime,
    monotonic: Instant,
}

impl Clock {
    fn now() -> Self {
        Self {
            wall: SystemTime::now(),
            monotonic: Instant::now(),
        }
    }

    fn read(&self, moment: Instant) -> SystemTime {
        self.wall - self.monotonic.saturating_duration_since(moment)
    }
}
