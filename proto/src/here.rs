//! A span as OpenTelemetry knows it.
//!
//! What people ask over HTTP is a span of `tracing`, whose log lines show what it is about. We chose to draw what services
//! do, for each other and in their rounds, with OpenTelemetry's own interface instead: it knows its parent, its links and
//! its waits as it begins, its lines name its object anyway, and without the way through the layers of the log tracing
//! costs an agent two fifths less. It would be wrong if what runs inside began to log without saying what about.

use std::sync::LazyLock;

use opentelemetry::global::{self, BoxedTracer};
use opentelemetry::trace::{
    FutureExt as _, SpanBuilder, Status, TraceContextExt as _, Tracer as _, WithContext,
};
use opentelemetry::{Context, ContextGuard, KeyValue};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::{Cause, Traceparent};

/// The attribute of spans around calls, and of those that answer one.
pub const RPC_SYSTEM: &str = "rpc.system";

/// A span as OpenTelemetry knows it, found once for several questions. One that was begun here ends when it is dropped,
/// and all that is done in it.
pub struct Here(Context);

impl Here {
    /// Outside any trace.
    pub fn nowhere() -> Self {
        Self(Context::new())
    }

    /// The span that is current now.
    pub fn now() -> Self {
        let logged = Self::of(&Span::current());
        match logged.0.has_active_span() {
            true => logged,
            false => Self(Context::current()),
        }
    }

    /// This span. It has its parent by now: that cannot be changed any more.
    pub fn of(span: &Span) -> Self {
        Self(span.context())
    }

    /// Begins a span below one of another process; without one, the first of a trace.
    ///
    /// Where nobody traces, it stands for its parent.
    pub fn begin(span: SpanBuilder, parent: Option<Traceparent>) -> Self {
        let nowhere = Self::nowhere();
        let parent = parent.map(|parent| Self(nowhere.0.with_remote_span_context(parent.remote())));
        parent.unwrap_or(nowhere).below(span)
    }

    /// Begins a span below this one.
    pub fn below(&self, span: SpanBuilder) -> Self {
        draw(span, &self.0)
    }

    /// Does something within the span: it is the current one meanwhile.
    pub fn during<F: Future>(&self, work: F) -> WithContext<F> {
        work.with_context(self.0.clone())
    }

    /// Makes it the current span until the guard goes, so that lines in the log name it. Not for what waits in between.
    pub fn enter(&self) -> ContextGuard {
        self.0.clone().attach()
    }

    /// Whether anybody will see what is said of it.
    pub fn is_drawn(&self) -> bool {
        self.0.span().is_recording()
    }

    /// Its name; `None` outside any trace.
    pub fn traceparent(&self) -> Option<Traceparent> {
        Traceparent::of(self.0.span().span_context())
    }

    /// Sets attributes.
    pub fn describe(&self, attributes: impl IntoIterator<Item = KeyValue>) {
        self.0.span().set_attributes(attributes);
    }

    /// Links it to writes that it does not follow from, but has to do with.
    pub fn link<'c>(&self, causes: impl IntoIterator<Item = &'c Cause>) {
        let span = self.0.span();
        for other in causes.into_iter().filter_map(|cause| cause.traceparent) {
            span.add_link(other.remote(), Vec::new());
        }
    }

    /// Marks this moment as the one at which something happened.
    pub fn mark(&self, name: &str, message: &str) {
        let message = KeyValue::new("message", message.to_owned());
        self.0.span().add_event(name.to_owned(), vec![message]);
    }

    /// Says that it failed, and why.
    pub fn fail(&self, why: String) {
        self.0.span().set_status(Status::error(why));
    }
}

/// By the process's tracer, which is found once: it is set before anything begins.
fn draw(span: SpanBuilder, parent: &Context) -> Here {
    static TRACER: LazyLock<BoxedTracer> = LazyLock::new(|| global::tracer("setpoint"));
    Here(parent.with_span(TRACER.build_with_context(span, parent)))
}

/// Makes a span the child of one of another process.
pub fn adopt(span: &Span, parent: Traceparent) {
    let context = Context::new().with_remote_span_context(parent.remote());
    // It fails only when no tracer listens, and then there is nothing to adopt.
    let _ = span.set_parent(context);
}

/// Says which namespace a span is about; `None` for what has none.
pub fn in_namespace(name: &str) -> Option<KeyValue> {
    (!name.is_empty()).then(|| KeyValue::new("k8s.namespace.name", name.to_owned()))
}
