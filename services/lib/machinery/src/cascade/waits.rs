//! The waits between a write and the round that it caused, as spans beside the round.
//!
//! ```text
//! written ─delivery─▶ queued ─queue─▶ taken ─barrier─▶ looked ─plan─▶ round
//!         └takeover─▶ (written before this process began to lead)
//!          failed ─backoff─▶ queued       looks again ─rest─▶ queued
//! ```

use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

use opentelemetry::global::{self, BoxedTracer};
use opentelemetry::trace::{Span as _, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, KeyValue};
use setpoint_model::Key;
use setpoint_proto::Cause;
use tokio::time::Instant;

use crate::Ticket;
use crate::queue::Rest;

/// Shorter ones cannot be seen beside what they are waits for.
const NOTICEABLE: Duration = Duration::from_micros(100);

static TRACER: LazyLock<BoxedTracer> = LazyLock::new(|| global::tracer("setpoint"));

/// Draws the waits of a round that begins now, as children of the write that it follows from.
pub(super) fn draw(write: &Cause, parent: &Context, ticket: &Ticket<Key>, looked: Instant) {
    if !parent.span().span_context().is_sampled() {
        return;
    }
    let clock = Clock::now();
    let pen = Pen {
        parent,
        object: ticket.key.to_string().into(),
    };
    let waits = &ticket.waits;
    let written = SystemTime::UNIX_EPOCH
        + Duration::from_nanos(u64::try_from(write.written_ns).unwrap_or_default());
    let queued = clock.read(waits.queued).max(written);
    match waits.rest {
        Some((rest, since)) => pen.draw(rest.name(), clock.read(since).max(written), queued),
        None => {
            let opened = clock.read(waits.opened).clamp(written, queued);
            pen.draw("takeover", written, opened);
            pen.draw("delivery", opened, queued);
        }
    }
    let taken = clock.read(waits.taken).max(queued);
    let looked = clock.read(looked).max(taken);
    pen.draw("queue", queued, taken);
    pen.draw("barrier", taken, looked);
    pen.draw("plan", looked, clock.wall);
}

impl Rest {
    const fn name(self) -> &'static str {
        match self {
            Self::Backoff => "backoff",
            Self::Again => "rest",
        }
    }
}

struct Pen<'c> {
    parent: &'c Context,
    object: Arc<str>,
}

impl Pen<'_> {
    fn draw(&self, name: &'static str, from: SystemTime, to: SystemTime) {
        if to.duration_since(from).unwrap_or_default() < NOTICEABLE {
            return;
        }
        let object = KeyValue::new("setpoint.object", self.object.clone());
        TRACER
            .span_builder(name)
            .with_start_time(from)
            .with_attributes([object])
            .start_with_context(&*TRACER, self.parent)
            .end_with_timestamp(to);
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
