//! One span and one count per call, whatever becomes of it.

use setpoint_codec::Kind;
use setpoint_proto::cause::{self, Label as _};
use setpoint_proto::coordination::Lease;
use setpoint_proto::core::Event;
use setpoint_proto::lineage::{TRACEPARENT, TRACESTATE};
use setpoint_proto::{ApiError, Resource as _};
use tonic::metadata::MetadataMap;
use tracing::{Instrument as _, Span, info_span};

use crate::access::Verb;
use crate::metrics;
use crate::registry::Target;

/// What a call is about.
pub(super) struct About<'a> {
    pub verb: Verb,
    pub kind: &'static Kind,
    pub subresource: &'a str,
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
            span.label("error.type", error.reason.name());
            cause::fail(&span, error.message.clone());
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
        let parent = said(TRACEPARENT);
        if parent.is_none() && !self.begins_a_trace() {
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
            rpc.system = "grpc",
            rpc.service = "setpoint.v1.Objects",
            rpc.method = verb.method(),
            subresource,
        );
        if let Some(parent) = parent {
            cause::adopt_call(&span, parent, said(TRACESTATE));
        }
        span
    }

    /// Reads change nothing, and heartbeats mean nothing: as traces they would bury what people look for.
    fn begins_a_trace(&self) -> bool {
        let chatter = [Lease::TYPE_URL, Event::TYPE_URL];
        self.verb.writes() && !chatter.contains(&self.kind.type_url.as_str())
    }
}
