//! Log lines with trace and span ids.

use std::fmt::{self, Write as _};

use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, TraceContextExt};
use tracing::dispatcher::get_default;
use tracing::{Event, Subscriber};
use tracing_opentelemetry::get_otel_context;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The initial capacity of a line, enough for most.
const CAPACITY: usize = 512;

/// A format that appends trace and span id to lines within a trace.
pub(super) struct Traced<F> {
    inner: F,
    style: Style,
}

#[derive(Clone, Copy)]
enum Style {
    Text,
    Json,
}

/// Appends the ids to lines of text.
pub(super) fn text<F>(inner: F) -> Traced<F> {
    let style = Style::Text;
    Traced { inner, style }
}

/// Appends the ids to lines of JSON.
pub(super) fn json<F>(inner: F) -> Traced<F> {
    let style = Style::Json;
    Traced { inner, style }
}

impl<S, N, F> FormatEvent<S, N> for Traced<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let Some(trace) = trace(context) else {
            return self.inner.format_event(context, writer, event);
        };
        let mut line = String::with_capacity(CAPACITY);
        self.inner
            .format_event(context, Writer::new(&mut line), event)?;
        self.style.append(&mut line, &trace)?;
        writer.write_str(&line)
    }
}

/// Returns the span context of a log line, if it is within a trace.
fn trace<S, N>(context: &FmtContext<'_, S, N>) -> Option<SpanContext>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    let logged = context.lookup_current().map(|span| span.id());
    let logged = logged.and_then(|span| get_default(|dispatch| get_otel_context(&span, dispatch)));
    let traced = logged.unwrap_or_else(Context::current);
    let trace = traced.span().span_context().clone();
    trace.is_valid().then_some(trace)
}

impl Style {
    fn append(self, line: &mut String, trace: &SpanContext) -> fmt::Result {
        line.truncate(line.trim_end().len());
        let (trace_id, span_id) = (trace.trace_id(), trace.span_id());
        match self {
            Self::Text => writeln!(line, " trace_id={trace_id} span_id={span_id}"),
            Self::Json => {
                line.pop();
                writeln!(
                    line,
                    ",\"trace_id\":\"{trace_id}\",\"span_id\":\"{span_id}\"}}"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::{SpanId, TraceFlags, TraceId, TraceState};

    use super::*;

    fn appended(style: Style, line: &str) -> String {
        let (trace, span) = (TraceId::from(7), SpanId::from(9));
        let trace = SpanContext::new(trace, span, TraceFlags::SAMPLED, false, TraceState::NONE);
        let mut line = line.to_owned();
        style.append(&mut line, &trace).unwrap();
        line
    }

    #[test]
    fn ids_are_fields_of_json_lines() {
        let line = appended(Style::Json, "{\"message\":\"bound\"}\n");
        let json: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(json["message"], "bound");
        assert_eq!(json["trace_id"], "00000000000000000000000000000007");
        assert_eq!(json["span_id"], "0000000000000009");
    }

    #[test]
    fn ids_are_appended_to_text_lines() {
        let line = appended(Style::Text, "INFO bound\n");
        assert_eq!(
            line,
            "INFO bound trace_id=00000000000000000000000000000007 span_id=0000000000000009\n"
        );
    }
}
