//! The cascade that a round belongs to: its place in a trace, the waits before it, and what its writes pass on.

mod origin;
mod waits;

use std::future::Future;

use opentelemetry::trace::SpanBuilder;
use opentelemetry::{KeyValue, Value};
use setpoint_model::{Key, Meta};
use setpoint_proto::here::in_namespace;
use setpoint_proto::lineage::now_ns;
use setpoint_proto::policy::Policy;
use setpoint_proto::{Here, Lineage, OBJECT};
use tokio::time::Instant;

use crate::Ticket;
use origin::Origin;
pub(crate) use origin::rank;

tokio::task_local! {
    static LINEAGE: Lineage;
}

/// A round's place in the traces of its causes.
pub struct Cascade {
    here: Here,
    lineage: Lineage,
}

impl Cascade {
    /// Begins the round's span where the ticket's causes say, and draws the waits before it.
    ///
    /// `looked` is when its worker had everything that it needs to decide.
    pub fn begin(mut round: SpanBuilder, ticket: &Ticket<Key>, looked: Instant) -> Self {
        let origin = Origin::of(&ticket.causes, now_ns(), Policy::get().trace_age);
        let parent = origin.parent();
        let drawn = parent.filter(|(_, span)| span.is_sampled());
        let waits = drawn.map(|(write, _)| waits::between(write, ticket, looked));
        let object = KeyValue::new(OBJECT, ticket.key.to_string());
        let attempt = KeyValue::new("setpoint.attempt", i64::from(ticket.attempt));
        let known = [object, attempt].into_iter();
        let known = known.chain(in_namespace(&ticket.key.namespace));
        let attributes = round.attributes.get_or_insert_default();
        attributes.extend(known.chain(waits.into_iter().flatten()));
        let here = Here::begin(round, parent.map(|(_, span)| span));
        here.link(origin.links);
        Self {
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
            self.here.fail(error.to_string());
        }
    }

    /// Does the round's work: everything that it writes belongs to the cascade. Work that is spawned inside does not.
    pub async fn run<F: Future>(&self, work: F) -> F::Output {
        LINEAGE.scope(self.lineage, self.here.during(work)).await
    }

    /// The round's span.
    pub const fn here(&self) -> &Here {
        &self.here
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
