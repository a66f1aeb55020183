//! The cause of a write: which span of which trace, by whom, in which term.

use opentelemetry::trace::TraceId;

use crate::lineage::now_ns;
use crate::{Cause, Here, Lineage};

impl Cause {
    /// A write made now, in the current span; where nobody traces, in the trace that its request named.
    pub fn current(lineage: &Lineage, writer: impl Into<String>, term: u64) -> Self {
        let written_ns = now_ns();
        Self {
            traceparent: Here::now().traceparent().or(lineage.traceparent),
            writer: writer.into(),
            term,
            written_ns,
            began_ns: match lineage.began_ns {
                0 => written_ns,
                began => began,
            },
            depth: lineage.depth,
            wanted_ns: 0,
            lease_term: None,
        }
    }

    /// The trace that the write belongs to; `None` where nobody traced.
    pub fn trace_id(&self) -> Option<TraceId> {
        self.traceparent.map(|span| span.trace_id())
    }
}
