//! The service `setpoint.v1.Metrics`: metrics that the adapter reads.

use std::slice;
use std::sync::Arc;

use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanBuilder, SpanKind};
use setpoint_proto::custom_metrics::MetricValueList;
use setpoint_proto::external_metrics::ExternalMetricValueList;
use setpoint_proto::setpoint::metrics_server::Metrics;
use setpoint_proto::setpoint::{CustomMetricRequest, ExternalMetricRequest};
use setpoint_proto::{ApiError, Reason};
use setpoint_telemetry::{RPC_SYSTEM, Span};
use tonic::{Request, Response, Status};

use super::method::{CUSTOM_METRICS, EXTERNAL_METRICS, Method};
use super::request::{Caller, open};
use super::telemetry::seat;
use crate::metrics::{Request as Counted, RequestLabels};
use crate::prometheus_adapter::{CUSTOM, CUSTOM_VERSIONS, EXTERNAL, EXTERNAL_VERSION};
use crate::registry::Registry;
use crate::request::flow_control::Reading;
use crate::request::{Attributes, Resource, audit};

/// The implementation over a registry.
pub(super) struct Service {
    registry: Arc<Registry>,
}

impl Service {
    pub(super) fn new(registry: Arc<Registry>) -> Self {
        Self { registry }
    }

    async fn read_custom(
        &self,
        request: Request<CustomMetricRequest>,
    ) -> Result<MetricValueList, ApiError> {
        let (caller, request) = open(request, |message| message.trace.take())?;
        let read = async {
            let adapter = self
                .registry
                .adapter()
                .filter(|adapter| adapter.has_custom());
            let adapter = adapter.ok_or_else(no_custom)?;
            adapter.custom(self.registry.cache(), &request).await
        };
        let resource = Resource {
            group: CUSTOM.to_owned(),
            version: CUSTOM_VERSIONS[0].to_owned(),
            resource: request.resource.clone(),
            subresource: request.metric.clone(),
            namespace: request.namespace.clone(),
            name: request.name.clone(),
        };
        serve(&self.registry, CUSTOM_METRICS, resource, caller, read).await
    }

    async fn read_external(
        &self,
        request: Request<ExternalMetricRequest>,
    ) -> Result<ExternalMetricValueList, ApiError> {
        let (caller, request) = open(request, |message| message.trace.take())?;
        let read = async {
            let adapter = self
                .registry
                .adapter()
                .filter(|adapter| adapter.has_external());
            let adapter = adapter.ok_or_else(|| no_external(&request.metric))?;
            adapter.external(&request).await
        };
        let resource = Resource {
            group: EXTERNAL.to_owned(),
            version: EXTERNAL_VERSION.to_owned(),
            resource: request.metric.clone(),
            namespace: request.namespace.clone(),
            ..Resource::default()
        };
        serve(&self.registry, EXTERNAL_METRICS, resource, caller, read).await
    }
}

/// Runs the work of a call, if it is allowed and while holding a seat, and counts it. Below a span of the caller it has
/// one.
async fn serve<T>(
    registry: &Registry,
    method: Method,
    resource: Resource,
    caller: Caller,
    work: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    let group = resource.group.clone();
    let asked = Arc::new(Attributes::of_resource(method.permission, resource));
    let caller = caller
        .identified(registry, slice::from_ref(&*asked))
        .await?;
    let counted = Counted::begin(RequestLabels {
        verb: None,
        method: "GET",
        dry_run: false,
        kind: None,
        subresource: "",
        namespace: "",
        name: "",
    });
    let context = &caller.context;
    let span = match context.trace.parent {
        None => Span::none(),
        parent => {
            let rpc = [
                KeyValue::new(RPC_SYSTEM, "grpc"),
                KeyValue::new("rpc.service", "setpoint.v1.Metrics"),
            ];
            let span = SpanBuilder::from_name(format!("get {group}"));
            Span::start(
                span.with_kind(SpanKind::Server).with_attributes(rpc),
                parent,
            )
        }
    };
    let outcome = span.in_scope(async {
        audit::trace();
        let _seat = seat(registry, &caller, asked.clone(), Reading::default()).await?;
        registry.authorize(context, &asked).await?;
        work.await
    });
    let outcome = outcome.await;
    let error = outcome.as_ref().err();
    if let Some(error) = error {
        span.set_error(error.message.clone());
    }
    counted.answered(error.map_or(200, |error| error.code()));
    outcome
}

/// Returns the error of upstream's clients for a cluster without metrics of objects.
fn no_custom() -> ApiError {
    let message = format!("no custom metrics API ({CUSTOM}) registered");
    ApiError::new(Reason::NotFound, message)
}

/// Returns the error of upstream's clients for a cluster without metrics of no object.
fn no_external(metric: &str) -> ApiError {
    let message =
        format!("the server could not find the requested resource (get {metric}.{EXTERNAL})");
    ApiError::new(Reason::NotFound, message)
}

#[tonic::async_trait]
impl Metrics for Service {
    async fn custom(
        &self,
        request: Request<CustomMetricRequest>,
    ) -> Result<Response<MetricValueList>, Status> {
        Ok(Response::new(self.read_custom(request).await?))
    }

    async fn external(
        &self,
        request: Request<ExternalMetricRequest>,
    ) -> Result<Response<ExternalMetricValueList>, Status> {
        Ok(Response::new(self.read_external(request).await?))
    }
}
