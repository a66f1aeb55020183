//! Records a span and the metrics of each request.

use axum::extract::{MatchedPath, Request};
use axum::response::Response;
use http::header::USER_AGENT;
use http::{HeaderMap, HeaderValue, Method};
use setpoint_codec::rest::is_connect;
use setpoint_proto::Traceparent;
use setpoint_proto::trace::TRACEPARENT;
use setpoint_telemetry as telemetry;
use tracing::{Instrument as _, Span, field, info_span};

use crate::metrics;
use crate::request::{RequestInfo, Route};

/// Runs a request in its span, and counts it when the response begins.
pub(super) async fn observe<F: Future<Output = Response>>(
    info: &RequestInfo,
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    let route = info.route.as_deref();
    let writes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let parent = remote_parent(request.headers());
    // Reads are traced only as part of a trace of their caller: they would outnumber the traces of writes.
    let span = match writes || parent.is_some() {
        true => span(&request, route, parent),
        false => Span::none(),
    };
    let method = request.method().clone();
    let counted = metrics::Request::begin(metrics::RequestLabels {
        verb: info.verb,
        method: match route {
            Some(route) if is_connect(&route.subresource) => "CONNECT",
            _ => method.as_str(),
        },
        dry_run: info.is_dry_run(),
        ..labels(route)
    });
    let response = async {
        let mut response = next(request).await;
        if writes {
            set_traceparent(response.headers_mut(), parent);
        }
        response
    };
    let response = response.instrument(span.clone()).await;
    let code = response.status().as_u16();
    span.record("http.response.status_code", code);
    counted.answered(code);
    if code >= 500 {
        telemetry::Span::of(&span).set_error(response.status().to_string());
    }
    response
}

/// Returns the labels of a request without its verb.
pub(super) fn labels(route: Option<&Route>) -> metrics::RequestLabels<'_> {
    metrics::RequestLabels {
        verb: None,
        method: "",
        dry_run: false,
        kind: route.map(|route| route.kind),
        subresource: route.map_or("", |route| &route.subresource),
        namespace: route.map_or("", |route| &route.namespace),
        name: route.map_or("", |route| &route.name),
    }
}

fn span(request: &Request, route: Option<&Route>, parent: Option<Traceparent>) -> Span {
    let method = request.method();
    let matched = request.extensions().get::<MatchedPath>();
    let template = match route {
        Some(route) => route.template(),
        None => matched.map_or("/", MatchedPath::as_str).to_owned(),
    };
    let agent = request.headers().get(USER_AGENT);
    let agent = agent.and_then(|agent| agent.to_str().ok());
    let span = info_span!(
        "request",
        otel.name = format!("{method} {template}"),
        otel.kind = "server",
        http.request.method = %method,
        http.route = template,
        url.path = request.uri().path(),
        user_agent.original = agent,
        http.response.status_code = field::Empty,
    );
    if let Some(parent) = parent {
        telemetry::set_remote_parent(&span, parent);
    }
    span
}

/// Returns the span of the caller.
fn remote_parent(headers: &HeaderMap) -> Option<Traceparent> {
    headers.get(TRACEPARENT)?.to_str().ok()?.parse().ok()
}

/// Sets the header with the span of the request, so that a writer can find its trace; without tracing, the caller's
/// span.
fn set_traceparent(headers: &mut HeaderMap, parent: Option<Traceparent>) {
    let span = telemetry::Span::current().traceparent().or(parent);
    let value = span.and_then(|span| HeaderValue::try_from(span.to_string()).ok());
    if let Some(value) = value {
        headers.insert(TRACEPARENT, value);
    }
}
