//! Who made a call, and which span it followed from: what its `tracestate` says beside the cascade's age and depth.

use opentelemetry::trace::SpanId;
use opentelemetry::{Array, KeyValue, Value};

use crate::lineage::member;

const CALLER: &str = "setpoint.caller";

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

    /// As a call's `tracestate` names it.
    pub fn of_call(tracestate: &str) -> Option<Self> {
        let mut parts = member(tracestate)?.split(';').skip(2);
        let (id, follows) = (parts.next()?, parts.next()?);
        Some(Self {
            id: u64::from_str_radix(id, 16).ok()?,
            follows: SpanId::from_hex(follows).ok()?,
        })
    }

    /// For the span that answers its call; [`Self::take`] finds it there.
    pub fn attribute(self) -> KeyValue {
        let follows = u64::from_be_bytes(self.follows.to_bytes());
        let both = [self.id, follows].map(u64::cast_signed);
        KeyValue::new(CALLER, Value::Array(both.to_vec().into()))
    }

    /// Takes it from a span's attributes: it is not meant for who reads the trace.
    pub fn take(attributes: &mut Vec<KeyValue>) -> Option<Self> {
        let is_caller = |attribute: &KeyValue| attribute.key.as_str() == CALLER;
        let place = attributes.iter().position(is_caller)?;
        let Value::Array(Array::I64(both)) = attributes.swap_remove(place).value else {
            return None;
        };
        let both: [i64; 2] = both.try_into().ok()?;
        let [id, follows] = both.map(i64::cast_unsigned);
        Some(Self {
            id,
            follows: SpanId::from(follows),
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
            assert_eq!(Caller::of_call(&state), Some(caller));
        }
    }

    #[test]
    fn who_does_not_report_is_no_caller() {
        for state in ["", "other=1", "setpoint=5;1", "setpoint=5;1;x;y"] {
            assert_eq!(Caller::of_call(state), None, "{state}");
        }
    }

    #[test]
    fn a_span_keeps_it_until_it_is_taken() {
        let caller = Caller {
            id: u64::MAX,
            follows: SpanId::from(9),
        };
        let other = KeyValue::new("other", 1);
        let mut attributes = vec![caller.attribute(), other.clone()];
        assert_eq!(Caller::take(&mut attributes), Some(caller));
        assert_eq!(attributes, [other]);
        assert_eq!(Caller::take(&mut attributes), None);
    }
}
