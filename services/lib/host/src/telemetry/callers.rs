//! What is done for callers who may be killed before they have told of their own part.

use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use opentelemetry::trace::SpanId;
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use parking_lot::Mutex;
use setpoint_proto::Caller;

/// How many spans are kept back for one caller at most; more pass at once. Some 4 MiB of them.
const KEPT: usize = 4096;
/// How long a span is kept back for a caller who is there and says nothing: its call may be part of something long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The callers that report which of their spans were exported, and our spans below those that were not yet. Clones share
/// them.
///
/// As a span processor it stands before the one that exports.
#[derive(Clone, Default)]
pub struct Callers {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    next: Option<Box<dyn SpanProcessor>>,
    kept: Mutex<HashMap<u64, Kept>>,
}

/// Of one caller: our spans by the spans of its that they are below.
#[derive(Default)]
struct Kept {
    below: HashMap<SpanId, Vec<Waiting>>,
    count: usize,
}

struct Waiting {
    since: Instant,
    span: SpanData,
}

impl Callers {
    pub(crate) fn before(next: impl SpanProcessor + 'static) -> Self {
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

    fn pass(&self, spans: impl IntoIterator<Item = SpanData>) {
        if let Some(next) = &self.shared.next {
            spans.into_iter().for_each(|span| next.on_end(span));
        }
    }

    /// The span, unless it is to be kept.
    fn keep(&self, span: SpanData) -> Option<SpanData> {
        let caller = match span.parent_span_is_remote {
            true => Caller::of(span.span_context.trace_state()),
            false => None,
        };
        let Some(caller) = caller else {
            return Some(span);
        };
        match self.shared.kept.lock().get_mut(&caller.id) {
            Some(kept) => kept.keep(span),
            None => Some(span),
        }
    }
}

impl Kept {
    fn keep(&mut self, span: SpanData) -> Option<SpanData> {
        if self.count >= KEPT {
            return Some(span);
        }
        self.count += 1;
        let waiting = Waiting {
            since: Instant::now(),
            span,
        };
        let below = self.below.entry(waiting.span.parent_span_id).or_default();
        below.push(waiting);
        None
    }

    fn take(&mut self, parents: impl Iterator<Item = SpanId>) -> Vec<SpanData> {
        let taken = parents.filter_map(|parent| self.below.remove(&parent));
        let taken: Vec<_> = taken.flatten().map(|waiting| waiting.span).collect();
        self.count -= taken.len();
        taken
    }

    fn take_older(&mut self, moment: Instant) -> Vec<SpanData> {
        let old = |waiting: &Waiting| waiting.since <= moment;
        let parents = self.below.iter().filter(|(_, below)| below.iter().any(old));
        let parents: Vec<_> = parents.map(|(parent, _)| *parent).collect();
        self.take(parents.into_iter())
    }

    fn into_spans(self) -> impl Iterator<Item = SpanData> {
        let below = self.below.into_values().flatten();
        below.map(|waiting| waiting.span)
    }
}

impl SpanProcessor for Callers {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        let passed = self.keep(span);
        self.pass(passed);
    }

    fn force_flush(&self) -> OTelSdkResult {
        let next = self.shared.next.as_ref();
        next.map_or(Ok(()), |next| next.force_flush())
    }

    /// Callers who are there will tell of their parts.
    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        let kept = mem::take(&mut *self.shared.kept.lock());
        self.pass(kept.into_values().flat_map(Kept::into_spans));
        let next = self.shared.next.as_ref();
        next.map_or(Ok(()), |next| next.shutdown_with_timeout(timeout))
    }
}

impl fmt::Debug for Callers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callers").finish_non_exhaustive()
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
        self.release(|kept| kept.take(spans.iter().map(|id| SpanId::from(*id))));
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
    fn release(&self, take: impl FnOnce(&mut Kept) -> Vec<SpanData>) {
        let taken = self
            .callers
            .shared
            .kept
            .lock()
            .get_mut(&self.caller)
            .map(take);
        self.callers.pass(taken.unwrap_or_default());
    }

    fn take(&self) -> impl Iterator<Item = SpanData> + use<> {
        let kept = self.callers.shared.kept.lock().remove(&self.caller);
        kept.into_iter().flat_map(Kept::into_spans)
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.callers.pass(self.take().map(bereave));
    }
}

