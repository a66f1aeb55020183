//! The waits between a write and the round that it caused, as spans beside the round.
//!
//! ```text
//! written ─delivery─▶ queued ─queue─▶ taken ─barrier─▶ looked ─plan─▶ round
//!         └takeover─▶ (written before this process began to lead)
//!          failed ─backoff─▶ queued       looks again ─rest─▶ queued
//! ```

use opentelemetry::KeyValue;
use setpoint_model::Key;
use setpoint_proto::lineage::{lasting, now_ns};
use setpoint_proto::{Cause, Wait};
use tokio::time::Instant;

use crate::Ticket;
use crate::queue::Rest;

/// So many nanoseconds; shorter ones cannot be seen beside what they are waits for.
const NOTICEABLE: i64 = 100_000;

/// What was waited for between a write and the round that begins now, for the span of that.
pub(super) fn between(
    write: &Cause,
    ticket: &Ticket<Key>,
    looked: Instant,
) -> impl Iterator<Item = KeyValue> {
    let clock = Clock::now();
    let waits = &ticket.waits;
    let written = write.written_ns;
    let queued = clock.read(waits.queued).max(written);
    let [first, second] = match waits.rest {
        Some((rest, since)) => {
            let since = clock.read(since).max(written);
            [wait(rest.wait(), since, queued), None]
        }
        None => {
            let opened = clock.read(waits.opened).clamp(written, queued);
            [
                wait("setpoint.wait.takeover", written, opened),
                wait("setpoint.wait.delivery", opened, queued),
            ]
        }
    };
    let taken = clock.read(waits.taken).max(queued);
    let looked = clock.read(looked).max(taken);
    let all = [
        first,
        second,
        wait("setpoint.wait.queue", queued, taken),
        wait("setpoint.wait.barrier", taken, looked),
        wait("setpoint.wait.plan", looked, clock.wall_ns),
    ];
    all.into_iter().flatten()
}

/// `None` for one that cannot be noticed.
fn wait(key: &'static str, from_ns: i64, to_ns: i64) -> Option<KeyValue> {
    let wait = Wait {
        key,
        from_ns,
        to_ns,
    };
    (to_ns - from_ns >= NOTICEABLE).then(|| wait.attribute())
}

impl Rest {
    const fn wait(self) -> &'static str {
        match self {
            Self::Backoff => "setpoint.wait.backoff",
            Self::Again => "setpoint.wait.rest",
        }
    }
}

/// The monotonic clock's moments as times of day, in nanoseconds since 1970.
struct Clock {
    wall_ns: i64,
    monotonic: Instant,
}

impl Clock {
    fn now() -> Self {
        Self {
            wall_ns: now_ns(),
            monotonic: Instant::now(),
        }
    }

    fn read(&self, moment: Instant) -> i64 {
        let ago = self.monotonic.saturating_duration_since(moment);
        self.wall_ns.saturating_sub(lasting(ago))
    }
}
