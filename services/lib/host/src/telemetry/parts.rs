//! A process tells of its part in a trace when that is over, as a whole.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use opentelemetry::Context;
use opentelemetry::trace::{Span as _, SpanId, TraceContextExt as _};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use parking_lot::Mutex;

use super::encoded::{Encoded, Sink};

/// How many spans wait at most for the ends of their parts; more pass at once. Some 5 MiB of them.
const WAITING: usize = 16_384;

/// Holds back what is below a process's first span of a trace until that one has ended, and passes it on before them.
///
/// Whoever is killed takes a whole part along: of what was sent, no span misses its parent.
#[derive(Clone, Debug)]
pub struct Parts<S> {
    next: S,
    open: Arc<Mutex<Open>>,
}

/// The spans of parts that are not over.
#[derive(Debug, Default)]
struct Open {
    spans: HashMap<SpanId, Place, RandomState>,
    waiting: usize,
}

/// Of a span in its part.
#[derive(Debug)]
enum Place {
    /// The first, with what has ended below it.
    First(Vec<Encoded>),
    /// Below this one, which is the first.
    Below(SpanId),
}

impl<S> Parts<S> {
    pub fn before(next: S) -> Self {
        Self {
            next,
            open: Arc::default(),
        }
    }
}

impl Open {
    fn start(&mut self, span: SpanId, parent: SpanId) {
        let place = match self.spans.get(&parent) {
            Some(Place::First(_)) => Place::Below(parent),
            Some(Place::Below(first)) => Place::Below(*first),
            None => Place::First(Vec::new()),
        };
        self.spans.insert(span, place);
    }

    /// What can be told now that this span has ended: itself first, if it can, then these.
    fn end(&mut self, span: Encoded) -> (Option<Encoded>, Vec<Encoded>) {
        let first = match self.spans.get(&span.id) {
            Some(Place::Below(first)) => *first,
            _ => return self.close(span),
        };
        match self.spans.get_mut(&first) {
            Some(Place::First(ended)) if self.waiting < WAITING => {
                ended.push(span);
                self.waiting += 1;
                (None, Vec::new())
            }
            _ => {
                self.spans.remove(&span.id);
                (Some(span), Vec::new())
            }
        }
    }

    fn close(&mut self, first: Encoded) -> (Option<Encoded>, Vec<Encoded>) {
        let ended = match self.spans.remove(&first.id) {
            Some(Place::First(ended)) => ended,
            _ => Vec::new(),
        };
        self.waiting -= ended.len();
        for span in &ended {
            self.spans.remove(&span.id);
        }
        (Some(first), ended)
    }

    fn left(&mut self) -> impl Iterator<Item = Encoded> + use<> {
        self.waiting = 0;
        let places = mem::take(&mut self.spans).into_values();
        places.flat_map(|place| match place {
            Place::First(ended) => ended,
            Place::Below(_) => Vec::new(),
        })
    }
}

impl<S: Sink> SpanProcessor for Parts<S> {
    fn on_start(&self, span: &mut Span, context: &Context) {
        let parent = context.span().span_context().span_id();
        let id = span.span_context().span_id();
        self.open.lock().start(id, parent);
    }

    fn on_end(&self, span: SpanData) {
        let span = Encoded::from(span);
        let (first, below) = self.open.lock().end(span);
        let told = first.into_iter().chain(below);
        told.for_each(|span| self.next.take(span));
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    /// What is not over by now never will be.
    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        let left = self.open.lock().left();
        left.for_each(|span| self.next.take(span));
        Ok(())
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
        assert!(open.spans.is_empty() && open.waiting == 0);
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
