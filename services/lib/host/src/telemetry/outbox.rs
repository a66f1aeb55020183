//! Spans that wait for others to leave with.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::batch::Batch;
use super::encoded::{Encoded, Sink};

/// How long spans wait, and how many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    /// How long a span waits for others at most.
    pub delay: Duration,
    /// How many spans wait at most; more are dropped.
    pub queue: usize,
    /// How many leave at once.
    pub batch: usize,
}

/// Takes spans one by one, and gives them away in batches. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Outbox {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    pace: Pace,
    waiting: Mutex<Waiting>,
    /// The first has come, or enough for a batch.
    filled: Notify,
    closed: CancellationToken,
}

#[derive(Debug, Default)]
struct Waiting {
    /// To all but the last one the next span was too much.
    batches: VecDeque<Batch>,
    spans: usize,
    dropped: u64,
}

impl Outbox {
    pub fn new(pace: Pace) -> Self {
        let shared = Shared {
            pace,
            waiting: Mutex::default(),
            filled: Notify::new(),
            closed: CancellationToken::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// What is in it need not wait any longer, and what comes later is lost.
    pub fn close(&self) {
        self.shared.closed.cancel();
    }

    /// Resolves when it is closed.
    pub async fn closed(&self) {
        self.shared.closed.cancelled().await;
    }

    /// A full batch, or what there is a while after the first came; `None` once it is closed and empty.
    pub async fn batch(&self) -> Option<Batch> {
        loop {
            let closed = self.shared.closed.is_cancelled();
            if !closed {
                self.rest().await;
            }
            match self.shared.waiting.lock().leave() {
                None if closed => return None,
                None => {}
                some => return some,
            }
        }
    }

    /// How many were dropped since this was last asked.
    pub fn dropped(&self) -> u64 {
        mem::take(&mut self.shared.waiting.lock().dropped)
    }

    /// Until there is a full batch or the first has waited long enough. While there is none, nothing wakes up.
    async fn rest(&self) {
        let Shared { pace, closed, .. } = &*self.shared;
        let ready = async {
            self.holds(1).await;
            // When the time is up, what there is leaves.
            let _ = timeout(pace.delay, self.holds(pace.batch)).await;
        };
        closed.run_until_cancelled(ready).await;
    }

    async fn holds(&self, spans: usize) {
        while self.shared.waiting.lock().spans < spans {
            self.shared.filled.notified().await;
        }
    }
}

impl Waiting {
    fn join(&mut self, span: Encoded, most: usize) {
        self.spans += span.spans;
        match self.batches.back_mut() {
            Some(last) if last.len() + span.spans <= most => last.add(span),
            _ => {
                let mut first = Batch::of(most);
                first.add(span);
                self.batches.push_back(first);
            }
        }
    }

    fn leave(&mut self) -> Option<Batch> {
        let batch = self.batches.pop_front()?;
        self.spans -= batch.len();
        Some(batch)
    }
}

impl Sink for Outbox {
    fn take(&self, span: Encoded) {
        let Pace { queue, batch, .. } = self.shared.pace;
        let mut waiting = self.shared.waiting.lock();
        let before = waiting.spans;
        if before >= queue {
            waiting.dropped += span.spans as u64;
            return;
        }
        waiting.join(span, batch);
        if before == 0 || (before < batch && waiting.spans >= batch) {
            self.shared.filled.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::Context;
    use opentelemetry::trace::TraceContextExt as _;
    use setpoint_proto::Wait;
    use tokio::time::Instant;

    use super::*;
    use crate::telemetry::parts::Parts;
    use crate::telemetry::told::Pen;

    const PACE: Pace = Pace {
        delay: Duration::from_secs(1),
        queue: 5,
        batch: 2,
    };

    fn filled(spans: usize) -> (Outbox, Pen) {
        let outbox = Outbox::new(PACE);
        let pen = Pen::through(Parts::before(outbox.clone()));
        for _ in 0..spans {
            pen.draw("write", &Context::new());
        }
        (outbox, pen)
    }

    async fn count(outbox: &Outbox) -> Option<usize> {
        outbox.batch().await.map(|batch| batch.len())
    }

    #[tokio::test(start_paused = true)]
    async fn full_batches_leave_at_once_and_the_rest_after_a_while() {
        let (outbox, pen) = filled(3);
        let start = Instant::now();
        assert_eq!(count(&outbox).await, Some(2));
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert_eq!(count(&outbox).await, Some(1));
        assert_eq!(start.elapsed(), PACE.delay);
        let late = tokio::spawn(async move { (count(&outbox).await, Instant::now()) });
        tokio::time::sleep(PACE.delay / 2).await;
        pen.draw("write", &Context::new());
        pen.draw("write", &Context::new());
        let (count, end) = late.await.unwrap();
        assert_eq!(count, Some(2));
        assert_eq!(end - start, PACE.delay + PACE.delay / 2);
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_first_after_a_while_of_nothing_waits_for_others_as_long_as_any() {
        let (outbox, pen) = filled(0);
        let late = tokio::spawn(async move { (count(&outbox).await, Instant::now()) });
        tokio::time::sleep(PACE.delay * 5 / 2).await;
        let start = Instant::now();
        pen.draw("write", &Context::new());
        let (count, end) = late.await.unwrap();
        assert_eq!((count, end - start), (Some(1), PACE.delay));
    }

    #[tokio::test(start_paused = true)]
    async fn a_collector_that_is_stuck_costs_spans_and_not_memory() {
        let (outbox, _) = filled(PACE.queue + 3);
        assert_eq!(outbox.dropped(), 3);
        assert_eq!(outbox.dropped(), 0);
        outbox.close();
        let mut taken = 0;
        while let Some(count) = count(&outbox).await {
            taken += count;
        }
        assert_eq!(taken, PACE.queue);
    }

    #[tokio::test(start_paused = true)]
    async fn waits_leave_with_the_span_that_waited_and_count_as_spans() {
        let (outbox, pen) = filled(1);
        let wait = Wait {
            key: "setpoint.wait.queue",
            from_ns: 1,
            to_ns: 2,
        };
        for _ in 0..3 {
            let round = pen.begin("round", &Context::new());
            round.span().set_attribute(wait.attribute());
            round.span().end();
        }
        assert_eq!(outbox.dropped(), 2, "it was full with the second of them");
        assert_eq!(count(&outbox).await, Some(1), "two more are too much");
        for _ in 0..2 {
            assert_eq!(count(&outbox).await, Some(PACE.batch));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_told_of_the_end() {
        let (outbox, _) = filled(0);
        let waiting = outbox.clone();
        let waiting = tokio::spawn(async move { waiting.batch().await.is_none() });
        tokio::time::sleep(PACE.delay / 2).await;
        let start = Instant::now();
        outbox.close();
        assert!(waiting.await.unwrap());
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
}
