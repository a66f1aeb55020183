//! Who made a call, and which span it followed from.

use opentelemetry::trace::SpanId;
use opentelemetry::{Array, KeyValue, Value};

use crate::Because;

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
    /// As a call names it.
    pub fn of(because: &Because) -> Option<Self> {
        let named = Self {
            id: because.caller,
            follows: SpanId::from(because.follows),
        };
        (named.id != 0).then_some(named)
    }

    pub(crate) fn numbers(self) -> (u64, u64) {
        (self.id, u64::from_be_bytes(self.follows.to_bytes()))
    }

    /// For the span that answers its call; [`Self::of_attribute`] knows it there.
    pub fn attribute(self) -> KeyValue {
        let (id, follows) = self.numbers();
        let both = [id, follows].map(u64::cast_signed);
        KeyValue::new(CALLER, Value::Array(both.to_vec().into()))
    }

    /// As [`Self::attribute`] said it: it is not meant for who reads the trace.
    pub fn of_attribute(attribute: &KeyValue) -> Option<Self> {
        let Value::Array(Array::I64(both)) = &attribute.value else {
            return None;
        };
        if attribute.key.as_str() != CALLER {
            return None;
        }
        let both: [i64; 2] = both.as_slice().try_into().ok()?;
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
        let because = Lineage::default().because(None, Some(caller));
        let because = because.expect("there is a caller");
        assert_eq!(Caller::of(&because), Some(caller));
        assert_eq!(Caller::of(&Because::default()), None);
    }

    #[test]
    fn a_span_is_told_of_it_by_an_attribute() {
        let caller = Caller {
            id: u64::MAX,
            follows: SpanId::from(9),
        };
        assert_eq!(Caller::of_attribute(&caller.attribute()), Some(caller));
        for other in [KeyValue::new("other", 1), KeyValue::new(CALLER, 1)] {
            assert_eq!(Caller::of_attribute(&other), None);
        }
    }
}
