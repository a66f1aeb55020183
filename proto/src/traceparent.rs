//! A span as requests and causes name it (<https://www.w3.org/TR/trace-context/#traceparent-header>).
//!
//! We chose numbers over the header's text for what is stored and delivered: each write's cause is read by everyone who
//! watches, and a text would be a piece of memory of its own each time. It would be wrong if a later version of the
//! header had to be kept word for word; what we pass on is version 00.

use std::fmt;
use std::str::FromStr;

use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};
use serde::{Serialize, Serializer};

pub use crate::messages::setpoint::v1::Traceparent;

/// The text names no span.
#[derive(Debug, thiserror::Error)]
#[error("it is no traceparent")]
pub struct Malformed;

impl Traceparent {
    /// Names a span; `None` outside any trace.
    pub fn of(span: &SpanContext) -> Option<Self> {
        let trace = u128::from_be_bytes(span.trace_id().to_bytes());
        let named = Self {
            trace_high: (trace >> 64) as u64,
            trace_low: trace as u64,
            span: u64::from_be_bytes(span.span_id().to_bytes()),
            flags: span.trace_flags().to_u8().into(),
        };
        span.is_valid().then_some(named)
    }

    /// The trace that the span belongs to.
    pub fn trace_id(&self) -> TraceId {
        TraceId::from(u128::from(self.trace_high) << 64 | u128::from(self.trace_low))
    }

    /// The span itself.
    pub fn span_id(&self) -> SpanId {
        SpanId::from(self.span)
    }

    /// Whether it names a span at all.
    pub fn is_valid(&self) -> bool {
        self.remote().is_valid()
    }

    /// Whether spans below it are drawn.
    pub fn is_sampled(&self) -> bool {
        self.remote().is_sampled()
    }

    /// The span as one of another process.
    pub fn remote(&self) -> SpanContext {
        let flags = TraceFlags::new(self.flags as u8);
        let state = TraceState::NONE;
        SpanContext::new(self.trace_id(), self.span_id(), flags, true, state)
    }
}

impl FromStr for Traceparent {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let named = read(text).and_then(|context| Self::of(&context));
        named.ok_or(Malformed)
    }
}

fn read(text: &str) -> Option<SpanContext> {
    let mut parts = text.split('-');
    let (version, trace, span, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    if version.len() != 2 || version == "ff" || (version == "00" && parts.next().is_some()) {
        return None;
    }
    let [flags] = bytes(flags)?;
    Some(SpanContext::new(
        TraceId::from_bytes(bytes(trace)?),
        SpanId::from_bytes(bytes(span)?),
        TraceFlags::new(flags),
        true,
        TraceState::NONE,
    ))
}

fn bytes<const COUNT: usize>(digits: &str) -> Option<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    hex::decode_to_slice(digits, &mut bytes).ok()?;
    Some(bytes)
}

impl fmt::Display for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = *b"00-................................-................-..";
        let fields = [
            (3..35, &self.trace_id().to_bytes()[..]),
            (36..52, &self.span.to_be_bytes()),
            (53..55, &[self.flags as u8]),
        ];
        for (place, bytes) in fields {
            hex::encode_to_slice(bytes, &mut text[place]).map_err(|_| fmt::Error)?;
        }
        f.write_str(str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl Serialize for Traceparent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_names_its_span() {
        let named: Traceparent = VALID.parse().unwrap();
        assert_eq!(named.to_string(), VALID);
        assert_eq!(named.trace_id().to_string(), VALID[3..35]);
        assert_eq!(named.span_id().to_string(), VALID[36..52]);
        let context = named.remote();
        assert!(context.is_sampled() && context.is_remote());
        assert_eq!(Traceparent::of(&context), Some(named));
        assert_eq!(Traceparent::of(&SpanContext::NONE), None);
    }

    #[test]
    fn what_a_later_version_adds_is_passed_over() {
        let later = format!("cc{}-what-comes-later", &VALID[2..]);
        let named: Traceparent = later.parse().unwrap();
        assert_eq!(named.to_string(), VALID);
    }

    #[test]
    fn anything_else_is_no_span() {
        let zero_trace = format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32));
        let too_long = format!("{VALID}-00");
        let signed = VALID.replace("00f067aa0ba902b7", "+0f067aa0ba902b7");
        let wide = VALID.replacen("4b", "ä", 1);
        for text in [
            "",
            "00",
            "ff-4bf9-00f0-01",
            &format!("ff{}", &VALID[2..]),
            &zero_trace,
            &too_long,
            &signed,
            &wide,
            &VALID[..54],
        ] {
            assert!(text.parse::<Traceparent>().is_err(), "{text}");
        }
    }
}
