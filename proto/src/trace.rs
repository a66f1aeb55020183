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
