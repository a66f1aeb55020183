//! One span and one count per request, whatever becomes of it.

use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, Method};
use setpoint_proto::cause;
use tracing::{Instrument as _, Span, field, info_span};

use super::resources::verb;
use super::route::Route;
use crate::metrics;

const TRACEPARENT: &str = "traceparent";

/// Wraps a request in its span, and counts it when its answer begins.
pub(super) async fn observe(mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let route = Route::of(request.uri().path());
    let span = span(&request, route.as_ref());
    let verb = route
        .as_ref()
        .and_then(|route| verb(request.method(), route, request.uri()));
    let writes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let name = verb.map_or(request.method().to_string(), |verb| verb.name().to_owned());
    if let Some(route) = route.clone() {
        request.extensions_mut().insert(route);
    }
    let answer = async {
        let mut response = next.run(request).await;
        if writes {
            tell_trace(response.headers_mut());
        }
        response
    };
    let response = answer.instrument(span.clone()).await;
    let code = response.status().as_u16();
    span.record("http.response.status_code", code);
    let (kind, part) = route
        .as_ref()
        .map_or((None, ""), |route| (Some(route.kind), &*route.subresource));
    metrics::requested(&name, kind, part, code, started.elapsed());
    response
}

fn span(request: &Request, route: Option<&Route>) -> Span {
    let method = request.method();
    let matched = request.extensions().get::<MatchedPath>();
    let template = match route {
        Some(route) => route.template(),
        None => matched.map_or("/", MatchedPath::as_str).to_owned(),
    };
    let span = info_span!(
        "request",
        otel.name = format!("{method} {template}"),
        otel.kind = "server",
        http.request.method = %method,
        http.route = template,
        http.response.status_code = field::Empty,
    );
    if let Some(parent) = request
        .headers()
        .get(TRACEPARENT)
        .and_then(|value| value.to_str().ok())
    {
        cause::adopt(&span, parent);
    }
    span
}

/// Whoever wrote can follow what comes of it.
fn tell_trace(headers: &mut HeaderMap) {
    let traceparent = cause::traceparent().and_then(|text| HeaderValue::try_from(text).ok());
    if let Some(traceparent) = traceparent {
        headers.insert(TRACEPARENT, traceparent);
    }
}
