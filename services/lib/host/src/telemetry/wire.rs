//! OpenTelemetry's protocol field by field: what is known of a span is encoded as soon as it is known.
//!
//! We chose this over the SDK's spans, which are a dozen pieces of memory each until they end and are copied twice on
//! their way to the same bytes: a quarter of what tracing cost a cascade. It would be wrong if the fields' numbers
//! changed, which protobuf rules out; a test has the library read what is written here.

use std::time::{SystemTime, UNIX_EPOCH};

use opentelemetry::trace::{SpanContext, SpanKind, Status};
use opentelemetry::{KeyValue, Value};
use opentelemetry_proto::tonic::common::v1::AnyValue;
use opentelemetry_proto::tonic::trace::v1::{SpanFlags, span, status};
use prost::Message as _;
use prost::encoding::{self, WireType, encode_key, encode_varint};

/// The field of OTLP's `ScopeSpans` that has the spans.
pub const SPANS: u32 = 2;

/// The fields of OTLP's `Span`.
pub mod field {
    pub const TRACE_ID: u32 = 1;
    pub const SPAN_ID: u32 = 2;
    pub const TRACE_STATE: u32 = 3;
    pub const PARENT: u32 = 4;
    pub const NAME: u32 = 5;
    pub const KIND: u32 = 6;
    pub const START: u32 = 7;
    pub const END: u32 = 8;
    pub const ATTRIBUTES: u32 = 9;
    pub const DROPPED_ATTRIBUTES: u32 = 10;
    pub const EVENTS: u32 = 11;
    pub const DROPPED_EVENTS: u32 = 12;
    pub const LINKS: u32 = 13;
    pub const DROPPED_LINKS: u32 = 14;
    pub const STATUS: u32 = 15;
    pub const FLAGS: u32 = 16;
}

/// Appends a message that `fill` writes.
pub fn nested(tag: u32, to: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    encode_key(tag, WireType::LengthDelimited, to);
    let head = to.len();
    to.push(0);
    fill(to);
    match to.len() - head - 1 {
        // One byte tells the length of most.
        length @ ..0x80 => to[head] = length as u8,
        length => {
            let mut longer = Vec::new();
            encode_varint(length as u64, &mut longer);
            to.splice(head..=head, longer);
        }
    }
}

/// Appends what comes before so many bytes of a field.
pub fn head(tag: u32, length: usize, to: &mut Vec<u8>) {
    encode_key(tag, WireType::LengthDelimited, to);
    encode_varint(length as u64, to);
}

pub fn bytes(tag: u32, bytes: &[u8], to: &mut Vec<u8>) {
    head(tag, bytes.len(), to);
    to.extend_from_slice(bytes);
}

pub fn text(tag: u32, text: &str, to: &mut Vec<u8>) {
    bytes(tag, text.as_bytes(), to);
}

pub fn time(tag: u32, at: SystemTime, to: &mut Vec<u8>) {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let nanoseconds = u64::try_from(since.as_nanos()).unwrap_or_default();
    encoding::fixed64::encode(tag, &nanoseconds, to);
}

pub fn count(tag: u32, count: u32, to: &mut Vec<u8>) {
    if count > 0 {
        encoding::uint32::encode(tag, &count, to);
    }
}

pub fn kind(kind: SpanKind, to: &mut Vec<u8>) {
    let kind = span::SpanKind::from(kind).into();
    encoding::int32::encode(field::KIND, &kind, to);
}

/// Of a span or a link, whose `remote` end is elsewhere.
pub fn flags(tag: u32, context: &SpanContext, remote: bool, to: &mut Vec<u8>) {
    let known = SpanFlags::ContextHasIsRemoteMask as u32;
    let remote = u32::from(remote) * SpanFlags::ContextIsRemoteMask as u32;
    let flags = u32::from(context.trace_flags().to_u8()) | known | remote;
    encoding::fixed32::encode(tag, &flags, to);
}

/// Which span of which trace it is, for a span and a link alike.
pub fn context(context: &SpanContext, to: &mut Vec<u8>) {
    bytes(field::TRACE_ID, &context.trace_id().to_bytes(), to);
    bytes(field::SPAN_ID, &context.span_id().to_bytes(), to);
    let state = context.trace_state().header();
    if !state.is_empty() {
        text(field::TRACE_STATE, &state, to);
    }
}

pub fn attribute(tag: u32, attribute: &KeyValue, to: &mut Vec<u8>) {
    nested(tag, to, |to| {
        text(1, attribute.key.as_str(), to);
        nested(2, to, |to| value(&attribute.value, to));
    });
}

fn attributes(tag: u32, attributes: &[KeyValue], to: &mut Vec<u8>) {
    attributes.iter().for_each(|one| attribute(tag, one, to));
}

fn value(value: &Value, to: &mut Vec<u8>) {
    match value {
        Value::String(value) => text(1, value.as_str(), to),
        other => to.extend(AnyValue::from(other.clone()).encode_to_vec()),
    }
}

pub fn event(name: &str, at: SystemTime, with: &[KeyValue], to: &mut Vec<u8>) {
    nested(field::EVENTS, to, |to| {
        time(1, at, to);
        text(2, name, to);
        attributes(3, with, to);
    });
}

pub fn link(to_span: &SpanContext, with: &[KeyValue], to: &mut Vec<u8>) {
    nested(field::LINKS, to, |to| {
        context(to_span, to);
        attributes(4, with, to);
        flags(6, to_span, to_span.is_remote(), to);
    });
}

pub fn status(status: &Status, to: &mut Vec<u8>) {
    let message = match status {
        Status::Error { description } => description,
        _ => "",
    };
    let code = status::StatusCode::from(status).into();
    nested(field::STATUS, to, |to| {
        // Said even if it is empty: a later status takes the place of an earlier one.
        text(2, message, to);
        encoding::int32::encode(3, &code, to);
    });
}
