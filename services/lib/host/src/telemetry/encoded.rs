//! A span that has ended, as it will travel.

use std::fmt::Debug;
use std::mem;

use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanId, SpanKind};
use opentelemetry_proto::tonic::trace::v1 as otlp;
use opentelemetry_proto::transform::common::tonic::Attributes;
use opentelemetry_sdk::trace::SpanData;
use prost::Message as _;
use prost::encoding::{WireType, encode_key, encode_varint};
use setpoint_proto::Caller;
use setpoint_proto::cause::RPC_SYSTEM;

/// A span in OTLP's encoding, but for its parent, which can still change.
///
/// Spans wait before they leave. What the SDK has of one is a dozen pieces of memory, cold by the time that another
/// thread would encode and free them; this is one of some 200 bytes. Messages are merged by joining their bytes: so
/// what is known later is added.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub id: SpanId,
    pub parent: SpanId,
    /// Who made the call that this span answers, if it is one that reports its spans.
    pub caller: Option<Caller>,
    /// Whether it is around a call, whose other side may want to know that it has arrived.
    pub is_call: bool,
    fields: Box<[u8]>,
}

/// Where spans go next.
pub(crate) trait Sink: Debug + Send + Sync {
    fn take(&self, span: Encoded);
}

impl Encoded {
    /// Puts a span whose parent may be lost below what its call followed from.
    pub fn bereave(&mut self) {
        let lost = mem::replace(&mut self.parent, SpanId::INVALID).to_string();
        let lost = vec![KeyValue::new("setpoint.lost_parent", lost)];
        let more = otlp::Span {
            attributes: Attributes::from(lost).0,
            ..otlp::Span::default()
        };
        self.fields = [&*self.fields, &more.encode_to_vec()].concat().into();
        self.parent = self.caller.map_or(SpanId::INVALID, |caller| caller.follows);
    }

    /// Appends it as one of a message's `opentelemetry.proto.trace.v1.Span`s.
    pub fn put(&self, tag: u32, message: &mut Vec<u8>) {
        let parent = match self.parent {
            SpanId::INVALID => Vec::new(),
            id => id.to_bytes().to_vec(),
        };
        let parent = otlp::Span {
            parent_span_id: parent,
            ..otlp::Span::default()
        };
        let parent = parent.encode_to_vec();
        encode_key(tag, WireType::LengthDelimited, message);
        encode_varint((self.fields.len() + parent.len()) as u64, message);
        message.extend_from_slice(&self.fields);
        message.extend_from_slice(&parent);
    }
}

impl From<SpanData> for Encoded {
    fn from(mut span: SpanData) -> Self {
        let (id, parent) = (span.span_context.span_id(), span.parent_span_id);
        let caller = Caller::take(&mut span.attributes);
        let is_call = is_call(&span);
        let mut span = otlp::Span::from(span);
        span.parent_span_id.clear();
        Self {
            id,
            parent,
            caller,
            is_call,
            fields: span.encode_to_vec().into(),
        }
    }
}

fn is_call(span: &SpanData) -> bool {
    let mut keys = span.attributes.iter().map(|attribute| &attribute.key);
    span.span_kind != SpanKind::Server && keys.any(|key| key.as_str() == RPC_SYSTEM)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use opentelemetry::InstrumentationScope;
    use opentelemetry::trace::{Event, Link, SpanContext, Status, TraceFlags, TraceId};
    use opentelemetry_sdk::trace::{SpanEvents, SpanLinks};

    use super::*;
    use crate::telemetry::told::decoded;

    const CALLER: Caller = Caller {
        id: 7,
        follows: SpanId::from_bytes([3; 8]),
    };

    /// A span with one of everything.
    fn span() -> SpanData {
        let context = |id| {
            let (trace, id) = (TraceId::from(1), SpanId::from(id));
            SpanContext::new(trace, id, TraceFlags::SAMPLED, true, "a=b".parse().unwrap())
        };
        let texts = ["", "a", &"ä".repeat(200)].map(|text| KeyValue::new("text", text.to_owned()));
        let others = [
            KeyValue::new("number", i64::MIN),
            KeyValue::new("truth", true),
            KeyValue::new("k".repeat(300), 0.5),
        ];
        let mut events = SpanEvents::default();
        events.events = vec![Event::new(
            "told",
            UNIX_EPOCH + Duration::new(5, 7),
            texts.to_vec(),
            0,
        )];
        let mut links = SpanLinks::default();
        links.links = vec![Link::new(context(9), others.to_vec(), 0)];
        SpanData {
            span_context: context(5),
            parent_span_id: SpanId::from(4),
            parent_span_is_remote: true,
            span_kind: SpanKind::Client,
            name: "write".into(),
            start_time: SystemTime::UNIX_EPOCH,
            end_time: UNIX_EPOCH + Duration::new(5, 7),
            attributes: texts.into_iter().chain(others).collect(),
            dropped_attributes_count: 1,
            events,
            links,
            status: Status::error("why"),
            instrumentation_scope: InstrumentationScope::default(),
        }
    }

    #[test]
    fn a_span_is_encoded_as_the_library_has_it() {
        assert_eq!(decoded(&span().into()), otlp::Span::from(span()));
        let root = SpanData {
            parent_span_id: SpanId::INVALID,
            attributes: Vec::new(),
            ..span()
        };
        assert_eq!(decoded(&root.clone().into()), otlp::Span::from(root));
    }

    /// It answers a call.
    fn answer() -> SpanData {
        let mut span = span();
        span.attributes.push(CALLER.attribute());
        span
    }

    #[test]
    fn who_called_stays_here() {
        let encoded = Encoded::from(answer());
        assert_eq!(encoded.caller, Some(CALLER));
        assert_eq!(decoded(&encoded), otlp::Span::from(span()));
    }

    #[test]
    fn what_is_known_of_a_span_while_it_waits() {
        let encoded = Encoded::from(span());
        assert_eq!((encoded.id, encoded.parent), (5.into(), 4.into()));
        assert_eq!((encoded.caller, encoded.is_call), (None, false));
        let mut call = span();
        call.attributes.push(KeyValue::new(RPC_SYSTEM, "grpc"));
        assert!(Encoded::from(call.clone()).is_call);
        call.span_kind = SpanKind::Server;
        assert!(!Encoded::from(call).is_call);
    }

    #[test]
    fn a_span_that_lost_its_parent_is_below_what_its_call_followed_from() {
        let mut bereft = Encoded::from(answer());
        bereft.bereave();
        let mut expected = span();
        expected.parent_span_id = CALLER.follows;
        let lost = KeyValue::new("setpoint.lost_parent", "0000000000000004");
        expected.attributes.push(lost);
        assert_eq!(decoded(&bereft), otlp::Span::from(expected));
    }
}
