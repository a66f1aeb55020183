//! Authorizes each call, and records its span and metrics.

use std::sync::Arc;

use futures::future::BoxFuture;
use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanBuilder, SpanKind};
use setpoint_fairness::ListRequest;
use setpoint_kinds::{self as kinds, Strategy, Writes};
use setpoint_proto::ApiError;
use setpoint_telemetry::{RPC_SYSTEM, Span};

use super::method::{Method, Scope};
use super::request::Caller;
use crate::metrics;
use crate::registry::{Registry, RequestContext, Target};
use crate::request::flow_control::{Admission, CountedWatch, Initialization, Reading};
use crate::request::{Attributes, audit};

/// A call of a method.
pub(super) struct Call<'a> {
    method: Method,
    /// For a method of many kinds, what stands for all of them in metrics.
    target: &'a Target,
    /// The field selector and the label selector of a collection.
    selectors: [&'a str; 2],
    /// The namespaces of a call about all kinds; an empty name is all of them.
    namespaces: &'a [String],
    dry_run: bool,
    reading: Reading,
}

impl<'a> Call<'a> {
    pub(super) fn new(method: Method, target: &'a Target) -> Self {
        Self {
            method,
            target,
            selectors: [""; 2],
            namespaces: &[],
            dry_run: false,
            reading: Reading::default(),
        }
    }

    /// Sets what it reads of a collection.
    pub(super) fn reading(self, list: ListRequest) -> Self {
        let reading = Reading::of_list(self.target.served, list);
        Self { reading, ..self }
    }

    /// Sets the selectors of a collection; that of fields may select one name.
    pub(super) fn selected_by(self, fields: &'a str, labels: &'a str) -> Self {
        let selectors = [fields, labels];
        Self { selectors, ..self }
    }

    /// Sets the namespaces of a call about all kinds; without any, it is about all namespaces.
    pub(super) fn within(self, namespaces: &'a [String]) -> Self {
        Self { namespaces, ..self }
    }

    /// Runs the work of the call in its span, if it is allowed and while holding a seat, and counts it.
    pub(super) async fn serve<T>(
        self,
        registry: &Registry,
        caller: &Caller,
        work: BoxFuture<'_, Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let (served, _seat) = self.serve_seated(registry, caller, work).await?;
        Ok(served)
    }

    /// Like [`Self::serve`], for a watch: returns the seat that it holds until its initial state is sent. That has an
    /// event at its end if it `is_marked`.
    pub(super) async fn serve_watch<T>(
        self,
        registry: &Registry,
        caller: &Caller,
        work: BoxFuture<'_, Result<T, ApiError>>,
        is_marked: bool,
    ) -> Result<(T, Initialization), ApiError> {
        let (served, seat) = self.serve_seated(registry, caller, work).await?;
        Ok((served, Initialization::of(&seat, is_marked)))
    }

    async fn serve_seated<T>(
        mut self,
        registry: &Registry,
        caller: &Caller,
        work: BoxFuture<'_, Result<T, ApiError>>,
    ) -> Result<(T, Admission), ApiError> {
        let context = &caller.context;
        self.dry_run = context.dry_run;
        let counted = metrics::Request::begin(self.info());
        let span = self.span(context);
        let outcome = span.in_scope(async {
            audit::trace();
            let seat = self.seat(registry, caller).await?;
            self.authorize(registry, context).await?;
            Ok::<_, ApiError>((work.await?, seat))
        });
        let outcome = outcome.await;
        let error = outcome.as_ref().err();
        if let Some(error) = error {
            span.set_attributes([KeyValue::new("error.type", error.reason.name())]);
            span.set_error(error.message.clone());
        }
        let code = error.map_or(200, |error| error.code());
        counted.answered(code);
        outcome
    }

    /// Returns the caller with its user, who may act as another for what the call asks.
    ///
    /// # Errors
    /// `Forbidden` if it may not act as that one.
    pub(super) async fn identified(
        &self,
        registry: &Registry,
        caller: Caller,
    ) -> Result<Caller, ApiError> {
        // Of what is asked kind by kind, only rules for all of them allow that.
        let asked = match self.method.scope {
            Scope::EachKind => self.of_all_kinds(),
            _ => self.asked(),
        };
        caller.identified(registry, &asked).await
    }

