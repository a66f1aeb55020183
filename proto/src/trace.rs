//! The trace context of requests, and that of writes in their causes.
//!
//! Requests of other clients have their span in the header `traceparent`
//! (<https://www.w3.org/TR/trace-context/#traceparent-header>). 2026-11: we chose a message field over that header for
//! our own calls: HPACK encodes headers that differ with each call byte by byte, which was more than a quarter of the
//! cost of tracing. It would be wrong if a proxy between our services added spans: it would not see the trace.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Serialize, Serializer};

use crate::Cause;
use crate::messages::setpoint::v1::{
    CountMetadataRequest, CreateRequest, CustomMetricRequest, DeleteRequest, ExternalMetricRequest,
    GetMetadataRequest, GetRequest, ListMetadataRequest, ListRequest, PatchRequest,
    RemoveMetadataRequest, UpdateRequest, WatchMetadataRequest, WatchRequest,
};
pub use crate::messages::setpoint::v1::{TraceContext, Traceparent};

/// The header and metadata key of a W3C trace context.
pub const TRACEPARENT: &str = "traceparent";

/// The flag of a trace whose spans are recorded.
const SAMPLED: u32 = 1;

impl TraceContext {
    /// Returns the context of a write that is caused by another write.
    pub fn after(cause: &Cause) -> Self {
        Self {
            parent: cause.traceparent,
            began_ns: cause.began_ns,
            depth: cause.depth.saturating_add(1),
        }
    }

    /// Returns the context of a `traceparent` header. An invalid header is ignored, as the specification requires.
    pub fn from_header(traceparent: Option<&str>) -> Self {
        Self {
            parent: traceparent.and_then(|text| text.parse().ok()),
            ..Self::default()
        }
    }

    /// Clears invalid fields: an invalid parent, and a start that is not in the past.
    #[must_use]
    pub fn validated(self) -> Self {
        // The depth is a metric and is kept without a trace.
        let (began_ns, depth) = match (1..=now_ns()).contains(&self.began_ns) {
            true => (self.began_ns, self.depth),
            false => (0, 0),
        };
        Self {
            parent: self.parent.filter(Traceparent::is_valid),
            began_ns,
            depth,
        }
    }

    /// Returns the context of calls in a span; without a span, the parent is kept.
    #[must_use]
    pub fn within(self, span: Option<Traceparent>) -> Self {
        Self {
            parent: span.or(self.parent),
            ..self
        }
    }

    /// Returns the cause of a write by `writer` at the current time, in a lease term or 0.
    pub fn cause(&self, writer: impl Into<String>, term: u64) -> Cause {
        let written_ns = now_ns();
        Cause {
            traceparent: self.parent,
            writer: writer.into(),
            term,
            written_ns,
            began_ns: match self.began_ns {
                0 => written_ns,
                began => began,
            },
            depth: self.depth,
            wanted_ns: 0,
            lease_term: None,
        }
    }
}

impl Cause {
    /// Returns the id of the trace of the write; `None` without tracing.
    pub fn trace_id(&self) -> Option<String> {
        self.traceparent.map(|span| span.trace_id())
    }
}

/// A request with a trace context.
pub trait Traced {
    /// Returns the field of the trace context.
    fn trace(&mut self) -> &mut Option<TraceContext>;
}

macro_rules! traced {
    ($($request:ty),*) => {$(
        impl Traced for $request {
            fn trace(&mut self) -> &mut Option<TraceContext> {
                &mut self.trace
            }
        }
    )*};
}

traced!(
    GetRequest,
    ListRequest,
    CreateRequest,
    UpdateRequest,
    PatchRequest,
    DeleteRequest,
    WatchRequest,
    CustomMetricRequest,
    ExternalMetricRequest,
    CountMetadataRequest,
    GetMetadataRequest,
    ListMetadataRequest,
    RemoveMetadataRequest,
    WatchMetadataRequest
);

/// Returns the current time in nanoseconds since 1970.
pub fn now_ns() -> i64 {
    duration_ns(
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
    )
}

