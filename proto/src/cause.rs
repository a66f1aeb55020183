//! The cause of a write: which span of which trace, by whom, in which term.

use opentelemetry::trace::{
    SpanContext, SpanId, Status, TraceContextExt as _, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{Context, Key, KeyValue, Value};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::lineage::now_ns;
use crate::{Cause, Lineage};

impl Cause {
    /// A write made now, in the current span; where nobody traces, in the trace that its request named.
    pub fn current(lineage: &Lineage, writer: impl Into<String>, term: u64) -> Self {
        let written_ns = now_ns();
        Self {
            traceparent: Here::now()
                .traceparent()
                .unwrap_or_else(|| lineage.traceparent.clone()),
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

    /// The span that wrote, as a remote parent; `None` when it was not traced.
    pub fn span_context(&self) -> Option<SpanContext> {
        parse(&self.traceparent)
    }
}

/// The current span as OpenTelemetry knows it, found once for several questions.
pub struct Here(Context);

impl Here {
    /// The span that is current now.
    pub fn now() -> Self {
        Self(Span::current().context())
    }

    /// As a W3C `traceparent`; `None` outside any trace.
    pub fn traceparent(&self) -> Option<String> {
        write(&self.context()?)
    }

    /// `None` outside any trace.
    pub fn trace_id(&self) -> Option<TraceId> {
        self.context().map(|span| span.trace_id())
    }

    /// Sets attributes.
    pub fn describe(&self, attributes: impl IntoIterator<Item = KeyValue>) {
        self.0.span().set_attributes(attributes);
    }

    /// Marks this moment as the one at which something happened.
    pub fn mark(&self, name: &str, message: &str) {
        let message = KeyValue::new("message", message.to_owned());
        self.0.span().add_event(name.to_owned(), vec![message]);
    }

    fn context(&self) -> Option<SpanContext> {
        let context = self.0.span().span_context().clone();
        context.is_valid().then_some(context)
    }
}

fn write(span: &SpanContext) -> Option<String> {
    let mut text = *b"00-................................-................-..";
    hex::encode_to_slice(span.trace_id().to_bytes(), &mut text[3..35]).ok()?;
    hex::encode_to_slice(span.span_id().to_bytes(), &mut text[36..52]).ok()?;
    hex::encode_to_slice([span.trace_flags().to_u8()], &mut text[53..]).ok()?;
    String::from_utf8(text.to_vec()).ok()
}

/// Reads a W3C `traceparent` (<https://www.w3.org/TR/trace-context/#traceparent-header>); `None` unless it is a valid one.
pub fn parse(traceparent: &str) -> Option<SpanContext> {
    let mut parts = traceparent.split('-');
    let (version, trace, span, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let whole = version.len() == 2 && trace.len() == 32 && span.len() == 16 && flags.len() == 2;
    if !whole || version == "ff" || (version == "00" && parts.next().is_some()) {
        return None;
    }
    let context = SpanContext::new(
        TraceId::from_bytes(read(trace)?),
        SpanId::from_bytes(read(span)?),
        TraceFlags::new(u8::from_be_bytes(read(flags)?)),
        true,
        TraceState::NONE,
    );
    context.is_valid().then_some(context)
}

fn read<const BYTES: usize>(text: &str) -> Option<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    Some(bytes)
}

/// Makes a span the child of the remote one that `traceparent` names; leaves it a root if that is none.
pub fn adopt(span: &Span, traceparent: &str) {
    if let Some(parent) = parse(traceparent) {
        let context = Context::new().with_remote_span_context(parent);
        // It fails only when no tracer listens, and then there is nothing to adopt.
        let _ = span.set_parent(context);
    }
}

/// Links a span to writes that it does not follow from, but has to do with.
pub fn link<'c>(span: &Span, causes: impl IntoIterator<Item = &'c Cause>) {
    for other in causes.into_iter().filter_map(Cause::span_context) {
        span.add_link(other);
    }
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
        Here(self.context()).describe(attributes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_names_its_span() {
        let context = parse(VALID).expect("it is valid");
        assert_eq!(write(&context).as_deref(), Some(VALID));
        assert_eq!(context.trace_id().to_string(), VALID[3..35]);
        assert_eq!(context.span_id().to_string(), VALID[36..52]);
        assert!(context.is_sampled() && context.is_remote());
    }

    #[test]
    fn anything_else_is_no_span() {
        let zero_trace = format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32));
        let too_long = format!("{VALID}-00");
        for text in [
            "",
            "00",
            "ff-4bf9-00f0-01",
            &zero_trace,
            &too_long,
            &VALID[..54],
        ] {
            assert!(parse(text).is_none(), "{text}");
        }
    }
}
