//! One span and one count per call, whatever becomes of it.

use std::sync::Arc;

use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanBuilder, SpanKind};
use setpoint_codec::Kind;
use setpoint_host::serve::Peer;
use setpoint_model::Verb;
use setpoint_proto::ApiError;
use setpoint_telemetry::{RPC_SYSTEM, Span};
use tonic::Extensions;

use crate::flow_control::{Flow, FlowControl, Seat};
use crate::kinds::{self, Strategy, Writes};
use crate::metrics;
use crate::registry::{RequestContext, Target};

/// What a call is about.
pub(super) struct About<'a> {
    pub verb: Verb,
    pub kind: &'static Kind,
    pub subresource: &'static str,
    pub namespace: &'a str,
    pub name: &'a str,
    pub dry_run: bool,
}

impl<'a> About<'a> {
    pub(super) fn target(verb: Verb, target: &'a Target) -> Self {
        Self {
            verb,
            kind: target.kind,
            subresource: target.subresource.name(),
            namespace: &target.namespace,
            name: &target.name,
            dry_run: false,
        }
    }

    pub(super) fn dry(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }

    /// Takes a seat and does its work in its span, and counts it.
    pub(super) async fn observe<T>(
        self,
        extensions: &Extensions,
        context: &RequestContext,
        work: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let counted = metrics::Request::begin(self.labels());
        let span = self.span(context);
        let outcome = span.in_scope(async {
            let _seat = self.seat(extensions).await?;
            work.await
        });
        let outcome = outcome.await;
        let error = outcome.as_ref().err();
        if let Some(error) = error {
            span.set_attributes([KeyValue::new("error.type", error.reason.name())]);
            span.set_error(error.message.clone());
        }
        let code = error.map_or(200, |error| error.reason.http());
        counted.answered(code);
        outcome
    }

    /// Takes a seat for the call.
    pub(super) async fn seat(&self, extensions: &Extensions) -> Result<Option<Seat>, ApiError> {
        let Some(control) = extensions.get::<Arc<FlowControl>>() else {
            return Ok(None);
        };
        let peer = extensions.get::<Peer>().map(|Peer(peer)| *peer);
        control
            .seat(self.verb, self.kind, self.namespace, Flow::Connection(peer))
            .await
    }

    /// What the labels of its metrics say.
    pub(super) fn labels(&self) -> metrics::About<'a> {
        metrics::About {
            verb: Some(self.verb),
            method: "",
            dry_run: self.dry_run,
            kind: Some(self.kind),
            subresource: self.subresource,
            namespace: self.namespace,
            name: self.name,
        }
    }

    fn span(&self, context: &RequestContext) -> Span {
        let parent = context.trace.parent;
        if !self.is_recorded(parent.is_some()) {
            return Span::none();
        }
        let Self {
            verb,
            kind,
            subresource,
            ..
        } = self;
        let subresource = Some(*subresource).filter(|name| !name.is_empty());
        let subresource = subresource.map(|name| KeyValue::new("setpoint.subresource", name));
        let rpc = [
            KeyValue::new(RPC_SYSTEM, "grpc"),
            KeyValue::new("rpc.service", "setpoint.v1.Objects"),
            KeyValue::new("rpc.method", verb.method()),
        ];
        let attributes = rpc.into_iter().chain(subresource);
        let span = SpanBuilder::from_name(format!("{} {}", verb.name(), kind.plural))
            .with_kind(SpanKind::Server)
            .with_attributes(attributes);
        Span::start(span, parent)
    }

    /// Whether the call has a span. Reads and heartbeats have none of their own, since their traces would bury the
    /// others, and Events never, since the span that they are from has their text.
    fn is_recorded(&self, below_another: bool) -> bool {
        match kinds::find(self.kind).map(Strategy::writes) {
            Some(Writes::Reports) => false,
            Some(Writes::Heartbeats) => below_another,
            Some(Writes::Changes) | None => below_another || self.verb.writes(),
        }
    }
}