/// Returns a duration in nanoseconds; `i64::MAX` for one that does not fit.
pub fn duration_ns(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// The error of an invalid `traceparent`.
#[derive(Debug, thiserror::Error)]
#[error("invalid traceparent")]
pub struct Malformed;

// The ids are numbers: the cause of each write is decoded by every watcher, and text would be allocated each time.
// Later versions are reduced to version 00.
impl Traceparent {
    /// Returns the id of the trace; 0 is invalid.
    pub fn trace(&self) -> u128 {
        u128::from(self.trace_high) << 64 | u128::from(self.trace_low)
    }

    /// Returns the id of the trace as 32 hexadecimal digits.
    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace())
    }

    /// Returns whether both ids are valid.
    pub fn is_valid(&self) -> bool {
        self.trace() != 0 && self.span != 0
    }

    /// Returns whether spans of the trace are recorded.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }
}

impl FromStr for Traceparent {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        parse(text).filter(Self::is_valid).ok_or(Malformed)
    }
}

fn parse(text: &str) -> Option<Traceparent> {
    let mut parts = text.split('-');
    let (version, trace, span, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    if version.len() != 2 || version == "ff" || (version == "00" && parts.next().is_some()) {
        return None;
    }
    let trace = u128::from_be_bytes(bytes(trace)?);
    Some(Traceparent {
        trace_high: (trace >> 64) as u64,
        trace_low: trace as u64,
        span: u64::from_be_bytes(bytes(span)?),
        flags: u8::from_be_bytes(bytes(flags)?).into(),
    })
}

fn bytes<const COUNT: usize>(digits: &str) -> Option<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    hex::decode_to_slice(digits, &mut bytes).ok()?;
    Some(bytes)
}

impl fmt::Display for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace, span, flags) = (self.trace(), self.span, self.flags as u8);
        write!(f, "00-{trace:032x}-{span:016x}-{flags:02x}")
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
    fn a_traceparent_is_parsed_from_its_display() {
        let parent: Traceparent = VALID.parse().unwrap();
        assert_eq!(parent.to_string(), VALID);
        assert_eq!(parent.trace_id(), VALID[3..35]);
        assert_eq!(format!("{:016x}", parent.span), VALID[36..52]);
        assert!(parent.is_sampled() && parent.is_valid());
    }

    #[test]
    fn additions_of_later_versions_are_ignored() {
        let later = format!("cc{}-what-comes-later", &VALID[2..]);
        let parent: Traceparent = later.parse().unwrap();
        assert_eq!(parent.to_string(), VALID);
    }

    #[test]
    fn invalid_traceparents_are_rejected() {
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

    #[test]
    fn from_header_parses_the_parent_and_ignores_invalid_headers() {
        let context = TraceContext::from_header(Some(VALID));
        assert_eq!(context.parent, VALID.parse().ok());
        for header in [None, Some("no")] {
            assert_eq!(TraceContext::from_header(header), TraceContext::default());
        }
    }

    #[test]
    fn validated_clears_invalid_fields() {
        for began_ns in [0, -1, i64::MAX] {
            let context = TraceContext {
                parent: Some(Traceparent::default()),
                began_ns,
                depth: 1,
            };
            assert_eq!(context.validated(), TraceContext::default(), "{began_ns}");
        }
        let valid = TraceContext {
            parent: VALID.parse().ok(),
            began_ns: 1,
            depth: 3,
        };
        assert_eq!(valid.validated(), valid);
    }

    #[test]
    fn a_caused_write_has_the_same_trace_and_is_one_deeper() {
        let context = TraceContext::from_header(Some(VALID));
        let cause = context.cause("kubectl", 0);
        assert_eq!((cause.began_ns, cause.depth), (cause.written_ns, 0));
        let after = TraceContext::after(&cause);
        assert_eq!((after.began_ns, after.depth), (cause.began_ns, 1));
        assert_eq!(after.parent, context.parent);
        let other = VALID.replace("b7-01", "b8-01").parse().ok();
        assert_eq!(after.within(other).parent, other);
        assert_eq!(after.within(None), after);
        let next = after.cause("scheduler", 7);
        assert_eq!(
            (next.began_ns, next.depth, next.term),
            (cause.began_ns, 1, 7)
        );
    }
}
