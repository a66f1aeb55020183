//! What a write inherits from the cascade that it belongs to, and how requests carry that.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::trace::SpanId;

use crate::{Because, Caller, Cause, Traceparent};

/// The header and metadata key of a W3C trace context.
pub const TRACEPARENT: &str = "traceparent";

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

    /// As a request's header tells of a trace that others began. What cannot be read is as if it were not there.
    pub fn below(traceparent: Option<&str>) -> Self {
        Self {
            traceparent: traceparent.and_then(|text| text.parse().ok()),
            ..Self::default()
        }
    }

    /// As a call says. What cannot be true is as if it were not there.
    pub fn of(because: &Because) -> Self {
        // It counts without a trace, too: how deep a cascade goes is also a metric.
        let (began_ns, depth) = match (1..=now_ns()).contains(&because.began_ns) {
            true => (because.began_ns, because.depth),
            false => (0, 0),
        };
        Self {
            traceparent: because.parent.filter(Traceparent::is_valid),
            began_ns,
            depth,
        }
    }

    /// What a call says that is made in it, in this span and by this caller; `None` where there is nothing to say.
    pub fn because(&self, span: Option<Traceparent>, caller: Option<Caller>) -> Option<Because> {
        let (caller, follows) = caller.map_or((0, 0), Caller::numbers);
        let because = Because {
            // Without a tracer the trace of the cause is passed on as it came.
            parent: span.or(self.traceparent),
            began_ns: self.began_ns,
            depth: self.depth,
            caller,
            follows,
        };
        (because != Because::default()).then_some(because)
    }

    /// The span that it follows from; invalid without one.
    pub fn follows(&self) -> SpanId {
        let span = self.traceparent.as_ref();
        span.map_or(SpanId::INVALID, Traceparent::span_id)
    }
}

/// Nanoseconds since 1970.
pub fn now_ns() -> i64 {
    nanoseconds(SystemTime::now())
}

/// Nanoseconds from 1970 to a moment; 0 for an earlier one.
pub fn nanoseconds(moment: SystemTime) -> i64 {
    lasting(moment.duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// Nanoseconds of a time that passes; as many as there can be for a longer one.
pub fn lasting(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_call_carries_its_place_in_the_cascade() {
        let lineage = Lineage {
            traceparent: PARENT.parse().ok(),
            began_ns: 1_700_000_000_000_000_000,
            depth: 3,
        };
        let because = lineage.because(None, None).expect("it goes on");
        assert_eq!(Lineage::of(&because), lineage);
        let span = PARENT.replace("b7-01", "b8-01").parse().ok();
        let because = lineage.because(span, None).expect("it goes on");
        assert_eq!(Lineage::of(&because).traceparent, span);
        assert_eq!(Lineage::default().because(None, None), None);
    }

    #[test]
    fn what_cannot_be_true_begins_a_cascade() {
        for began_ns in [0, -1, i64::MAX] {
            let because = Because {
                parent: Some(Traceparent::default()),
                began_ns,
                depth: 1,
                ..Because::default()
            };
            assert_eq!(Lineage::of(&because), Lineage::default(), "{began_ns}");
        }
    }

    #[test]
    fn others_name_their_span_by_a_header() {
        assert_eq!(
            Lineage::below(Some(PARENT)).traceparent,
            PARENT.parse().ok()
        );
        for header in [None, Some("no")] {
            assert_eq!(Lineage::below(header), Lineage::default());
        }
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
