//! The cascade that a round belongs to: its place in a trace, the waits before it, and what its writes pass on.

mod origin;
mod waits;

use std::future::Future;

use opentelemetry::trace::TraceId;
use opentelemetry::{KeyValue, Value};
use setpoint_model::{Key, Meta};
use setpoint_proto::Lineage;
use setpoint_proto::cause::{self, Here};
use setpoint_proto::lineage::now_ns;
use setpoint_proto::policy::Policy;
use tokio::time::Instant;
use tracing::Span;

use crate::Ticket;
use origin::Origin;
pub(crate) use origin::rank;

tokio::task_local! {
    static LINEAGE: Lineage;
}

/// A round's place in the traces of its causes.
pub struct Cascade {
    span: Span,
    here: Here,
    lineage: Lineage,
}

impl Cascade {
    /// Puts `span`, which must not have been entered yet, where the ticket's causes say, and draws the waits before it.
    ///
    /// `looked` is when its worker had everything that it needs to decide.
    pub fn begin(span: Span, ticket: &Ticket<Key>, looked: Instant) -> Self {
        let origin = Origin::of(&ticket.causes, now_ns(), Policy::get().trace_age);
        let waits = origin.parent().and_then(|(write, parent)| {
            cause::adopt(&span, parent);
            let is_drawn = parent.is_sampled();
            is_drawn.then(|| waits::between(write, ticket, looked))
        });
        let namespace = cause::in_namespace(&ticket.key.namespace);
        let attempt = KeyValue::new("setpoint.attempt", i64::from(ticket.attempt));
        let here = Here::of(&span);
        here.link(origin.links);
        let waits = waits.into_iter().flatten();
        here.describe(namespace.into_iter().chain([attempt]).chain(waits));
        Self {
            span,
            here,
            lineage: origin.lineage,
        }
    }

    /// Says which state of which object the round is about.
    pub fn about(&self, kind: &str, meta: &Meta) {
        let Meta {
            key,
            uid,
            revision,
            generation,
            ..
        } = meta;
        self.here.describe([
            KeyValue::new(format!("k8s.{kind}.name"), key.name.clone()),
            KeyValue::new(format!("k8s.{kind}.uid"), uid.clone()),
            KeyValue::new("setpoint.generation", *generation),
            KeyValue::new("setpoint.revision", revision.to_string()),
        ]);
    }

    /// Says more about the round.
    pub fn label(&self, key: &'static str, value: impl Into<Value>) {
        self.here.describe([KeyValue::new(key, value)]);
    }

    /// Says how the round ended.
    pub fn ended(&self, outcome: &'static str, error: Option<&dyn std::fmt::Display>) {
        self.label("setpoint.outcome", outcome);
        if let Some(error) = error {
            cause::fail(&self.span, error.to_string());
        }
    }

    /// Does the round's work: everything that it writes belongs to the cascade. Work that is spawned inside does not.
    ///
    /// What is done in it is in spans that name [`Self::span`] as their parent: that one is not entered, since each
    /// poll would do so anew.
    pub async fn run<F: Future>(&self, work: F) -> F::Output {
        LINEAGE.scope(self.lineage, work).await
    }

    /// The round's span.
    pub const fn span(&self) -> &Span {
        &self.span
    }

    /// The trace that it belongs to; `None` where nobody traces.
    pub fn trace_id(&self) -> Option<TraceId> {
        self.here.trace_id()
    }
}

/// Does work that belongs to a cascade although its round may be over.
pub(crate) async fn belonging<F: Future>(lineage: Lineage, work: F) -> F::Output {
    LINEAGE.scope(lineage, work).await
}

/// Where writes that are made later, but because of what this span does, stand.
pub(crate) fn lineage_at(here: &Here) -> Lineage {
    let lineage = lineage();
    Lineage {
        traceparent: here.traceparent().or(lineage.traceparent),
        ..lineage
    }
}

/// Where writes made now stand; where a cascade begins, nothing is known.
pub(crate) fn lineage() -> Lineage {
    LINEAGE.try_get().unwrap_or_default()
}
