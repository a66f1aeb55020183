//! The cause of a write: which span of which trace, by whom, in which term.

use opentelemetry::trace::{Status, TraceContextExt as _, TraceId};
use opentelemetry::{Context, Key, KeyValue, Value};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::lineage::now_ns;
use crate::{Cause, Lineage, Traceparent};

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
        }
    }

    /// The trace that the write belongs to; `None` where nobody traced.
    pub fn trace_id(&self) -> Option<TraceId> {
        self.traceparent.map(|span| span.trace_id())
    }
}

/// A span as OpenTelemetry knows it, found once for several questions.
pub struct Here(Context);

impl Here {
    /// The span that is current now.
    pub fn now() -> Self {
        Self::of(&Span::current())
    }

    /// This span. It has its parent by now: that cannot be changed any more.
    pub fn of(span: &Span) -> Self {
        Self(span.context())
    }

    /// Its name; `None` outside any trace.
    pub fn traceparent(&self) -> Option<Traceparent> {
        Traceparent::of(self.0.span().span_context())
    }

    /// `None` outside any trace.
    pub fn trace_id(&self) -> Option<TraceId> {
        self.traceparent().map(|span| span.trace_id())
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
}

/// Makes a span the child of one of another process.
pub fn adopt(span: &Span, parent: Traceparent) {
    let context = Context::new().with_remote_span_context(parent.remote());
    // It fails only when no tracer listens, and then there is nothing to adopt.
    let _ = span.set_parent(context);
}

/// Marks a span as failed, and says why.
pub fn fail(span: &Span, why: String) {
    span.set_status(Status::error(why));
}

/// The attribute of spans around calls, and of those that answer one.
pub const RPC_SYSTEM: &str = "rpc.system";

/// Says which namespace a span is about; `None` for what has none.
pub fn in_namespace(name: &str) -> Option<KeyValue> {
    (!name.is_empty()).then(|| KeyValue::new("k8s.namespace.name", name.to_owned()))
}

/// Attributes that only spans have: log lines show those that a span begins with.
pub trait Label {
    /// Sets an attribute.
    fn label(&self, key: impl Into<Key>, value: impl Into<Value>);

    /// Sets several, sooner than one after another. The span has its parent by now: it cannot be changed any more.
    fn describe(&self, attributes: impl IntoIterator<Item = KeyValue>);
}

impl Label for Span {
    fn label(&self, key: impl Into<Key>, value: impl Into<Value>) {
        self.set_attribute(key, value);
    }

    fn describe(&self, attributes: impl IntoIterator<Item = KeyValue>) {
        Here::of(self).describe(attributes);
    }
}
