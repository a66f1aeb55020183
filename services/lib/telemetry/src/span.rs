//! OpenTelemetry spans, with the parents, links and attributes of cascades.
//!
//! HTTP requests are spans of `tracing`, so that log lines show them. 2026-11: we chose OpenTelemetry's API for calls
//! between services and for reconciles: their parent and links are known at the start, their log lines name the object
//! anyway, and without `tracing`'s layers the CPU time of tracing in a node-agent is two fifths less. It would be wrong
//! if the code in these spans logged lines that do not name the object.

use std::sync::LazyLock;
use std::time::{Duration, UNIX_EPOCH};

use opentelemetry::global::{self, BoxedTracer};
use opentelemetry::trace::{
    FutureExt as _, Span as _, SpanBuilder, SpanContext, SpanId, Status, TraceContextExt as _,
    TraceFlags, TraceId, TraceState, Tracer as _, WithContext,
};
use opentelemetry::{Context, ContextGuard, KeyValue};
use setpoint_proto::{Cause, Traceparent};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::SCOPE;

/// The attribute of client and server spans of calls.
pub const RPC_SYSTEM: &str = "rpc.system";

/// A span. A started span ends when the last clone of its context is dropped, including those of futures in its scope.
pub struct Span(Context);

impl Span {
    /// Returns the empty span.
    pub fn none() -> Self {
        Self(Context::new())
    }

    /// Returns the current span.
    pub fn current() -> Self {
        let logged = Self::of(&tracing::Span::current());
        match logged.0.has_active_span() {
            true => logged,
            false => Self(Context::current()),
        }
    }

    /// Returns the OpenTelemetry span of a span of `tracing`. The parent of that span cannot be changed afterwards.
    pub fn of(span: &tracing::Span) -> Self {
        Self(span.context())
    }

    /// Starts a child of a span of another process, or the root of a trace. If tracing is disabled, the span has the
    /// ids of its parent.
    pub fn start(builder: SpanBuilder, parent: Option<Traceparent>) -> Self {
        start(builder, &remote(parent))
    }

    /// Starts a child of this span.
    pub fn child(&self, builder: SpanBuilder) -> Self {
        start(builder, &self.0)
    }

    /// Makes this the current span of a future.
    pub fn in_scope<F: Future>(&self, work: F) -> WithContext<F> {
        work.with_context(self.0.clone())
    }

    /// Makes this the current span until the guard is dropped. The guard must not be held across an `await`.
    pub fn enter(&self) -> ContextGuard {
        self.0.clone().attach()
    }

    /// Returns whether the span is recorded.
    pub fn is_recording(&self) -> bool {
        self.0.span().is_recording()
    }

    /// Returns the ids of the span; `None` for the empty span.
    pub fn traceparent(&self) -> Option<Traceparent> {
        traceparent(self.0.span().span_context())
    }

    /// Sets attributes.
    pub fn set_attributes(&self, attributes: impl IntoIterator<Item = KeyValue>) {
        self.0.span().set_attributes(attributes);
    }

    /// Adds links to the spans of other causes than the parent.
    pub fn link<'c>(&self, causes: impl IntoIterator<Item = &'c Cause>) {
        let span = self.0.span();
        for linked in causes.into_iter().filter_map(|cause| cause.traceparent) {
            span.add_link(span_context(linked), Vec::new());
        }
    }

    /// Adds an event with the current time.
    pub fn add_event(&self, name: &str, message: &str) {
        let message = KeyValue::new("message", message.to_owned());
        self.0.span().add_event(name.to_owned(), vec![message]);
    }

    /// Sets the status to an error.
    pub fn set_error(&self, message: String) {
        self.0.span().set_status(Status::error(message));
    }

    /// Records a span between two times in nanoseconds since 1970.
    pub fn record(builder: SpanBuilder, parent: Option<Traceparent>, from_ns: i64, to_ns: i64) {
        let time = |ns: i64| UNIX_EPOCH + Duration::from_nanos(ns.try_into().unwrap_or_default());
        let builder = builder.with_start_time(time(from_ns));
        let mut span = TRACER.build_with_context(builder, &remote(parent));
        span.end_with_timestamp(time(to_ns));
    }
}

/// The global tracer, looked up once. Telemetry is started before the first span.
static TRACER: LazyLock<BoxedTracer> = LazyLock::new(|| global::tracer(SCOPE));

fn start(builder: SpanBuilder, parent: &Context) -> Span {
    Span(parent.with_span(TRACER.build_with_context(builder, parent)))
}

fn remote(parent: Option<Traceparent>) -> Context {
    let context = Context::new();
    match parent {
        Some(parent) => context.with_remote_span_context(span_context(parent)),
        None => context,
    }
}

/// Makes a span of `tracing` the child of a span of another process.
pub fn set_remote_parent(span: &tracing::Span, parent: Traceparent) {
    // Fails only if tracing is disabled.
    let _ = span.set_parent(remote(Some(parent)));
}

/// Returns the attribute for a namespace; `None` for objects without one.
pub fn namespace_attribute(namespace: &str) -> Option<KeyValue> {
    (!namespace.is_empty()).then(|| KeyValue::new("k8s.namespace.name", namespace.to_owned()))
}

fn span_context(parent: Traceparent) -> SpanContext {
    SpanContext::new(
        TraceId::from(parent.trace()),
        SpanId::from(parent.span),
        TraceFlags::new(parent.flags as u8),
        true,
        TraceState::NONE,
    )
}

fn traceparent(span: &SpanContext) -> Option<Traceparent> {
    let trace = u128::from_be_bytes(span.trace_id().to_bytes());
    span.is_valid().then_some(Traceparent {
        trace_high: (trace >> 64) as u64,
        trace_low: trace as u64,
        span: u64::from_be_bytes(span.span_id().to_bytes()),
        flags: span.trace_flags().to_u8().into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traceparent_and_span_context_convert_to_each_other() {
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let parent: Traceparent = header.parse().unwrap();
        let context = span_context(parent);
        assert!(context.is_remote() && context.is_sampled());
        assert_eq!(traceparent(&context), Some(parent));
        assert_eq!(traceparent(&SpanContext::NONE), None);
    }

    #[test]
    fn a_span_that_is_not_recorded_has_the_ids_of_its_parent() {
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let parent: Traceparent = header.parse().unwrap();
        let span = Span::start(SpanBuilder::from_name("reconcile"), Some(parent));
        assert_eq!(span.traceparent(), Some(parent));
        assert!(!span.is_recording());
    }
}
