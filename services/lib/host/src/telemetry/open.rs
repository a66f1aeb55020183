//! What is known of a span that has not ended yet.

use std::ops::Range;

use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanBuilder, SpanContext, SpanKind, Status};
use opentelemetry_sdk::trace::{IdGenerator as _, RandomIdGenerator};
use setpoint_proto::here::RPC_SYSTEM;
use setpoint_proto::lineage::{nanoseconds, now_ns};
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
        let start_ns = builder.start_time.map_or_else(now_ns, nanoseconds);
        Self {
            parts,
            span: Encoded::begin(context, parent, &builder.name, kind.clone(), start_ns),
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
            self.draw_beside(context, &wait);
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
    fn draw_beside(&mut self, context: &SpanContext, wait: &Wait<'_>) {
        let id = RandomIdGenerator::default().new_span_id();
        let (trace, flags) = (context.trace_id(), context.trace_flags());
        let context = SpanContext::new(trace, id, flags, false, context.trace_state().clone());
        let (parent, object) = (&self.parent, self.object.clone());
        self.span.add(|waited, to| {
            let kind = SpanKind::Internal;
            wire::beginning(&context, parent, wait.name(), kind, wait.from_ns, to);
            wire::time(field::END, wait.to_ns, to);
            to.extend_from_slice(&waited[object]);
            wire::parent(parent.span_id(), to);
        });
    }

    pub fn tell(&mut self, name: &str, at_ns: i64, with: &[KeyValue]) {
        if self.events.admits() {
            wire::event(name, at_ns, with, &mut self.span.fields);
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

    pub fn end(mut self, at_ns: i64) {
        let fields = &mut self.span.fields;
        wire::time(field::END, at_ns, fields);
        wire::count(field::DROPPED_ATTRIBUTES, self.attributes.dropped(), fields);
        wire::count(field::DROPPED_EVENTS, self.events.dropped(), fields);
        wire::count(field::DROPPED_LINKS, self.links.dropped(), fields);
        self.parts.end(self.span);
    }
}
