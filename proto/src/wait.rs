//! A time that passed before a span began: what its attribute says, and its tracer draws as a span beside it.
//!
//! We chose this over spans that whoever waited begins and ends himself: a round has up to five waits, all of them known
//! as it begins, and each would go through what spans need that are still open. It would be wrong if another tracer than
//! ours drew the spans: there, waits are attributes.

use std::time::SystemTime;

use opentelemetry::{Array, KeyValue, Value};

use crate::lineage::{moment, nanoseconds};

/// The attribute that says which object a span is about. Its waits are about that one, too.
pub const OBJECT: &str = "setpoint.object";

const PREFIX: &str = "setpoint.wait.";

/// A wait, by the name that its span has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait<'n> {
    /// For example `queue`.
    pub name: &'n str,
    /// When it began.
    pub from: SystemTime,
    /// When it was over.
    pub to: SystemTime,
}

impl<'n> Wait<'n> {
    /// For the span that was waited with; [`Self::of_attribute`] knows it there.
    pub fn attribute(&self) -> KeyValue {
        let times = [self.from, self.to].map(nanoseconds);
        let key = format!("{PREFIX}{}", self.name);
        KeyValue::new(key, Value::Array(times.to_vec().into()))
    }

    /// As [`Self::attribute`] said it.
    pub fn of_attribute(attribute: &'n KeyValue) -> Option<Self> {
        let name = attribute.key.as_str().strip_prefix(PREFIX)?;
        let Value::Array(Array::I64(times)) = &attribute.value else {
            return None;
        };
        let times: [i64; 2] = times.as_slice().try_into().ok()?;
        let [from, to] = times.map(moment);
        Some(Self { name, from, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_told_by_an_attribute() {
        let wait = Wait {
            name: "queue",
            from: moment(1_700_000_000_000_000_001),
            to: moment(1_700_000_000_000_000_002),
        };
        let attribute = wait.attribute();
        assert_eq!(attribute.key.as_str(), "setpoint.wait.queue");
        assert_eq!(Wait::of_attribute(&attribute), Some(wait));
        let other = KeyValue::new("queue", attribute.value);
        let wrong = KeyValue::new(attribute.key, 1);
        assert_eq!([&other, &wrong].map(Wait::of_attribute), [None, None]);
    }
}
