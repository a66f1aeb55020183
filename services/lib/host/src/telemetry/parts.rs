//! A process tells of its part in a trace when that is over, as a whole.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry::trace::{Span as _, SpanId, TraceContextExt as _};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use parking_lot::Mutex;

/// How many spans wait at most for the ends of their parts; more pass at once. Some 16 MiB of them.
const WAITING: usize = 16_384;

/// Holds back what is below a process's first span of a trace until that one has ended, and passes it on before them.
///
/// Whoever is killed takes a whole part along: of what was sent, no span misses its parent.
#[derive(Clone, Debug)]
pub struct Parts<P> {
    next: P,
    open: Arc<Mutex<Open>>,
}

#[derive(Debug, Default)]
struct Open {
    /// Of each span of a part that is not over: the part's first span.
    firsts: HashMap<SpanId, SpanId>,
    /// What has ended of each part, by its first span.
    ended: HashMap<SpanId, Vec<SpanData>>,
    waiting: usize,
}

impl<P> Parts<P> {
    pub fn before(next: P) -> Self {
        Self {
            next,
            open: Arc::default(),
        }
    }
}

impl Open {
    fn start(&mut self, span: SpanId, parent: SpanId) {
        match self.firsts.get(&parent).copied() {
            Some(first) => _ = self.firsts.insert(span, first),
            None => {
                self.firsts.insert(span, span);
                self.ended.insert(span, Vec::new());
            }
        }
    }

    /// What can be told now that this span has ended, in order.
    fn end(&mut self, span: SpanData) -> Vec<SpanData> {
        let id = span.span_context.span_id();
        let first = self.firsts.get(&id).copied().unwrap_or(id);
        if first == id {
            return self.close(span);
        }
        match self.ended.get_mut(&first) {
            Some(ended) if self.waiting < WAITING => {
                ended.push(span);
                self.waiting += 1;
                Vec::new()
            }
            _ => {
                self.firsts.remove(&id);
                vec![span]
            }
        }
    }

    fn close(&mut self, first: SpanData) -> Vec<SpanData> {
        let id = first.span_context.span_id();
        let ended = self.ended.remove(&id).unwrap_or_default();
        self.waiting -= ended.len();
        let mut part = vec![first];
        part.extend(ended);
        for span in &part {
            self.firsts.remove(&span.span_context.span_id());
        }
        part
    }
}

impl<P: SpanProcessor> SpanProcessor for Parts<P> {
    fn on_start(&self, span: &mut Span, context: &Context) {
        let parent = context.span().span_context().span_id();
        let id = span.span_context().span_id();
        self.open.lock().start(id, parent);
    }

    fn on_end(&self, span: SpanData) {
        let told = self.open.lock().end(span);
        told.into_iter().for_each(|span| self.next.on_end(span));
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.next.force_flush()
    }

    /// What is not over by now never will be.
    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        let left = mem::take(&mut *self.open.lock()).ended;
        let left = left.into_values().flatten();
        left.for_each(|span| self.next.on_end(span));
        self.next.shutdown_with_timeout(timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::told::{Pen, Told};

    fn drawn() -> (Pen, Told) {
        let told = Told::default();
        (Pen::through(Parts::before(told.clone())), told)
    }

    #[test]
    fn a_part_is_told_when_it_is_over_and_its_first_span_first() {
        let (pen, told) = drawn();
        let round = pen.begin("round", &Context::new());
        pen.draw("act", &round);
        assert!(told.names().is_empty());
        round.span().end();
        assert_eq!(told.names(), ["round", "act"]);
    }

    #[test]
    fn what_names_a_span_of_the_part_as_if_from_afar_belongs_to_it() {
        let (pen, told) = drawn();
        let round = pen.begin("round", &Context::new());
        let act = pen.draw("act", &round);
        let afar = act.span().span_context().clone();
        pen.draw("event", &Context::new().with_remote_span_context(afar));
        assert!(told.names().is_empty());
        round.span().end();
        assert_eq!(told.names(), ["round", "act", "event"]);
    }

    #[test]
    fn what_outlives_its_part_is_told_at_its_own_end() {
        let (pen, told) = drawn();
        let round = pen.begin("round", &Context::new());
        let late = pen.begin("late", &round);
        round.span().end();
        assert_eq!(told.names(), ["round"]);
        late.span().end();
        assert_eq!(told.names(), ["round", "late"]);
    }

    #[test]
    fn parts_do_not_wait_for_each_other_and_nothing_is_kept_of_them() {
        let told = Told::default();
        let parts = Parts::before(told.clone());
        let pen = Pen::through(parts.clone());
        let open = pen.begin("open", &Context::new());
        for _ in 0..3 {
            let other = pen.begin("other", &Context::new());
            pen.draw("below", &other);
            let late = pen.begin("late", &other);
            other.span().end();
            late.span().end();
        }
        assert_eq!(told.names().len(), 9);
        open.span().end();
        let open = parts.open.lock();
        assert!(open.firsts.is_empty() && open.ended.is_empty() && open.waiting == 0);
    }

    #[test]
    fn an_orderly_end_loses_nothing() {
        let (pen, told) = drawn();
        let round = pen.begin("round", &Context::new());
        pen.draw("act", &round);
        pen.provider.shutdown().unwrap();
        assert_eq!(told.names(), ["act"]);
    }

    #[test]
    fn too_many_pass_at_once() {
        let (pen, told) = drawn();
        let round = pen.begin("round", &Context::new());
        for _ in 0..=WAITING {
            pen.draw("act", &round);
        }
        assert_eq!(told.names(), ["act"]);
        round.span().end();
        assert_eq!(told.names().len(), WAITING + 2);
    }
}
