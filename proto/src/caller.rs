//! Who made a call, and which span it followed from: what its `tracestate` says beside the cascade's age and depth.

use opentelemetry::trace::{SpanId, TraceState};

use crate::lineage::VENDOR;

/// The caller of a traced call that reports its exported spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Told apart from all others.
    pub id: u64,
    /// The span that the caller's own part of the trace is below; invalid if that part is a root.
    pub follows: SpanId,
}

impl Caller {
    /// As the last two parts of our member of the `tracestate`.
    pub(crate) fn suffix(self) -> String {
        format!(";{:016x};{}", self.id, self.follows)
    }

    /// As a span's `tracestate` names it, which is that of the call it belongs to.
    pub fn of(state: &TraceState) -> Option<Self> {
        let mut parts = state.get(VENDOR)?.split(';').skip(2);
        let (id, follows) = (parts.next()?, parts.next()?);
        Some(Self {
            id: u64::from_str_radix(id, 16).ok()?,
            follows: SpanId::from_hex(follows).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lineage;

    #[test]
    fn a_call_names_its_caller_and_what_it_followed_from() {
        let caller = Caller {
            id: 7,
            follows: SpanId::from(9),
        };
        let began = Lineage {
            began_ns: 5,
            depth: 1,
            ..Lineage::default()
        };
        for lineage in [began, Lineage::default()] {
            let state = lineage.tracestate(Some(caller)).expect("there is a caller");
            let state = state.parse().expect("it is a tracestate");
            assert_eq!(Caller::of(&state), Some(caller));
        }
    }

    #[test]
    fn who_does_not_report_is_no_caller() {
        for state in ["", "other=1", "setpoint=5;1", "setpoint=5;1;x;y"] {
            assert_eq!(
                Caller::of(&state.parse().expect("it parses")),
                None,
                "{state}"
            );
        }
    }
}
