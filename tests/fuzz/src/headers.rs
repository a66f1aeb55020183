//! Headers of requests. The first byte selects the request, each line is a header.

use axum::body::Body;
use http::{HeaderName, HeaderValue, Method, Request};

use crate::dry;
use crate::stretch::stretch;

const REQUESTS: &[(Method, &str, &str)] = &[
    (Method::GET, "/api/v1/pods", ""),
    (
        Method::GET,
        "/apis/apps/v1/namespaces/default/deployments/web",
        "",
    ),
    (Method::GET, "/apis", ""),
    (Method::GET, "/openapi/v3", ""),
    (Method::GET, "/api/v1/pods?watch=true&timeoutSeconds=1", ""),
    (
        Method::POST,
        "/api/v1/namespaces/default/configmaps?dryRun=All",
        r#"{"metadata":{"name":"b"}}"#,
    ),
    (
        Method::PUT,
        "/api/v1/namespaces/default/configmaps/web?dryRun=All",
        r#"{"metadata":{"name":"web"}}"#,
    ),
    (
        Method::PATCH,
        "/api/v1/namespaces/default/configmaps/web?dryRun=All",
        r#"{"data":{"a":"c"}}"#,
    ),
    (
        Method::DELETE,
        "/api/v1/namespaces/default/configmaps/web?dryRun=All",
        "",
    ),
];

/// Sends the request; a write as a dry run.
pub fn run(input: &[u8]) {
    let Some((first, lines)) = input.split_first() else {
        return;
    };
    let (method, path, body) = &REQUESTS[usize::from(*first) % REQUESTS.len()];
    let mut request = Request::builder().method(method).uri(*path);
    for line in stretch(lines).split(|byte| *byte == b'\n').take(100) {
        request = match header(line) {
            Some((name, value)) => request.header(name, value),
            None => request,
        };
    }
    // gRPC has a target of its own.
    let request = request
        .body(Body::from(*body))
        .expect("path and headers are valid");
    let content = request.headers().get(http::header::CONTENT_TYPE);
    if !content.is_some_and(|content| content.as_bytes().starts_with(b"application/grpc")) {
        dry::send(request);
    }
}

fn header(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let name = HeaderName::from_bytes(&line[..colon]).ok()?;
    Some((
        name,
        HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?,
    ))
}
