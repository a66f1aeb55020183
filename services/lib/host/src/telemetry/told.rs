//! A tracer for tests, and what has come through its processors.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry::trace::{
    SpanBuilder, SpanKind, TraceContextExt as _, Tracer as _, TracerProvider as _,
};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, Span, SpanData, SpanProcessor};
use parking_lot::Mutex;

/// The last of the processors.
#[derive(Clone, Debug, Default)]
pub struct Told {
    spans: Arc<Mutex<Vec<SpanData>>>,
}

impl Told {
    /// All there is, in order.
    pub fn spans(&self) -> Vec<SpanData> {
        self.spans.lock().clone()
    }

    pub fn names(&self) -> Vec<String> {
        let spans = self.spans.lock();
        spans.iter().map(|span| span.name.to_string()).collect()
    }
}

impl SpanProcessor for Told {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        self.spans.lock().push(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
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
