//! One span and one count per call, whatever becomes of it.

use opentelemetry::KeyValue;
use setpoint_codec::Kind;
use setpoint_proto::coordination::Lease;
use setpoint_proto::core::Event;
use setpoint_proto::here::{self, RPC_SYSTEM};
use setpoint_proto::lineage::{TRACEPARENT, TRACESTATE};
use setpoint_proto::{ApiError, Caller, Here, Resource as _, Traceparent};
use tonic::metadata::MetadataMap;
use tracing::{Instrument as _, Span, info_span};

use crate::access::Verb;
use crate::metrics;
use crate::registry::Target;

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

    /// Does its work in its span, and counts it.
    pub(super) async fn observe<T>(
        self,
        metadata: &MetadataMap,
        work: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let counted = metrics::Request::begin(self.labels());
        let span = self.span(metadata);
        let outcome = work.instrument(span.clone()).await;
        let error = outcome.as_ref().err();
        if let Some(error) = error {
            let here = Here::of(&span);
            here.describe([KeyValue::new("error.type", error.reason.name())]);
            here.fail(error.message.clone());
        }
        let code = error.map_or(200, |error| error.reason.http());
        counted.answered(code);
        outcome
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

    fn span(&self, metadata: &MetadataMap) -> Span {
        let said = |name| metadata.get(name).and_then(|value| value.to_str().ok());
        let parent = said(TRACEPARENT).and_then(|text| text.parse::<Traceparent>().ok());
        if !self.is_drawn(parent.is_some()) {
            return Span::none();
        }
        let Self {
            verb,
            kind,
            subresource,
            ..
        } = self;
        let span = info_span!(
            "request",
            otel.name = format!("{} {}", verb.name(), kind.plural),
            otel.kind = "server",
        );
        if let Some(parent) = parent {
            here::adopt(&span, parent);
        }
        let subresource = Some(*subresource).filter(|name| !name.is_empty());
        let subresource = subresource.map(|name| KeyValue::new("setpoint.subresource", name));
        let call = [
            KeyValue::new(RPC_SYSTEM, "grpc"),
            KeyValue::new("rpc.service", "setpoint.v1.Objects"),
            KeyValue::new("rpc.method", verb.method()),
        ];
        let caller = said(TRACESTATE).and_then(Caller::of_call);
        let caller = caller.map(Caller::attribute);
        Here::of(&span).describe(call.into_iter().chain(subresource).chain(caller));
        span
    }

    /// Reads change nothing, and heartbeats mean nothing: as traces they would bury what people look for. What an Event
    /// tells is in the span of whom it is from.
    fn is_drawn(&self, below_another: bool) -> bool {
        match self.kind.type_url.as_str() {
            Event::TYPE_URL => false,
            Lease::TYPE_URL => below_another,
            _ => below_another || self.verb.writes(),
        }
    }
}
