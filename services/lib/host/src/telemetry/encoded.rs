//! A span that has ended, as it will travel.

use std::fmt::Debug;
use std::mem;

use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanContext, SpanId, SpanKind};
use setpoint_proto::Caller;

use super::wire::{self, field};

/// A span takes about so many bytes.
pub(super) const USUAL: usize = 320;
/// So many bytes are enough for most spans.
const ROOM: usize = 512;

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
    /// The waits before it: spans that travel with it, as in OTLP's `ScopeSpans`.
    pub beside: Vec<u8>,
    /// How many they are together.
    pub spans: usize,
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
        start_ns: i64,
    ) -> Self {
        let mut fields = Vec::with_capacity(ROOM);
        wire::beginning(context, parent, name, kind, start_ns, &mut fields);
        Self {
            id: context.span_id(),
            parent: parent.span_id(),
            caller: None,
            is_call: false,
            fields,
            beside: Vec::new(),
            spans: 1,
        }
    }

    /// Adds a span beside it that `fill` writes.
    pub fn add(&mut self, fill: impl FnOnce(&[u8], &mut Vec<u8>)) {
        self.beside.reserve(USUAL);
        wire::nested(wire::SPANS, &mut self.beside, |to| fill(&self.fields, to));
        self.spans += 1;
    }

    /// Puts a span whose parent may be lost below what its call followed from.
    pub fn bereave(&mut self) {
        let lost = mem::replace(&mut self.parent, SpanId::INVALID).to_string();
        let lost = KeyValue::new("setpoint.lost_parent", lost);
        wire::attribute(field::ATTRIBUTES, &lost, &mut self.fields);
        self.parent = self.caller.map_or(SpanId::INVALID, |caller| caller.follows);
    }

    /// Appends it, and what is beside it, to OTLP's `ScopeSpans`.
    pub fn put(mut self, scope: &mut Vec<u8>) {
        wire::parent(self.parent, &mut self.fields);
        wire::bytes(wire::SPANS, &self.fields, scope);
        scope.extend_from_slice(&self.beside);
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
            beside: Vec::new(),
            spans: 1,
        };
        wire::text(field::NAME, "write", &mut bereft.fields);
        bereft.bereave();
        let [span] = decoded(bereft).try_into().unwrap();
        assert_eq!((span.name.as_str(), span.attributes.len()), ("write", 1));
        assert_eq!(span.parent_span_id, SpanId::from(3).to_bytes());
        let lost = format!("{:?}", span.attributes);
        assert!(
            lost.contains("setpoint.lost_parent") && lost.contains("0000000000000004"),
            "{lost}"
        );
    }
}
