//! A span that has ended, as it will travel.

use std::fmt::Debug;
use std::mem;
use std::time::SystemTime;

use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanContext, SpanId, SpanKind};
use setpoint_proto::Caller;

use super::wire::{self, field};

/// So many bytes are enough for most spans.
pub(super) const USUAL: usize = 320;

/// A span in OTLP's encoding, but for its parent, which can still change.
///
/// Messages are merged by joining their bytes: so what is known later is added.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub id: SpanId,
    /// Invalid for a root.
    pub parent: SpanId,
    /// Who made the call that this span answers, if it is one that reports its spans.
    pub caller: Option<Caller>,
    /// Whether it is around a call, whose other side may want to know that it has arrived.
    pub is_call: bool,
    pub fields: Vec<u8>,
}

/// Where spans go next.
pub(crate) trait Sink: Debug + Send + Sync {
    fn take(&self, span: Encoded);
}

impl Encoded {
    /// What is known of a span as it begins below another one.
    pub fn begin(
        context: &SpanContext,
        parent: &SpanContext,
        name: &str,
        kind: SpanKind,
        start: SystemTime,
    ) -> Self {
        let mut fields = Vec::with_capacity(USUAL);
        wire::context(context, &mut fields);
        wire::flags(field::FLAGS, context, parent.is_remote(), &mut fields);
        wire::text(field::NAME, name, &mut fields);
        wire::kind(kind, &mut fields);
        wire::time(field::START, start, &mut fields);
        Self {
            id: context.span_id(),
            parent: parent.span_id(),
            caller: None,
            is_call: false,
            fields,
        }
    }

    /// Puts a span whose parent may be lost below what its call followed from.
    pub fn bereave(&mut self) {
        let lost = mem::replace(&mut self.parent, SpanId::INVALID).to_string();
        let lost = KeyValue::new("setpoint.lost_parent", lost);
        wire::attribute(field::ATTRIBUTES, &lost, &mut self.fields);
        self.parent = self.caller.map_or(SpanId::INVALID, |caller| caller.follows);
    }

    /// Appends it as a field of another message.
    pub fn put(mut self, tag: u32, message: &mut Vec<u8>) {
        if self.parent != SpanId::INVALID {
            wire::bytes(field::PARENT, &self.parent.to_bytes(), &mut self.fields);
        }
        wire::bytes(tag, &self.fields, message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::told::decoded;

    #[test]
    fn a_span_that_lost_its_parent_is_below_what_its_call_followed_from() {
        let mut bereft = Encoded {
            id: 5.into(),
            parent: 4.into(),
            caller: Some(Caller {
                id: 7,
                follows: 3.into(),
            }),
            is_call: false,
            fields: Vec::new(),
        };
        wire::text(field::NAME, "write", &mut bereft.fields);
        bereft.bereave();
        let span = decoded(bereft);
        assert_eq!((span.name.as_str(), span.attributes.len()), ("write", 1));
        assert_eq!(span.parent_span_id, SpanId::from(3).to_bytes());
        let lost = format!("{:?}", span.attributes);
        assert!(
            lost.contains("setpoint.lost_parent") && lost.contains("0000000000000004"),
            "{lost}"
        );
    }
}