    /// Authorizes the call as the table of methods says. What only the work knows, that authorizes itself.
    pub(super) async fn authorize(
        &self,
        registry: &Registry,
        context: &RequestContext,
    ) -> Result<(), ApiError> {
        for asked in self.asked() {
            registry.authorize(context, &asked).await?;
        }
        Ok(())
    }

    /// Returns what the call asks for, as far as that is known before its work.
    fn asked(&self) -> Vec<Attributes> {
        let verb = self.method.permission;
        match self.method.scope {
            Scope::Target => {
                let [fields, labels] = self.selectors;
                let asked = Attributes::on_target(verb, self.target);
                vec![asked.selected_by(fields, labels)]
            }
            Scope::AllKinds => self.of_all_kinds(),
            Scope::EachKind | Scope::Metric | Scope::Path => Vec::new(),
        }
    }

    fn of_all_kinds(&self) -> Vec<Attributes> {
        let verb = self.method.permission;
        if self.namespaces.is_empty() {
            return vec![Attributes::of_all_kinds(verb, "")];
        }
        let namespaces = self.namespaces.iter();
        let asked = namespaces.map(|one| Attributes::of_all_kinds(verb, one));
        asked.collect()
    }

    /// Takes a seat of flow control, as the same request over HTTP would.
    pub(super) async fn seat(
        &self,
        registry: &Registry,
        caller: &Caller,
    ) -> Result<Admission, ApiError> {
        let asked = match self.method.scope {
            Scope::EachKind => self.of_all_kinds(),
            _ => self.asked(),
        };
        let asked = asked.into_iter().next().unwrap_or_default();
        seat(registry, caller, Arc::new(asked), self.reading).await
    }

    /// Counts a watch as open.
    pub(super) fn counted(&self, registry: &Registry) -> CountedWatch {
        let asked = self.asked().into_iter().next().unwrap_or_default();
        registry.flow_control().begin_watch(&asked)
    }

    /// Returns the labels of its metrics.
    pub(super) fn info(&self) -> metrics::RequestLabels<'a> {
        let target = self.target;
        metrics::RequestLabels {
            verb: Some(self.method.verb),
            method: "",
            dry_run: self.dry_run,
            kind: Some(target.served),
            subresource: target.subresource.name(),
            namespace: &target.namespace,
            name: &target.name,
        }
    }

    fn span(&self, context: &RequestContext) -> Span {
        let parent = context.trace.parent;
        if !self.is_recorded(parent.is_some()) {
            return Span::none();
        }
        let (verb, kind) = (self.method.verb, self.target.served);
        let subresource = Some(self.target.subresource.name()).filter(|name| !name.is_empty());
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

    /// Returns whether the call has a span. Reads and heartbeats have one only below a span of the caller, since their
    /// traces would outnumber the others. Writes of Events have none, since the span that emits an Event has its text.
    fn is_recorded(&self, has_parent: bool) -> bool {
        match kinds::find(self.target.kind).map(Strategy::writes) {
            Some(Writes::Reports) => false,
            Some(Writes::Heartbeats) => has_parent,
            Some(Writes::Changes) | None => has_parent || self.method.verb.writes(),
        }
    }
}

/// Takes a seat of flow control, and holds it until the last clone is dropped. The response will have the headers of
/// its schema, that of a rejected call, too.
///
/// # Errors
/// `TooManyRequests` when a queue is full or the wait times out.
pub(super) async fn seat(
    registry: &Registry,
    caller: &Caller,
    asked: Arc<Attributes>,
    reading: Reading,
) -> Result<Admission, ApiError> {
    let control = registry.flow_control();
    let user = &caller.context.user;
    let entered = control.enter(registry.cache(), user, &asked, reading, None);
    let (admission, entered) = entered.await;
    if let Some(matched) = caller.extensions.get() {
        admission.note_in(matched);
    }
    entered.map(|()| admission)
}
