//! Spans that leave together.

use opentelemetry::trace::SpanId;

use super::encoded::{Encoded, USUAL};

/// Some spans, one after the other in one piece of memory: many that wait cost nobody else's memory its place in the
/// caches, and they are ready to leave.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// The field `spans` of OTLP's `ScopeSpans`.
    pub spans: Vec<u8>,
    /// Those around calls to others, who may want to know that they have arrived.
    pub calls: Vec<u64>,
    len: usize,
}

impl Batch {
    /// One that takes so many spans without having to be moved for them.
    pub fn of(most: usize) -> Self {
        Self {
            spans: Vec::with_capacity(most * USUAL),
            ..Self::default()
        }
    }

    pub fn add(&mut self, span: Encoded) {
        if span.is_call {
            self.calls.push(number(span.id));
        }
        self.len += span.spans;
        span.put(&mut self.spans);
    }

    /// How many spans it has.
    pub const fn len(&self) -> usize {
        self.len
    }
}

fn number(id: SpanId) -> u64 {
    u64::from_be_bytes(id.to_bytes())
}
