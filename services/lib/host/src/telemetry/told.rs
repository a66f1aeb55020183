//! A tracer for tests, and what has come of its spans.

use std::sync::Arc;

use opentelemetry::Context;
use opentelemetry::trace::{SpanBuilder, SpanKind, TraceContextExt as _, Tracer as _};
use opentelemetry_proto::tonic::trace::v1 as otlp;
use opentelemetry_sdk::trace::Sampler;
use parking_lot::Mutex;
use prost::Message as _;

use super::encoded::{Encoded, Sink};
use super::parts::Parts;
use super::scribe::Scribe;

/// The last one that spans come to.
#[derive(Clone, Debug, Default)]
pub struct Told {
    spans: Arc<Mutex<Vec<otlp::Span>>>,
}

impl Told {
    /// All there is, in order.
    pub fn spans(&self) -> Vec<otlp::Span> {
        self.spans.lock().clone()
    }

    pub fn names(&self) -> Vec<String> {
        let spans = self.spans.lock();
        spans.iter().map(|span| span.name.clone()).collect()
    }
}

impl Sink for Told {
    fn take(&self, span: Encoded) {
        self.spans.lock().extend(decoded(span));
    }
}

/// As a collector reads it and what is beside it.
pub fn decoded(span: Encoded) -> Vec<otlp::Span> {
    let mut scope = Vec::new();
    span.put(&mut scope);
    otlp::ScopeSpans::decode(&*scope).unwrap().spans
}

/// Draws every span.
pub struct Pen {
    scribe: Scribe,
}

impl Pen {
    pub fn through(parts: Parts) -> Self {
        Self {
            scribe: Scribe::new(parts, Sampler::AlwaysOn),
        }
    }

    /// A span that has begun.
    pub fn begin(&self, name: &'static str, parent: &Context) -> Context {
        let span = SpanBuilder::from_name(name).with_kind(SpanKind::Client);
        parent.with_span(self.scribe.build_with_context(span, parent))
    }

    /// A span that has ended.
    pub fn draw(&self, name: &'static str, parent: &Context) -> Context {
        let drawn = self.begin(name, parent);
        drawn.span().end();
        drawn
    }
}
