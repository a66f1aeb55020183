//! OpenTelemetry's protocol field by field: what is known of a span is encoded as soon as it is known.
//!
//! We chose this over the SDK's spans, which are a dozen pieces of memory each until they end and are copied twice on
//! their way to the same bytes: a quarter of what tracing cost a cascade. It would be wrong if the fields' numbers
//! changed, which protobuf rules out; a test has the library read what is written here.

use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status};
use opentelemetry::{KeyValue, Value};
use opentelemetry_proto::tonic::common::v1::AnyValue;
use opentelemetry_proto::tonic::trace::v1::{SpanFlags, span, status};
use prost::Message as _;
use prost::encoding::{WireType, encoded_len_varint};

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

/// As prost does it, but for one sort of buffer: there, each of a span's hundred numbers is a call.
fn varint(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

fn key(tag: u32, wire: WireType, to: &mut Vec<u8>) {
    varint(u64::from(tag << 3 | wire as u32), to);
}

fn number(tag: u32, number: u64, to: &mut Vec<u8>) {
    key(tag, WireType::Varint, to);
    varint(number, to);
}

/// Appends a message that `fill` writes.
pub fn nested(tag: u32, to: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    key(tag, WireType::LengthDelimited, to);
    let start = to.len();
    to.push(0);
    fill(to);
    let end = to.len();
    let mut length = end - start - 1;
    // One byte tells the length of most; before longer ones there must be room for more.
    let more = encoded_len_varint(length as u64) - 1;
    if more > 0 {
        to.resize(end + more, 0);
        to.copy_within(start + 1..end, start + 1 + more);
    }
    for byte in &mut to[start..start + more] {
        *byte = length as u8 | 0x80;
        length >>= 7;
    }
    to[start + more] = length as u8;
}

/// Appends what comes before so many bytes of a field.
pub fn head(tag: u32, length: usize, to: &mut Vec<u8>) {
    key(tag, WireType::LengthDelimited, to);
    varint(length as u64, to);
}

#[inline]
pub fn bytes(tag: u32, bytes: &[u8], to: &mut Vec<u8>) {
    head(tag, bytes.len(), to);
    to.extend_from_slice(bytes);
}

pub fn text(tag: u32, text: &str, to: &mut Vec<u8>) {
    bytes(tag, text.as_bytes(), to);
}

/// In nanoseconds since 1970.
pub fn time(tag: u32, at_ns: i64, to: &mut Vec<u8>) {
    key(tag, WireType::SixtyFourBit, to);
    to.extend_from_slice(&at_ns.to_le_bytes());
}

pub fn count(tag: u32, count: u32, to: &mut Vec<u8>) {
    if count > 0 {
        number(tag, count.into(), to);
    }
}

/// What is known of any span as it begins, `below` one of another process or not.
pub fn beginning(
    context: &SpanContext,
    below: &SpanContext,
    name: &str,
    kind: SpanKind,
    start_ns: i64,
    to: &mut Vec<u8>,
) {
    named(context, to);
    flags(field::FLAGS, context, below.is_remote(), to);
    text(field::NAME, name, to);
    number(field::KIND, span::SpanKind::from(kind) as u64, to);
    time(field::START, start_ns, to);
}

/// Nothing for a root.
pub fn parent(id: SpanId, to: &mut Vec<u8>) {
    if id != SpanId::INVALID {
        bytes(field::PARENT, &id.to_bytes(), to);
    }
}

/// Of a span or a link, whose `remote` end is elsewhere.
fn flags(tag: u32, context: &SpanContext, remote: bool, to: &mut Vec<u8>) {
    let known = SpanFlags::ContextHasIsRemoteMask as u32;
    let remote = u32::from(remote) * SpanFlags::ContextIsRemoteMask as u32;
    let flags = u32::from(context.trace_flags().to_u8()) | known | remote;
    key(tag, WireType::ThirtyTwoBit, to);
    to.extend_from_slice(&flags.to_le_bytes());
}

/// Which span of which trace it is, for a span and a link alike.
fn named(context: &SpanContext, to: &mut Vec<u8>) {
    bytes(field::TRACE_ID, &context.trace_id().to_bytes(), to);
    bytes(field::SPAN_ID, &context.span_id().to_bytes(), to);
    let state = context.trace_state();
    if *state != Default::default() {
        text(field::TRACE_STATE, &state.header(), to);
    }
}

pub fn attribute(tag: u32, attribute: &KeyValue, to: &mut Vec<u8>) {
    let name = attribute.key.as_str();
    match &attribute.value {
        Value::String(value) => texts(tag, name, value.as_str(), to),
        other => nested(tag, to, |to| {
            text(1, name, to);
            nested(2, to, |to| value(other, to));
        }),
    }
}

/// An attribute as most are: how long all of it is can be told from the texts.
fn texts(tag: u32, name: &str, value: &str, to: &mut Vec<u8>) {
    let inner = field_len(value.len());
    head(tag, field_len(name.len()) + field_len(inner), to);
    text(1, name, to);
    head(2, inner, to);
    text(1, value, to);
}

/// The size of a field with a number below 16 and so many bytes.
fn field_len(length: usize) -> usize {
    1 + encoded_len_varint(length as u64) + length
}

fn attributes(tag: u32, attributes: &[KeyValue], to: &mut Vec<u8>) {
    attributes.iter().for_each(|one| attribute(tag, one, to));
}

fn value(value: &Value, to: &mut Vec<u8>) {
    match value {
        Value::I64(value) => number(3, value.cast_unsigned(), to),
        other => to.extend(AnyValue::from(other.clone()).encode_to_vec()),
    }
}

pub fn event(name: &str, at_ns: i64, with: &[KeyValue], to: &mut Vec<u8>) {
    nested(field::EVENTS, to, |to| {
        time(1, at_ns, to);
        text(2, name, to);
        attributes(3, with, to);
    });
}

pub fn link(to_span: &SpanContext, with: &[KeyValue], to: &mut Vec<u8>) {
    nested(field::LINKS, to, |to| {
        named(to_span, to);
        attributes(4, with, to);
        flags(6, to_span, to_span.is_remote(), to);
    });
}

pub fn status(status: &Status, to: &mut Vec<u8>) {
    let message = match status {
        Status::Error { description } => description,
        _ => "",
    };
    nested(field::STATUS, to, |to| {
        // Said even if it is empty: a later status takes the place of an earlier one.
        text(2, message, to);
        number(3, status::StatusCode::from(status) as u64, to);
    });
}
