//! Log lines with trace and span ids.

use std::fmt::{self, Write as _};

use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, TraceContextExt};
use serde::{Serialize, Serializer};
use tracing::dispatcher::get_default;
use tracing::field::{Field, Visit};
use tracing::span::Record;
use tracing::{Event, Subscriber};
use tracing_opentelemetry::get_otel_context;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
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

/// The fields of a span as a JSON object. Those recorded later are appended: `tracing_subscriber` would parse and write
/// all of them again, for every request.
pub(super) struct JsonFields;

impl<'w> FormatFields<'w> for JsonFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut object = Vec::with_capacity(CAPACITY);
        object.extend_from_slice(b"{}");
        append_fields(&mut object, fields);
        writer.write_str(str::from_utf8(&object).map_err(|_| fmt::Error)?)
    }

    fn add_fields(
        &self,
        current: &'w mut FormattedFields<Self>,
        fields: &Record<'_>,
    ) -> fmt::Result {
        let mut object = std::mem::take(&mut current.fields).into_bytes();
        append_fields(&mut object, fields);
        current.fields = String::from_utf8(object).map_err(|_| fmt::Error)?;
        Ok(())
    }
}

/// Appends fields to a JSON object. Of two with the same name, readers take the last.
fn append_fields(object: &mut Vec<u8>, fields: impl RecordFields) {
    object.pop();
    fields.record(&mut JsonVisitor(object));
    object.push(b'}');
}

/// Appends fields to an open JSON object.
struct JsonVisitor<'a>(&'a mut Vec<u8>);

impl JsonVisitor<'_> {
    fn append(&mut self, field: &Field, value: impl Serialize) {
        let (name, end) = (field.name(), self.0.len());
        let name = name.strip_prefix("r#").unwrap_or(name);
        let comma = if self.0.ends_with(b"{") { "" } else { "," };
        for part in [comma, "\"", name, "\":"] {
            self.0.extend_from_slice(part.as_bytes());
        }
        if serde_json::to_writer(&mut *self.0, &value).is_err() {
            self.0.truncate(end);
        }
    }
}

/// A value that is written as the text of its `Debug`.
struct DebugText<'a>(&'a dyn fmt::Debug);

impl Serialize for DebugText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:?}", self.0))
    }
}

impl Visit for JsonVisitor<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.append(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.append(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.append(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.append(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.append(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.append(field, DebugText(value));
    }
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
    use std::io;

    use opentelemetry::trace::{SpanId, TraceFlags, TraceId, TraceState};
    use tracing::field;
    use tracing_subscriber::layer::SubscriberExt as _;

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
    fn fields_of_a_span_that_are_recorded_later_are_in_its_lines() {
        let (lines, writer) = io::pipe().unwrap();
        let layer = tracing_subscriber::fmt::layer()
            .json()
            .fmt_fields(JsonFields)
            .with_writer(move || writer.try_clone().unwrap());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let span = tracing::info_span!("request", path = "/a\"{", code = field::Empty);
            span.record("code", 201);
            span.record("path", "/b");
            span.in_scope(|| tracing::info!("created"));
        });
        let line: serde_json::Value = serde_json::from_reader(lines).unwrap();
        let expected = serde_json::json!({"name": "request", "path": "/b", "code": 201});
        assert_eq!(line["span"], expected);
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
