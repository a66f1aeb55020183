//! A span that has not ended yet, in the bytes that it will travel in.

use std::borrow::Cow;
use std::time::SystemTime;

use opentelemetry::trace::{Span, SpanBuilder, SpanContext, SpanKind, Status};
use opentelemetry::{KeyValue, Value};
use opentelemetry_sdk::trace::{IdGenerator as _, RandomIdGenerator};
use setpoint_proto::cause::RPC_SYSTEM;
use setpoint_proto::{Caller, OBJECT, Wait};

use super::encoded::{Encoded, USUAL};
use super::parts::Parts;
use super::wire::{self, field};

/// How many attributes, events and links a span keeps: OpenTelemetry's limit where nothing else is said.
const MOST: u32 = 128;

/// A span that has not ended yet. Dropped, it ends.
#[derive(Debug)]
pub struct Draft {
    context: SpanContext,
    /// `None` once it has ended, and of one that is not sampled.
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    parts: Parts,
    span: Encoded,
    kind: SpanKind,
    /// Whether the parent is elsewhere.
    below_remote: bool,
    object: Option<Value>,
    attributes: Count,
    events: Count,
    links: Count,
}

/// How many of something the span was given. More than it keeps are counted only.
#[derive(Debug, Default)]
struct Count(u32);

impl Count {
    fn admits(&mut self) -> bool {
        self.0 = self.0.saturating_add(1);
        self.0 <= MOST
    }

    const fn dropped(&self) -> u32 {
        self.0.saturating_sub(MOST)
    }
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
        parts.begin(context.span_id(), parent.span_id());
        let mut draft = Self {
            open: Some(Open::of(parts, &context, parent, &builder)),
            context,
        };
        draft.set_attributes(builder.attributes.into_iter().flatten());
        for event in builder.events.into_iter().flatten() {
            draft.add_event_with_timestamp(event.name, event.timestamp, event.attributes);
        }
        for link in builder.links.into_iter().flatten() {
            draft.add_link(link.span_context, link.attributes);
        }
        draft
    }
}

impl Open {
    fn of(
        parts: Parts,
        context: &SpanContext,
        parent: &SpanContext,
        builder: &SpanBuilder,
    ) -> Self {
        let kind = builder.span_kind.clone().unwrap_or(SpanKind::Internal);
        let start = builder.start_time.unwrap_or_else(SystemTime::now);
        let mut fields = Vec::with_capacity(USUAL);
        wire::begin(context, parent.is_remote(), &builder.name, &mut fields);
        wire::kind(kind.clone(), &mut fields);
        wire::time(field::START, start, &mut fields);
        Self {
            parts,
            span: Encoded {
                id: context.span_id(),
                parent: parent.span_id(),
                caller: None,
                is_call: false,
                fields,
            },
            kind,
            below_remote: parent.is_remote(),
            object: None,
            attributes: Count::default(),
            events: Count::default(),
            links: Count::default(),
        }
    }

    fn set(&mut self, attribute: &KeyValue) {
        if let Some(caller) = Caller::of_attribute(attribute) {
            self.span.caller = Some(caller);
            return;
        }
        if attribute.key.as_str() == OBJECT {
            self.object = Some(attribute.value.clone());
        }
        self.span.is_call |= self.kind != SpanKind::Server && attribute.key.as_str() == RPC_SYSTEM;
        if self.attributes.admits() {
            wire::attribute(field::ATTRIBUTES, attribute, &mut self.span.fields);
        }
    }

    /// A wait of this span, as a span beside it.
    fn beside(&self, context: &SpanContext, wait: &Wait<'_>) -> Encoded {
        let id = RandomIdGenerator::default().new_span_id();
        let (trace, flags) = (context.trace_id(), context.trace_flags());
        let context = SpanContext::new(trace, id, flags, false, context.trace_state().clone());
        let mut fields = Vec::with_capacity(USUAL);
        wire::begin(&context, self.below_remote, wait.name, &mut fields);
        wire::kind(SpanKind::Internal, &mut fields);
        wire::time(field::START, wait.from, &mut fields);
        wire::time(field::END, wait.to, &mut fields);
        if let Some(object) = &self.object {
            let object = KeyValue::new(OBJECT, object.clone());
            wire::attribute(field::ATTRIBUTES, &object, &mut fields);
        }
        Encoded {
            id,
            parent: self.span.parent,
            caller: None,
            is_call: false,
            fields,
        }
    }

    fn end(mut self, at: SystemTime) {
        let fields = &mut self.span.fields;
        wire::time(field::END, at, fields);
        wire::count(field::DROPPED_ATTRIBUTES, self.attributes.dropped(), fields);
        wire::count(field::DROPPED_EVENTS, self.events.dropped(), fields);
        wire::count(field::DROPPED_LINKS, self.links.dropped(), fields);
        self.parts.end(self.span);
    }
}

impl Span for Draft {
    fn add_event_with_timestamp<T>(&mut self, name: T, at: SystemTime, attributes: Vec<KeyValue>)
    where
        T: Into<Cow<'static, str>>,
    {
        if let Some(open) = &mut self.open
            && open.events.admits()
        {
            wire::event(&name.into(), at, &attributes, &mut open.span.fields);
        }
    }

    fn span_context(&self) -> &SpanContext {
        &self.context
    }

    fn is_recording(&self) -> bool {
        self.open.is_some()
    }

    fn set_attribute(&mut self, attribute: KeyValue) {
        let Some(open) = &mut self.open else { return };
        match Wait::of_attribute(&attribute) {
            Some(wait) => open.parts.pass_by(open.beside(&self.context, &wait)),
            None => open.set(&attribute),
        }
    }

    fn set_status(&mut self, status: Status) {
        if let (Some(open), true) = (&mut self.open, status != Status::Unset) {
            wire::status(&status, &mut open.span.fields);
        }
    }

    /// Of two names the last one counts, as of any field that is there twice.
    fn update_name<T>(&mut self, name: T)
    where
        T: Into<Cow<'static, str>>,
    {
        if let Some(open) = &mut self.open {
            wire::text(field::NAME, &name.into(), &mut open.span.fields);
        }
    }

    fn add_link(&mut self, context: SpanContext, attributes: Vec<KeyValue>) {
        if let Some(open) = &mut self.open
            && open.links.admits()
        {
            wire::link(&context, &attributes, &mut open.span.fields);
        }
    }

    fn end_with_timestamp(&mut self, at: SystemTime) {
        if let Some(open) = self.open.take() {
            open.end(at);
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

    use opentelemetry::trace::{Event, Link, SpanId, TraceFlags};
    use opentelemetry::{Array, InstrumentationScope, StringValue};
    use opentelemetry_proto::tonic::trace::v1 as otlp;
    use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

    use super::*;
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
            name: "queue",
            from,
            to,
        };
        draft.set_attributes([object.clone(), wait.attribute()]);
        let beside = told.spans().pop().unwrap();
        let id: [u8; 8] = beside.span_id.as_slice().try_into().unwrap();
        let state = draft.span_context().trace_state().clone();
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
        draft.end_with_timestamp(to);
        let waited = told.spans().pop().unwrap();
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
