//! The cause of a write: which span of which trace, by whom, in which term.

use opentelemetry::trace::{
    SpanContext, SpanId, Status, TraceContextExt as _, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{Key, Value};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::lineage::now_ns;
use crate::{Cause, Lineage};

impl Cause {
    /// A write made now, in the current span; where nobody traces, in the trace that its request named.
    pub fn current(lineage: &Lineage, writer: impl Into<String>, term: u64) -> Self {
        let written_ns = now_ns();
        Self {
            traceparent: traceparent().unwrap_or_else(|| lineage.traceparent.clone()),
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

/// The current span as a W3C `traceparent`; `None` outside any trace.
pub fn traceparent() -> Option<String> {
    let context = Span::current().context();
    let span = context.span();
    let span = span.span_context();
    span.is_valid().then(|| {
        format!(
            "00-{}-{}-{:02x}",
            span.trace_id(),
            span.span_id(),
            span.trace_flags().to_u8()
        )
    })
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
        TraceId::from_hex(trace).ok()?,
        SpanId::from_hex(span).ok()?,
        TraceFlags::new(u8::from_str_radix(flags, 16).ok()?),
        true,
        TraceState::NONE,
    );
    context.is_valid().then_some(context)
}

/// Makes a span the child of the remote one that `traceparent` names; leaves it a root if that is none.
pub fn adopt(span: &Span, traceparent: &str) {
    adopt_call(span, traceparent, None);
}

/// The same of a call's span, which also keeps the call's `tracestate`.
pub fn adopt_call(span: &Span, traceparent: &str, tracestate: Option<&str>) {
    if let Some(parent) = parse(traceparent) {
        let state = tracestate.and_then(|text| text.parse().ok());
        let parent = with_state(&parent, state.unwrap_or_default());
        let context = opentelemetry::Context::new().with_remote_span_context(parent);
        // It fails only when no tracer listens, and then there is nothing to adopt.
        let _ = span.set_parent(context);
    }
}

fn with_state(span: &SpanContext, state: TraceState) -> SpanContext {
    let (trace, id, flags) = (span.trace_id(), span.span_id(), span.trace_flags());
    SpanContext::new(trace, id, flags, span.is_remote(), state)
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

/// The attribute that the span around a call has.
pub const RPC_SYSTEM: &str = "rpc.system";

/// Attributes whose names are only known at run time.
pub trait Label {
    /// Sets an attribute.
    fn label(&self, key: impl Into<Key>, value: impl Into<Value>);
}

impl Label for Span {
    fn label(&self, key: impl Into<Key>, value: impl Into<Value>) {
        self.set_attribute(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_names_its_span() {
        let context = parse(VALID).expect("it is valid");
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
