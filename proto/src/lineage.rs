//! What a write inherits from the cascade that it belongs to, and how requests carry that.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::trace::SpanId;

use crate::{Caller, Cause, Traceparent};

/// The header and metadata key of a W3C trace context.
pub const TRACEPARENT: &str = "traceparent";
/// The header and metadata key of what a vendor adds to it (<https://www.w3.org/TR/trace-context/#tracestate-header>).
pub const TRACESTATE: &str = "tracestate";
/// Our member of the `tracestate`: `setpoint=<began_ns>;<depth>`, and of who reports its spans `;<caller>;<follows>`.
const VENDOR: &str = "setpoint";
/// As long as that is, or longer.
const USUAL: usize = 80;

/// Where in which cascade a write stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lineage {
    /// The span that it follows from: what is passed on where nobody traces.
    pub traceparent: Option<Traceparent>,
    /// When the root of the trace began; 0 when it begins with this write.
    pub began_ns: i64,
    /// How many writes led to it, one because of the other.
    pub depth: u32,
}

impl Lineage {
    /// Of what is written because of this write.
    pub fn after(cause: &Cause) -> Self {
        Self {
            traceparent: cause.traceparent,
            began_ns: cause.began_ns,
            depth: cause.depth.saturating_add(1),
        }
    }

    /// As a request's headers tell; `header` looks one up by its lower-case name.
    ///
    /// What cannot be read, or cannot be true, is as if it were not there.
    pub fn of_request<'a>(header: impl Fn(&'static str) -> Option<&'a str>) -> Self {
        let traceparent = header(TRACEPARENT).and_then(|text| text.parse().ok());
        // It counts without a trace, too: how deep a cascade goes is also a metric.
        let (began_ns, depth) = header(TRACESTATE).and_then(read).unwrap_or_default();
        Self {
            traceparent,
            began_ns,
            depth,
        }
    }

    /// The `tracestate` of a request that belongs to it; `None` where there is nothing to say.
    pub fn tracestate(&self, caller: Option<Caller>) -> Option<String> {
        let Self {
            began_ns, depth, ..
        } = self;
        if caller.is_none() && *began_ns == 0 {
            return None;
        }
        let mut state = String::with_capacity(USUAL);
        write!(state, "{VENDOR}={began_ns};{depth}").ok()?;
        if let Some(Caller { id, follows }) = caller {
            write!(state, ";{id:016x};{follows}").ok()?;
        }
        Some(state)
    }

    /// The span that it follows from; invalid without one.
    pub fn follows(&self) -> SpanId {
        let span = self.traceparent.as_ref();
        span.map_or(SpanId::INVALID, Traceparent::span_id)
    }
}

/// What our member of a `tracestate` says.
pub(crate) fn member(tracestate: &str) -> Option<&str> {
    let members = tracestate.split(',');
    let mut members = members.filter_map(|member| member.split_once('='));
    let ours = members.find(|(key, _)| key.trim() == VENDOR);
    ours.map(|(_, value)| value.trim())
}

fn read(tracestate: &str) -> Option<(i64, u32)> {
    let mut parts = member(tracestate)?.split(';');
    let (began, depth) = (parts.next()?, parts.next()?);
    let began = began
        .parse()
        .ok()
        .filter(|began| (1..=now_ns()).contains(began))?;
    Some((began, depth.parse().ok()?))
}

/// Nanoseconds since 1970.
pub fn now_ns() -> i64 {
    nanoseconds(SystemTime::now())
}

/// Nanoseconds from 1970 to a moment; 0 for an earlier one.
pub fn nanoseconds(moment: SystemTime) -> i64 {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// The moment so many nanoseconds after 1970; 1970 itself for a negative number.
pub fn moment(nanoseconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn of(state: &str) -> Lineage {
        Lineage::of_request(|name| Some(if name == TRACEPARENT { PARENT } else { state }))
    }

    #[test]
    fn a_request_carries_its_place_in_the_cascade() {
        let lineage = Lineage {
            traceparent: PARENT.parse().ok(),
            began_ns: 1_700_000_000_000_000_000,
            depth: 3,
        };
        let state = lineage.tracestate(None).expect("it goes on");
        assert_eq!(of(&state), lineage);
        assert_eq!(of(&format!("other=1, {state}")), lineage);
        assert_eq!(Lineage::default().tracestate(None), None);
    }

    #[test]
    fn what_cannot_be_true_begins_a_cascade() {
        let future = format!("setpoint={};1", i64::MAX);
        for state in [
            "",
            "other=1",
            "setpoint=1",
            "setpoint=-1;1",
            "setpoint=1;x",
            &future,
        ] {
            assert_eq!((of(state).began_ns, of(state).depth), (0, 0), "{state}");
        }
        assert_eq!(Lineage::of_request(|_| Some("no")), Lineage::default());
    }

    #[test]
    fn what_follows_is_one_write_deeper() {
        let cause = Cause {
            traceparent: PARENT.parse().ok(),
            began_ns: 7,
            depth: 2,
            ..Cause::default()
        };
        let after = Lineage::after(&cause);
        assert_eq!((after.began_ns, after.depth), (7, 3));
        assert_eq!(after.traceparent, cause.traceparent);
    }
}