/// Puts a span whose parent may be lost below what its call followed from.
fn bereave(mut span: SpanData) -> SpanData {
    let caller = Caller::of(span.span_context.trace_state());
    let lost = span.parent_span_id.to_string();
    span.attributes
        .push(KeyValue::new("setpoint.lost_parent", lost));
    span.parent_span_id = caller.map_or(SpanId::INVALID, |caller| caller.follows);
    span
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::{SpanContext, TraceContextExt as _, TraceFlags, TraceId};

    use super::*;
    use crate::telemetry::told::{Pen, Told};

    const CALLER: u64 = 7;
    const CAUSE: u64 = 3;

    fn drawn() -> (Callers, Pen, Told) {
        let told = Told::default();
        let callers = Callers::before(told.clone());
        (callers.clone(), Pen::through(callers), told)
    }

    /// A call from inside a span of the caller's, which follows from the cause.
    fn called_from(span: u64) -> Context {
        let state = format!("setpoint=1;0;{CALLER:016x};{CAUSE:016x}");
        let (trace, span) = (TraceId::from(1), SpanId::from(span));
        let state = state.parse().unwrap();
        let parent = SpanContext::new(trace, span, TraceFlags::SAMPLED, true, state);
        Context::new().with_remote_span_context(parent)
    }

    fn parents(told: &Told) -> Vec<SpanId> {
        let spans = told.spans().into_iter();
        spans.map(|span| span.parent_span_id).collect()
    }

    #[test]
    fn what_is_done_for_a_caller_is_told_once_the_caller_has_told_of_it() {
        let (callers, pen, told) = drawn();
        let reporter = callers.meet(CALLER);
        let write = pen.draw("write", &called_from(5));
        pen.draw("write", &called_from(6));
        pen.draw("transaction", &write);
        assert_eq!(told.names(), ["transaction"], "its parent will come");
        reporter.exported(&[6, 99]);
        assert_eq!(parents(&told)[1..], [SpanId::from(6)]);
    }

    #[test]
    fn what_is_done_for_a_caller_who_is_cut_off_follows_from_what_the_call_did() {
        let (callers, pen, told) = drawn();
        let reporter = callers.meet(CALLER);
        pen.draw("write", &called_from(5));
        pen.draw("write", &called_from(6));
        reporter.exported(&[5]);
        drop(reporter);
        assert_eq!(parents(&told), [SpanId::from(5), SpanId::from(CAUSE)]);
        let lost = KeyValue::new("setpoint.lost_parent", "0000000000000006");
        assert!(told.spans()[1].attributes.contains(&lost));
    }

    #[test]
    fn who_leaves_in_good_order_is_trusted_to_tell_the_rest() {
        let (callers, pen, told) = drawn();
        let reporter = callers.meet(CALLER);
        pen.draw("write", &called_from(5));
        reporter.leave();
        pen.draw("write", &called_from(6));
        assert_eq!(parents(&told), [SpanId::from(5), SpanId::from(6)]);
    }

    #[test]
    fn nothing_is_kept_for_those_who_do_not_report() {
        let (callers, pen, told) = drawn();
        let _other = callers.meet(CALLER + 1);
        pen.draw("write", &called_from(5));
        pen.draw("write", &Context::new());
        assert_eq!(parents(&told), [SpanId::from(5), SpanId::INVALID]);
    }

    #[test]
    fn an_orderly_end_of_ours_loses_nothing() {
        let (callers, pen, told) = drawn();
        let _reporter = callers.meet(CALLER);
        pen.draw("write", &called_from(5));
        pen.provider.shutdown().unwrap();
        assert_eq!(parents(&told), [SpanId::from(5)]);
    }

    #[test]
    fn a_caller_who_says_nothing_costs_no_more_than_so_much() {
        let (callers, pen, told) = drawn();
        let _reporter = callers.meet(CALLER);
        for span in 1..=KEPT as u64 + 1 {
            pen.draw("write", &called_from(span));
        }
        assert_eq!(told.names().len(), 1);
    }

    #[test]
    fn what_was_kept_for_too_long_is_told_as_it_is() {
        let (callers, pen, told) = drawn();
        let reporter = callers.meet(CALLER);
        pen.draw("write", &called_from(5));
        reporter.give_up();
        assert!(told.names().is_empty());
        let later = Instant::now() + PATIENCE;
        let mut kept = callers.shared.kept.lock();
        let taken = kept.get_mut(&CALLER).unwrap().take_older(later);
        assert_eq!(taken[0].parent_span_id, SpanId::from(5));
    }
}
