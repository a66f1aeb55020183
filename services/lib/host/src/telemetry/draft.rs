//! A span as OpenTelemetry's interface has it.

use std::borrow::Cow;
use std::time::SystemTime;

use opentelemetry::KeyValue;
use opentelemetry::trace::{Span, SpanBuilder, SpanContext, Status};
use setpoint_proto::lineage::nanoseconds;

use super::open::Open;
use super::parts::Parts;

/// A span that has not ended yet. Dropped, it ends.
#[derive(Debug)]
pub struct Draft {
    context: SpanContext,
    /// `None` once it has ended, and of one that is not sampled.
    open: Option<Open>,
}

impl Draft {
    /// One that leaves no trace, and is there to pass its context on.
    pub fn unsampled(context: SpanContext) -> Self {
        Self {
            context,
            open: None,
        }
    }

    /// Begins a span of a part below another one, which is [`SpanContext::NONE`] for a root.
    pub fn begin(
        parts: Parts,
        context: SpanContext,
        parent: &SpanContext,
        builder: SpanBuilder,
    ) -> Self {
        let mut open = Open::begin(parts, &context, parent, &builder);
        for attribute in builder.attributes.iter().flatten() {
            open.set(&context, attribute);
        }
        for event in builder.events.iter().flatten() {
            open.tell(&event.name, nanoseconds(event.timestamp), &event.attributes);
        }
        for link in builder.links.iter().flatten() {
            open.link(&link.span_context, &link.attributes);
        }
        Self {
            context,
            open: Some(open),
        }
    }
}

impl Span for Draft {
    fn add_event_with_timestamp<T>(&mut self, name: T, at: SystemTime, attributes: Vec<KeyValue>)
    where
        T: Into<Cow<'static, str>>,
    {
        if let Some(open) = &mut self.open {
            open.tell(&name.into(), nanoseconds(at), &attributes);
        }
    }

    fn span_context(&self) -> &SpanContext {
        &self.context
    }

    fn is_recording(&self) -> bool {
        self.open.is_some()
    }

    fn set_attribute(&mut self, attribute: KeyValue) {
        if let Some(open) = &mut self.open {
            open.set(&self.context, &attribute);
        }
    }

    fn set_status(&mut self, status: Status) {
        if let (Some(open), true) = (&mut self.open, status != Status::Unset) {
            open.status(&status);
        }
    }

    fn update_name<T>(&mut self, name: T)
    where
        T: Into<Cow<'static, str>>,
    {
        if let Some(open) = &mut self.open {
            open.name(&name.into());
        }
    }

    fn add_link(&mut self, context: SpanContext, attributes: Vec<KeyValue>) {
        if let Some(open) = &mut self.open {
            open.link(&context, &attributes);
        }
    }

