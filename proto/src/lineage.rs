//! What a write inherits from the cascade that it belongs to, and how requests carry that.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use opentelemetry::trace::SpanId;
use prost::Message as _;

use crate::setpoint::Passed;
use crate::{Caller, Cause, Traceparent};

/// The header and metadata key of a W3C trace context.
pub const TRACEPARENT: &str = "traceparent";
/// The header and metadata key of what a vendor adds to it (<https://www.w3.org/TR/trace-context/#tracestate-header>).
pub const TRACESTATE: &str = "tracestate";
/// Our member of the `tracestate`: a [`Passed`] in base64.
const VENDOR: &str = "setpoint=";
/// As long as that is, or longer.
const USUAL: usize = 64;

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

    /// As a request's headers tell, and who made it if they report their spans; `header` looks one up by its lower-case
    /// name.
    ///
    /// What cannot be read, or cannot be true, is as if it were not there.
    pub fn of_request<'a>(
        header: impl Fn(&'static str) -> Option<&'a str>,
    ) -> (Self, Option<Caller>) {
        let passed = header(TRACESTATE).and_then(read).unwrap_or_default();
        // It counts without a trace, too: how deep a cascade goes is also a metric.
        let (began_ns, depth) = match (1..=now_ns()).contains(&passed.began_ns) {
            true => (passed.began_ns, passed.depth),
            false => (0, 0),
        };
        let lineage = Self {
            traceparent: header(TRACEPARENT).and_then(|text| text.parse().ok()),
            began_ns,
            depth,
        };
        (lineage, Caller::of(&passed))
    }

    /// The `tracestate` of a request that belongs to it; `None` where there is nothing to say.
    pub fn tracestate(&self, caller: Option<Caller>) -> Option<String> {
        if caller.is_none() && self.began_ns == 0 {
            return None;
        }
        let (caller, follows) = caller.map_or((0, 0), Caller::numbers);
        let passed = Passed {
            began_ns: self.began_ns,
            depth: self.depth,
            caller,
            follows,
        };
        let mut state = String::with_capacity(USUAL);
        state.push_str(VENDOR);
        BASE64_URL_SAFE_NO_PAD.encode_string(passed.encode_to_vec(), &mut state);
        Some(state)
    }

    /// The span that it follows from; invalid without one.
    pub fn follows(&self) -> SpanId {
        let span = self.traceparent.as_ref();
        span.map_or(SpanId::INVALID, Traceparent::span_id)
    }
}

/// What our member of a `tracestate` says.
fn read(tracestate: &str) -> Option<Passed> {
    let mut members = tracestate.split(',').map(str::trim);
    let ours = members.find_map(|member| member.strip_prefix(VENDOR))?;
    let mut bytes = [0; USUAL];
    let length = BASE64_URL_SAFE_NO_PAD.decode_slice(ours, &mut bytes).ok()?;
    Passed::decode(&bytes[..length]).ok()
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
        let header = |name| Some(if name == TRACEPARENT { PARENT } else { state });
        Lineage::of_request(header).0
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
        let state = |began_ns| {
            let passed = Passed {
                began_ns,
                depth: 1,
                ..Passed::default()
            };
            let member = BASE64_URL_SAFE_NO_PAD.encode(passed.encode_to_vec());
            format!("{VENDOR}{member}")
        };
        assert_eq!((of(&state(1)).began_ns, of(&state(1)).depth), (1, 1));
        let long = format!("{VENDOR}{}", "A".repeat(4096));
        for state in [
            "",
            "other=1",
            "setpoint=",
            "setpoint=1",
            "setpoint=####",
            &long,
            &state(-1),
            &state(i64::MAX),
        ] {
            assert_eq!((of(state).began_ns, of(state).depth), (0, 0), "{state}");
        }
        assert_eq!(Lineage::of_request(|_| Some("no")), Default::default());
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
