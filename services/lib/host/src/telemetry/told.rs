//! A tracer for tests, and what has come through its processors.

use std::sync::Arc;

use opentelemetry::Context;
use opentelemetry::trace::{
    SpanBuilder, SpanKind, TraceContextExt as _, Tracer as _, TracerProvider as _,
};
use opentelemetry_proto::tonic::trace::v1 as otlp;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanProcessor};
use parking_lot::Mutex;
use prost::Message as _;

use super::encoded::{Encoded, Sink};

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
        self.spans.lock().push(decoded(&span));
    }
}

/// As a collector reads it.
pub fn decoded(span: &Encoded) -> otlp::Span {
    let mut message = Vec::new();
    span.put(2, &mut message);
    let mut spans = otlp::ScopeSpans::decode(&*message).unwrap().spans;
    spans.pop().unwrap()
}

/// A tracer whose spans go through one processor.
pub struct Pen {
    pub provider: SdkTracerProvider,
}

impl Pen {
    pub fn through(processor: impl SpanProcessor + 'static) -> Self {
        let provider = SdkTracerProvider::builder();
        Self {
            provider: provider.with_span_processor(processor).build(),
        }
    }

    /// A span that has begun.
    pub fn begin(&self, name: &'static str, parent: &Context) -> Context {
        let tracer = self.provider.tracer("test");
        let span = SpanBuilder::from_name(name).with_kind(SpanKind::Client);
        parent.with_span(tracer.build_with_context(span, parent))
    }

    /// A span that has ended.
    pub fn draw(&self, name: &'static str, parent: &Context) -> Context {
        let drawn = self.begin(name, parent);
        drawn.span().end();
        drawn
    }
}
