//! What is known of a span that has not ended yet.

use std::ops::Range;
use std::time::SystemTime;

use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanBuilder, SpanContext, SpanKind, Status};
use opentelemetry_sdk::trace::{IdGenerator as _, RandomIdGenerator};
use setpoint_proto::here::RPC_SYSTEM;
use setpoint_proto::lineage::moment;
use setpoint_proto::{Caller, OBJECT, Wait};

use super::encoded::Encoded;
use super::parts::Parts;
use super::wire::{self, field};

/// How many attributes, events and links a span keeps: OpenTelemetry's limit where nothing else is said.
pub(super) const MOST: u32 = 128;

/// A span that has not ended yet, in the bytes that it will travel in.
#[derive(Debug)]
pub(super) struct Open {
    parts: Parts,
    /// Of which spans beside it are children, too.
    parent: SpanContext,
    pub(super) span: Encoded,
    kind: SpanKind,
    /// Where the attribute stands that says which object it is about.
    object: Range<usize>,
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

impl Open {
    /// Begins a span of a part below another one.
    pub fn begin(
        parts: Parts,
        context: &SpanContext,
        parent: &SpanContext,
        builder: &SpanBuilder,
    ) -> Self {
        parts.begin(context.span_id(), parent.span_id());
        let kind = builder.span_kind.clone().unwrap_or(SpanKind::Internal);
        let start = builder.start_time.unwrap_or_else(SystemTime::now);
        Self {
            parts,
            span: Encoded::begin(context, parent, &builder.name, kind.clone(), start),
            parent: parent.clone(),
            kind,
            object: 0..0,
            attributes: Count::default(),
            events: Count::default(),
            links: Count::default(),
        }
    }

    pub fn set(&mut self, context: &SpanContext, attribute: &KeyValue) {
        if let Some(caller) = Caller::of_attribute(attribute) {
            self.span.caller = Some(caller);
        } else if let Some(wait) = Wait::of_attribute(attribute) {
            self.parts.pass_by(self.beside(context, &wait));
        } else {
            self.describe(attribute);
        }
    }

    fn describe(&mut self, attribute: &KeyValue) {
        self.span.is_call |= self.kind != SpanKind::Server && attribute.key.as_str() == RPC_SYSTEM;
        let start = self.span.fields.len();
        if self.attributes.admits() {
            wire::attribute(field::ATTRIBUTES, attribute, &mut self.span.fields);
        }
        if attribute.key.as_str() == OBJECT {
            self.object = start..self.span.fields.len();
        }
    }

    /// A wait of this span, as a span beside it.
    fn beside(&self, context: &SpanContext, wait: &Wait<'_>) -> Encoded {
        let id = RandomIdGenerator::default().new_span_id();
        let (trace, flags) = (context.trace_id(), context.trace_flags());
        let context = SpanContext::new(trace, id, flags, false, context.trace_state().clone());
        let kind = SpanKind::Internal;
        let [from, to] = [wait.from_ns, wait.to_ns].map(moment);
        let mut span = Encoded::begin(&context, &self.parent, wait.name(), kind, from);
        wire::time(field::END, to, &mut span.fields);
        let object = &self.span.fields[self.object.clone()];
        span.fields.extend_from_slice(object);
        span
    }

    pub fn tell(&mut self, name: &str, at: SystemTime, with: &[KeyValue]) {
        if self.events.admits() {
            wire::event(name, at, with, &mut self.span.fields);
        }
    }

    pub fn link(&mut self, to: &SpanContext, with: &[KeyValue]) {
        if self.links.admits() {
            wire::link(to, with, &mut self.span.fields);
        }
    }

    pub fn status(&mut self, status: &Status) {
        wire::status(status, &mut self.span.fields);
    }

    /// Of two names the last one counts, as of any field that is there twice.
    pub fn name(&mut self, name: &str) {
        wire::text(field::NAME, name, &mut self.span.fields);
    }

    pub fn end(mut self, at: SystemTime) {
        let fields = &mut self.span.fields;
        wire::time(field::END, at, fields);
        wire::count(field::DROPPED_ATTRIBUTES, self.attributes.dropped(), fields);
        wire::count(field::DROPPED_EVENTS, self.events.dropped(), fields);
        wire::count(field::DROPPED_LINKS, self.links.dropped(), fields);
        self.parts.end(self.span);
    }
}
