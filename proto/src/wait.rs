//! A time that passed before a span began: what its attribute says, and its tracer draws as a span beside it.
//!
//! We chose this over spans that whoever waited begins and ends himself: a round has up to five waits, all of them known
//! as it begins, and each would go through what spans need that are still open. It would be wrong if another tracer than
//! ours drew the spans: there, waits are attributes.

use opentelemetry::{Array, KeyValue, Value};

/// The attribute that says which object a span is about. Its waits are about that one, too.
pub const OBJECT: &str = "setpoint.object";

const PREFIX: &str = "setpoint.wait.";

/// A wait: what for, and when, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait<'k> {
    /// `setpoint.wait.` and the name that its span has, for example `queue`.
    pub key: &'k str,
    /// When it began.
    pub from_ns: i64,
    /// When it was over.
    pub to_ns: i64,
}

impl Wait<'static> {
    /// For the span that was waited with; [`Self::of_attribute`] knows it there.
    pub fn attribute(&self) -> KeyValue {
        let times = vec![self.from_ns, self.to_ns];
        KeyValue::new(self.key, Value::Array(times.into()))
    }
}

impl<'k> Wait<'k> {
    /// The name of its span.
    pub fn name(&self) -> &'k str {
        self.key.strip_prefix(PREFIX).unwrap_or(self.key)
    }

    /// As [`Self::attribute`] said it.
    pub fn of_attribute(attribute: &'k KeyValue) -> Option<Self> {
        // Most attributes are text: that is seen without reading their names.
        let Value::Array(Array::I64(times)) = &attribute.value else {
            return None;
        };
        let key = attribute.key.as_str();
        if !key.starts_with(PREFIX) {
            return None;
        }
        let [from_ns, to_ns] = times.as_slice().try_into().ok()?;
        Some(Self {
            key,
            from_ns,
            to_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_told_by_an_attribute() {
        let wait = Wait {
            key: "setpoint.wait.queue",
            from_ns: 1_700_000_000_000_000_001,
            to_ns: 1_700_000_000_000_000_002,
        };
        let attribute = wait.attribute();
        assert_eq!(wait.name(), "queue");
        assert_eq!(Wait::of_attribute(&attribute), Some(wait));
        let other = KeyValue::new("queue", attribute.value.clone());
        let wrong = KeyValue::new(wait.key, 1);
        assert_eq!([&other, &wrong].map(Wait::of_attribute), [None, None]);
    }
}
