//! One span and one count per request, whatever becomes of it.

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;
use http::header::USER_AGENT;
use http::{HeaderMap, HeaderValue, Method, Uri};
use setpoint_proto::Traceparent;
use setpoint_proto::trace::TRACEPARENT;
use setpoint_telemetry as telemetry;
use tracing::{Instrument as _, Span, field, info_span};

use super::query::Query;
use super::resources::verb;
use super::route::Route;
use crate::metrics;

/// Wraps a request in its span, and counts it when its answer begins.
pub(super) async fn observe(mut request: Request, next: Next) -> Response {
    let route = Route::of(request.uri().path());
    let verb = route
        .as_ref()
        .and_then(|route| verb(request.method(), route, request.uri()));
    let writes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let asked = asked(request.headers());
    // Reads change nothing: as traces of their own they would bury what people look for.
    let span = match writes || asked.is_some() {
        true => span(&request, route.as_ref(), asked),
        false => Span::none(),
    };
    let method = request.method().clone();
    let dry_run = is_dry_run(request.uri());
    if let Some(route) = route.clone() {
        request.extensions_mut().insert(route);
    }
    let counted = metrics::Request::begin(metrics::About {
        verb,
        method: method.as_str(),
        dry_run,
        ..about(route.as_ref())
    });
    let response = async {
        let mut response = next.run(request).await;
        if writes {
            tell_trace(response.headers_mut(), asked);
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

/// What the labels of its metrics say.
pub(super) fn about(route: Option<&Route>) -> metrics::About<'_> {
    metrics::About {
        verb: None,
        method: "",
        dry_run: false,
        kind: route.map(|route| route.kind),
        subresource: route.map_or("", |route| &route.subresource),
        namespace: route.map_or("", |route| &route.namespace),
        name: route.map_or("", |route| &route.name),
    }
}

fn is_dry_run(uri: &Uri) -> bool {
    let query = uri.query().unwrap_or_default();
    query.contains("dryRun") && Query::parse(query).get("dryRun").is_some()
}

fn span(request: &Request, route: Option<&Route>, asked: Option<Traceparent>) -> Span {
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
    if let Some(parent) = asked {
        telemetry::set_remote_parent(&span, parent);
    }
    span
}

/// The span that the request is to be below.
fn asked(headers: &HeaderMap) -> Option<Traceparent> {
    headers.get(TRACEPARENT)?.to_str().ok()?.parse().ok()
}

/// Whoever wrote can follow what comes of it; where nobody traces here, in the trace that they brought.
fn tell_trace(headers: &mut HeaderMap, asked: Option<Traceparent>) {
    let span = telemetry::Span::current().traceparent().or(asked);
    let told = span.and_then(|span| HeaderValue::try_from(span.to_string()).ok());
    if let Some(told) = told {
        headers.insert(TRACEPARENT, told);
    }
}
