//! custom.metrics.k8s.io and external.metrics.k8s.io.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::HeaderMap;
use setpoint_codec::Object;
use setpoint_proto::custom_metrics::MetricValueList;
use setpoint_proto::setpoint::{CustomMetricRequest, ExternalMetricRequest};
use setpoint_proto::{ApiError, custom_metrics_v1beta1 as v1beta1};

use super::accept::{self, Form, Lacking, Media};
use super::response::{self, ApiResponse, ErrorFormat, ErrorResponse};
use super::{encoding, not_found};
use crate::prometheus_adapter::{
    Adapter, CUSTOM, CUSTOM_VERSIONS, EXTERNAL, EXTERNAL_VERSION, NAMESPACES,
};
use crate::registry::Registry;
use crate::request::Query;

/// Returns the routes of the groups that the adapter has metrics for.
pub(super) fn router(adapter: Option<&Adapter>) -> Router<Arc<Registry>> {
    let mut router = Router::new();
    if adapter.is_some_and(Adapter::has_custom) {
        let group = format!("/apis/{CUSTOM}/{{version}}");
        router = router
            .route(
                &format!("{group}/{{resource}}/{{name}}/{{metric}}"),
                get(of_cluster),
            )
            .route(
                &format!("{group}/namespaces/{{namespace}}/metrics/{{metric}}"),
                get(of_namespace),
            )
            .route(
                &format!("{group}/namespaces/{{namespace}}/{{resource}}/{{name}}/{{metric}}"),
                get(in_namespace),
            );
    }
    if adapter.is_some_and(Adapter::has_external) {
        let path =
            format!("/apis/{EXTERNAL}/{EXTERNAL_VERSION}/namespaces/{{namespace}}/{{metric}}");
        router = router.route(&path, get(external));
    }
    router
}

async fn of_cluster(
    state: State<Arc<Registry>>,
    Path((version, resource, name, metric)): Path<(String, String, String, String)>,
    query: Query,
    headers: HeaderMap,
) -> Response {
    let request = CustomMetricRequest {
        resource,
        name,
        metric,
        ..Default::default()
    };
    custom(state, &version, request, query, headers).await
}

async fn of_namespace(
    state: State<Arc<Registry>>,
    Path((version, name, metric)): Path<(String, String, String)>,
    query: Query,
    headers: HeaderMap,
) -> Response {
    let request = CustomMetricRequest {
        resource: NAMESPACES.to_owned(),
        name,
        metric,
        ..Default::default()
    };
    custom(state, &version, request, query, headers).await
}

async fn in_namespace(
    state: State<Arc<Registry>>,
    Path((version, namespace, resource, name, metric)): Path<(
        String,
        String,
        String,
        String,
        String,
    )>,
    query: Query,
    headers: HeaderMap,
) -> Response {
    let request = CustomMetricRequest {
        resource,
        namespace,
        name,
        metric,
        ..Default::default()
    };
    custom(state, &version, request, query, headers).await
}

async fn custom(
    State(registry): State<Arc<Registry>>,
    version: &str,
    mut request: CustomMetricRequest,
    query: Query,
    headers: HeaderMap,
) -> Response {
    let read = async {
        let version = CUSTOM_VERSIONS.into_iter().find(|known| *known == version);
        let version = version.ok_or_else(not_found)?;
        let adapter = registry.adapter().ok_or_else(not_found)?;
        let parameter = |name| query.get(name).unwrap_or_default().to_owned();
        request.label_selector = parameter("labelSelector");
        request.metric_label_selector = parameter("metricLabelSelector");
        let list = adapter.custom(registry.cache(), &request).await?;
        match version {
            "v1beta1" => encode(&before(list), &query, &headers),
            _ => encode(&list, &query, &headers),
        }
    };
    respond(read.await, &query, &headers)
}

async fn external(
    State(registry): State<Arc<Registry>>,
    Path((namespace, metric)): Path<(String, String)>,
    query: Query,
    headers: HeaderMap,
) -> Response {
    let read = async {
        let adapter = registry.adapter().ok_or_else(not_found)?;
        let request = ExternalMetricRequest {
            namespace,
            metric,
            metric_label_selector: query.get("labelSelector").unwrap_or_default().to_owned(),
            trace: None,
        };
        encode(&adapter.external(&request).await?, &query, &headers)
    };
    respond(read.await, &query, &headers)
}

fn respond(outcome: Result<ApiResponse, ApiError>, query: &Query, headers: &HeaderMap) -> Response {
    match outcome {
        Ok(response) => response.into_response(),
        Err(error) => ErrorResponse(error).in_format(ErrorFormat::of(query, headers)),
    }
}

/// Encodes a list of values in the form that the client accepts. There is no table of them.
fn encode(list: &dyn Object, query: &Query, headers: &HeaderMap) -> Result<ApiResponse, ApiError> {
    let lacking = Lacking {
        table: true,
        protobuf: false,
    };
    let format = accept::objects(headers, lacking)?;
    if format.form != Form::Whole {
        return Err(accept::not_acceptable());
    }
    let kind = list.kind();
    match format.media {
        Media::Protobuf => Ok(encoding::protobuf(
            &kind.api_version(),
            &kind.kind,
            &list.encode(),
        )),
        media => encoding::text(list.to_json(), media, response::is_pretty(query, headers)),
    }
}

/// Converts a list to the version before.
fn before(list: MetricValueList) -> v1beta1::MetricValueList {
    let items = list.items.into_iter().map(|item| v1beta1::MetricValue {
        described_object: item.described_object,
        metric_name: item.metric.name,
        timestamp: item.timestamp,
        window: item.window_seconds,
        value: item.value,
        selector: item.metric.selector,
    });
    v1beta1::MetricValueList {
        metadata: list.metadata,
        items: items.collect(),
    }
}
