//! A process tells of its part in a trace when that is over, as a whole.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use foldhash::fast::RandomState;
use opentelemetry::trace::SpanId;
use parking_lot::Mutex;

use super::encoded::{Encoded, Sink};

/// How many spans wait at most for the ends of their parts; more pass at once. Some 10 MiB of them.
const WAITING: usize = 16_384;

/// Holds back what is below a process's first span of a trace until that one has ended, and passes it on before them.
///
/// Whoever is killed takes a whole part along: of what was sent, no span misses its parent. Clones share it.
#[derive(Clone, Debug)]
pub struct Parts {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    next: Box<dyn Sink>,
    open: Mutex<Open>,
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

impl Parts {
    pub fn before(next: impl Sink + 'static) -> Self {
        let shared = Shared {
            next: Box::new(next),
            open: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// A span begins below another one, which may be of another process or none.
    pub fn begin(&self, span: SpanId, parent: SpanId) {
        self.shared.open.lock().begin(span, parent);
    }

    /// A span has ended.
    pub fn end(&self, span: Encoded) {
        let (first, below) = self.shared.open.lock().end(span);
        self.pass(first.into_iter().chain(below));
    }

    /// Passes on what waits: what is not over by now never will be.
    pub fn release(&self) {
        let left = self.shared.open.lock().left();
        self.pass(left);
    }

    fn pass(&self, spans: impl Iterator<Item = Encoded>) {
        spans.for_each(|span| self.shared.next.take(span));
    }
}

impl Open {
    fn begin(&mut self, span: SpanId, parent: SpanId) {
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

#[cfg(test)]
mod tests {
    use opentelemetry::Context;
    use opentelemetry::trace::TraceContextExt as _;

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
        let open = parts.shared.open.lock();
        assert!(open.spans.is_empty() && open.waiting == 0);
    }

    #[test]
    fn an_orderly_end_loses_nothing() {
        let told = Told::default();
        let parts = Parts::before(told.clone());
        let pen = Pen::through(parts.clone());
        let round = pen.begin("round", &Context::new());
        pen.draw("act", &round);
        parts.release();
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