    fn end_with_timestamp(&mut self, at: SystemTime) {
        if let Some(open) = self.open.take() {
            open.end(nanoseconds(at));
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use opentelemetry::trace::{Event, Link, SpanId, SpanKind, TraceFlags};
    use opentelemetry::{Array, InstrumentationScope, StringValue, Value};
    use opentelemetry_proto::tonic::trace::v1 as otlp;
    use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
    use setpoint_proto::here::RPC_SYSTEM;
    use setpoint_proto::{Caller, OBJECT, Wait};

    use super::*;
    use crate::telemetry::open::MOST;
    use crate::telemetry::told::Told;

    const START: SystemTime = UNIX_EPOCH;
    const CALLER: Caller = Caller {
        id: 7,
        follows: SpanId::from_bytes([3; 8]),
    };

    fn context(id: u64, remote: bool) -> SpanContext {
        let state = "a=b".parse().unwrap();
        SpanContext::new(1.into(), id.into(), TraceFlags::SAMPLED, remote, state)
    }

    /// One of each sort, some more than once.
    fn attributes() -> Vec<KeyValue> {
        let long: StringValue = "ä".repeat(1000).into();
        vec![
            KeyValue::new("text", "static"),
            KeyValue::new("owned", String::from("owned")),
            KeyValue::new("long", long),
            KeyValue::new("empty", ""),
            KeyValue::new("yes", true),
            KeyValue::new("number", -1),
            KeyValue::new("share", 0.5),
            KeyValue::new("list", Value::Array(Array::I64(vec![1, 2]))),
        ]
    }

    fn builder() -> SpanBuilder {
        SpanBuilder::from_name("write")
            .with_kind(SpanKind::Client)
            .with_start_time(START)
    }

    fn begun(told: &Told, parent: &SpanContext) -> Draft {
        let parts = Parts::before(told.clone());
        Draft::begin(parts, context(5, false), parent, builder())
    }

    /// What the SDK would have of a span that nothing was said of.
    fn plain(parent: &SpanContext) -> SpanData {
        SpanData {
            span_context: context(5, false),
            parent_span_id: parent.span_id(),
            parent_span_is_remote: parent.is_remote(),
            span_kind: SpanKind::Client,
            name: "write".into(),
            start_time: START,
            end_time: START + Duration::new(5, 7),
            attributes: Vec::new(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Ok,
            instrumentation_scope: InstrumentationScope::default(),
        }
    }

    /// The one span that was told.
    fn told_by(mut draft: Draft, told: &Told) -> otlp::Span {
        draft.end_with_timestamp(START + Duration::new(5, 7));
        let spans = told.spans();
        assert_eq!(spans.len(), 1);
        spans.into_iter().next().unwrap()
    }

    #[test]
    fn a_span_is_encoded_as_the_library_has_it() {
        let (told, parent) = (Told::default(), context(4, true));
        let mut draft = begun(&told, &parent);
        draft.update_name("PUT pods");
        draft.set_attributes(attributes());
        draft.add_event_with_timestamp("told", START, attributes());
        draft.add_link(context(6, true), attributes());
        draft.add_link(context(7, false), Vec::new());
        draft.set_status(Status::error("why"));
        let mut expected = SpanData {
            name: "PUT pods".into(),
            attributes: attributes(),
            status: Status::error("why"),
            ..plain(&parent)
        };
        expected.events.events = vec![Event::new("told", START, attributes(), 0)];
        expected.links.links = vec![
            Link::new(context(6, true), attributes(), 0),
            Link::new(context(7, false), Vec::new(), 0),
        ];
        assert_eq!(told_by(draft, &told), otlp::Span::from(expected));
    }

    #[test]
    fn what_it_begins_with_is_as_if_it_were_said_later() {
        let (told, parent) = (Told::default(), context(4, false));
        let begins = SpanBuilder {
            attributes: Some(attributes()),
            events: Some(vec![Event::new("told", START, Vec::new(), 0)]),
            links: Some(vec![Link::new(context(6, true), Vec::new(), 0)]),
            ..builder()
        };
        let parts = Parts::before(told.clone());
        let mut draft = Draft::begin(parts, context(5, false), &parent, begins);
        draft.set_status(Status::Ok);
        let mut expected = SpanData {
            attributes: attributes(),
            ..plain(&parent)
        };
        expected.events.events = vec![Event::new("told", START, Vec::new(), 0)];
        expected.links.links = vec![Link::new(context(6, true), Vec::new(), 0)];
        assert_eq!(told_by(draft, &told), otlp::Span::from(expected));
    }

    #[test]
    fn the_last_status_counts_and_a_root_has_no_parent() {
        let (told, nobody) = (Told::default(), SpanContext::NONE);
        let mut draft = begun(&told, &nobody);
        draft.set_status(Status::error("why"));
        draft.set_status(Status::Ok);
        draft.set_status(Status::Unset);
        let expected = otlp::Span::from(plain(&nobody));
        assert_eq!(told_by(draft, &told), expected);
    }

    #[test]
    fn more_than_a_span_keeps_is_counted() {
        let (told, nobody) = (Told::default(), SpanContext::NONE);
        let mut draft = begun(&told, &nobody);
        for n in 0..MOST + 3 {
            draft.set_attribute(KeyValue::new("n", i64::from(n)));
            draft.add_event("told", Vec::new());
            draft.add_link(context(6, true), Vec::new());
        }
        let span = told_by(draft, &told);
        assert_eq!(span.attributes.len(), MOST as usize);
        assert_eq!(span.events.len(), MOST as usize);
        assert_eq!(span.links.len(), MOST as usize);
        assert_eq!(span.dropped_attributes_count, 3);
        assert_eq!(span.dropped_events_count, 3);
        assert_eq!(span.dropped_links_count, 3);
    }

    #[test]
    fn who_called_stays_here() {
        let (told, parent) = (Told::default(), context(4, true));
        let mut draft = begun(&told, &parent);
        draft.set_attribute(CALLER.attribute());
        draft.set_status(Status::Ok);
        assert_eq!(draft.open.as_ref().unwrap().span.caller, Some(CALLER));
        assert_eq!(told_by(draft, &told), otlp::Span::from(plain(&parent)));
    }

    #[test]
    fn a_wait_is_drawn_beside_the_span_that_waited() {
        let (told, parent) = (Told::default(), context(4, true));
        let mut draft = begun(&told, &parent);
        let object = KeyValue::new(OBJECT, "default/web");
        let (from, to) = (START + Duration::new(1, 2), START + Duration::new(3, 4));
        let wait = Wait {
            key: "setpoint.wait.queue",
            from_ns: nanoseconds(from),
            to_ns: nanoseconds(to),
        };
        draft.set_attributes([object.clone(), wait.attribute()]);
        let state = draft.span_context().trace_state().clone();
        draft.end_with_timestamp(to);
        let [waited, beside] = told.spans().try_into().unwrap();
        let id: [u8; 8] = beside.span_id.as_slice().try_into().unwrap();
        let flags = TraceFlags::SAMPLED;
        let expected = SpanData {
            span_context: SpanContext::new(1.into(), SpanId::from_bytes(id), flags, false, state),
            span_kind: SpanKind::Internal,
            name: "queue".into(),
            start_time: from,
            end_time: to,
            attributes: vec![object.clone()],
            ..plain(&parent)
        };
        let expected = otlp::Span {
            status: None,
            ..otlp::Span::from(expected)
        };
        assert_eq!(beside, expected);
        assert_ne!(beside.span_id, SpanId::from(5).to_bytes());
        assert_eq!(
            (waited.name.as_str(), waited.attributes.len()),
            ("write", 1)
        );
    }

    #[test]
    fn a_call_is_told_from_its_answer() {
        let told = Told::default();
        for (kind, is_call) in [(SpanKind::Client, true), (SpanKind::Server, false)] {
            let parts = Parts::before(told.clone());
            let begins = builder().with_kind(kind);
            let mut draft = Draft::begin(parts, context(5, false), &SpanContext::NONE, begins);
            assert!(!draft.open.as_ref().unwrap().span.is_call);
            draft.set_attribute(KeyValue::new(RPC_SYSTEM, "grpc"));
            assert_eq!(draft.open.as_ref().unwrap().span.is_call, is_call);
        }
    }

    #[test]
    fn what_is_dropped_has_ended_and_nothing_ends_twice() {
        let told = Told::default();
        let mut draft = begun(&told, &SpanContext::NONE);
        draft.end();
        assert!(!draft.is_recording());
        draft.set_attribute(KeyValue::new("late", true));
        drop(draft);
        drop(begun(&told, &SpanContext::NONE));
        drop(Draft::unsampled(context(8, false)));
        assert_eq!(told.names(), ["write", "write"]);
        assert!(told.spans().iter().all(|span| span.end_time_unix_nano > 0));
    }
}
