//! What is done for callers who may be killed before they have told of their own part.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use opentelemetry::trace::SpanId;
use parking_lot::Mutex;

use super::encoded::{Encoded, Sink};

/// How many spans are kept back for one caller at most; more pass at once. Some 3 MiB of them.
const KEPT: usize = 4096;
/// How long a span is kept back for a caller who is there and says nothing: its call may be part of something long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The callers that report which of their spans were exported, and our spans below those that were not yet. Clones share
/// them.
#[derive(Clone, Debug, Default)]
pub struct Callers {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    next: Option<Box<dyn Sink>>,
    kept: Mutex<HashMap<u64, Kept, RandomState>>,
}

/// Our spans below those of one caller.
#[derive(Debug, Default)]
struct Kept {
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    since: Instant,
    span: Encoded,
}

impl Callers {
    pub(crate) fn before(next: impl Sink + 'static) -> Self {
        let shared = Shared {
            next: Some(Box::new(next)),
            kept: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// A caller begins to report.
    pub fn meet(&self, caller: u64) -> Reporter {
        // It may be back before its former connection is known to be broken.
        self.shared.kept.lock().entry(caller).or_default();
        Reporter {
            callers: self.clone(),
            caller,
        }
    }

    /// Passes on all that is kept: callers who are there will tell of their parts.
    pub(crate) fn release(&self) {
        let kept = mem::take(&mut *self.shared.kept.lock());
        self.pass(kept.into_values().flat_map(Kept::into_spans));
    }

    fn pass(&self, spans: impl IntoIterator<Item = Encoded>) {
        if let Some(next) = &self.shared.next {
            spans.into_iter().for_each(|span| next.take(span));
        }
    }

    /// The span, unless it is to be kept.
    fn keep(&self, span: Encoded) -> Option<Encoded> {
        let Some(caller) = span.caller else {
            return Some(span);
        };
        match self.shared.kept.lock().get_mut(&caller.id) {
            Some(kept) => kept.keep(span),
            None => Some(span),
        }
    }
}

impl Kept {
    fn keep(&mut self, span: Encoded) -> Option<Encoded> {
        if self.waiting.len() >= KEPT {
            return Some(span);
        }
        let since = Instant::now();
        self.waiting.push(Waiting { since, span });
        None
    }

    fn take(&mut self, which: impl Fn(&Waiting) -> bool) -> Vec<Encoded> {
        let taken = self.waiting.extract_if(.., |waiting| which(waiting));
        taken.map(|waiting| waiting.span).collect()
    }

    fn take_below(&mut self, parents: &HashSet<SpanId, RandomState>) -> Vec<Encoded> {
        self.take(|waiting| parents.contains(&waiting.span.parent))
    }

    fn take_older(&mut self, moment: Instant) -> Vec<Encoded> {
        self.take(|waiting| waiting.since <= moment)
    }

    fn into_spans(self) -> impl Iterator<Item = Encoded> {
        self.waiting.into_iter().map(|waiting| waiting.span)
    }
}

impl Sink for Callers {
    fn take(&self, span: Encoded) {
        let passed = self.keep(span);
        self.pass(passed);
    }
}

/// A caller that reports. Dropped without [`Self::leave`], it was cut off, perhaps killed.
pub struct Reporter {
    callers: Callers,
    caller: u64,
}

impl Reporter {
    /// These spans of the caller have been exported: what is below them has a parent.
    pub fn exported(&self, spans: &[u64]) {
        let parents = spans.iter().map(|id| SpanId::from(*id)).collect();
        self.release(|kept| kept.take_below(&parents));
    }

    /// Waits no longer for what has been kept back for too long.
    pub fn give_up(&self) {
        let Some(moment) = Instant::now().checked_sub(PATIENCE) else {
            return;
        };
        self.release(|kept| kept.take_older(moment));
    }

    /// The caller will send the rest without reporting it.
    pub fn leave(self) {
        self.callers.pass(self.take());
    }

    /// Passes on what is taken, with nothing locked any more.
    fn release(&self, take: impl FnOnce(&mut Kept) -> Vec<Encoded>) {
        let taken = self
            .callers
            .shared
            .kept
            .lock()
            .get_mut(&self.caller)
            .map(take);
        self.callers.pass(taken.unwrap_or_default());
    }

    fn take(&self) -> impl Iterator<Item = Encoded> + use<> {
        let kept = self.callers.shared.kept.lock().remove(&self.caller);
        kept.into_iter().flat_map(Kept::into_spans)
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        let bereft = self.take().map(|mut span| {
            span.bereave();
            span
        });
        self.callers.pass(bereft);
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::Context;
    use opentelemetry::trace::{
        SpanContext, TraceContextExt as _, TraceFlags, TraceId, TraceState,
    };
    use setpoint_proto::Caller;

    use super::*;
    use crate::telemetry::parts::Parts;
    use crate::telemetry::told::{Pen, Told};

    const CALLER: u64 = 7;
    const CAUSE: u64 = 3;

    fn drawn() -> (Callers, Pen, Told) {
        let told = Told::default();
        let callers = Callers::before(told.clone());
        (callers.clone(), Pen::through(Parts::before(callers)), told)
    }

    /// Answers a call from inside a span of the caller's, which follows from the cause.
    fn call(pen: &Pen, from: u64) -> Context {
        let (trace, from) = (TraceId::from(1), SpanId::from(from));
        let from = SpanContext::new(trace, from, TraceFlags::SAMPLED, true, TraceState::NONE);
        let caller = Caller {
            id: CALLER,
            follows: SpanId::from(CAUSE),
        };
        let from = Context::new().with_remote_span_context(from);
        let answer = pen.begin("write", &from);
        answer.span().set_attribute(caller.attribute());
        answer.span().end();
        answer
    }

    fn parents(told: &Told) -> Vec<SpanId> {
        let spans = told.spans().into_iter();
        spans.map(|span| id(&span.parent_span_id)).collect()
    }

    fn id(bytes: &[u8]) -> SpanId {
        SpanId::from_bytes(bytes.try_into().unwrap_or_default())
    }

    #[test]
    fn what_is_done_for_a_caller_is_told_once_the_caller_has_told_of_it() {
        let (callers, pen, told) = drawn();
        let reporter = callers.meet(CALLER);
        let write = call(&pen, 5);
        call(&pen, 6);
        pen.draw("transaction", &write);
        assert_eq!(told.names(), ["transaction"], "its parent will come");
        reporter.exported(&[6, 99]);
        assert_eq!(parents(&told)[1..], [SpanId::from(6)]);
    }

    #[test]
    fn what_is_done_for_a_caller_who_is_cut_off_follows_from_what_the_call_did() {
        let (callers, pen, told) = drawn();
        let reporter = callers.meet(CALLER);
        call(&pen, 5);
        call(&pen, 6);
        reporter.exported(&[5]);
        drop(reporter);
        assert_eq!(parents(&told), [SpanId::from(5), SpanId::from(CAUSE)]);
        let attributes = format!("{:?}", told.spans()[1].attributes);
        assert!(attributes.contains("setpoint.lost_parent"), "{attributes}");
        assert!(attributes.contains("0000000000000006"), "{attributes}");
    }

    #[test]
    fn who_leaves_in_good_order_is_trusted_to_tell_the_rest() {
        let (callers, pen, told) = drawn();
        let reporter = callers.meet(CALLER);
        call(&pen, 5);
        reporter.leave();
        call(&pen, 6);
        assert_eq!(parents(&told), [SpanId::from(5), SpanId::from(6)]);
    }

    #[test]
    fn nothing_is_kept_for_those_who_do_not_report() {
        let (callers, pen, told) = drawn();
        let _other = callers.meet(CALLER + 1);
        call(&pen, 5);
        pen.draw("write", &Context::new());
        assert_eq!(parents(&told), [SpanId::from(5), SpanId::INVALID]);
    }

    #[test]
    fn an_orderly_end_of_ours_loses_nothing() {
        let (callers, pen, told) = drawn();
        let _reporter = callers.meet(CALLER);
        call(&pen, 5);
        callers.release();
        assert_eq!(parents(&told), [SpanId::from(5)]);
    }

    #[test]
    fn a_caller_who_says_nothing_costs_no_more_than_so_much() {
        let (callers, pen, told) = drawn();
        let _reporter = callers.meet(CALLER);
        for span in 1..=KEPT as u64 + 1 {
            call(&pen, span);
        }
        assert_eq!(told.names().len(), 1);
    }

    #[test]
    fn what_was_kept_for_too_long_is_told_as_it_is() {
        let (callers, pen, told) = drawn();
        let reporter = callers.meet(CALLER);
        call(&pen, 5);
        reporter.give_up();
        assert!(told.names().is_empty());
        let later = Instant::now() + PATIENCE;
        let mut kept = callers.shared.kept.lock();
        let taken = kept.get_mut(&CALLER).unwrap().take_older(later);
        assert_eq!(taken[0].parent, SpanId::from(5));
    }
}
