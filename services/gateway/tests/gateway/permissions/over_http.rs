//! Questions as requests over HTTP, which change nothing: they name objects that do not exist, or have a body that is
//! no valid object.

use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;
use tonic::body::Body;
use tonic::transport::Channel;
use tower::{Service as _, ServiceExt as _};

use super::questions::{IMPERSONATE, Resources, Served};
use super::table::Question;

/// Selects no object.
const NONE: &str = "labelSelector=no%3Dobject";
const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// Returns the message if the gateway forbids what is asked for.
pub async fn refusal(channel: Channel, resources: &Resources, asked: &Question) -> Option<String> {
    let (status, body) = answer(channel, request(resources, asked)).await;
    assert_ne!(status, StatusCode::UNAUTHORIZED, "{asked:?}");
    assert_ne!(status, StatusCode::TOO_MANY_REQUESTS, "{asked:?}");
    let message = match asked.verb.as_str() {
        // Of several verbs, the text has the one that was asked for last.
        IMPERSONATE => "cannot impersonate".to_owned(),
        _ => super::text_of(asked),
    };
    (status == StatusCode::FORBIDDEN && body.contains(&message)).then_some(body)
}

/// Returns the code of the answer to a request and, if it is an error, the message. The events of a watch are not read.
pub async fn answer(channel: Channel, request: Request<Body>) -> (StatusCode, String) {
    let (status, body) = send(channel, request).await;
    if status.is_success() {
        return (status, String::new());
    }
    let body = body.collect().await.unwrap().to_bytes();
    let error: Value = serde_json::from_slice(&body).unwrap_or_default();
    let message = error["message"].as_str().unwrap_or_default();
    (status, message.to_owned())
}

/// Returns a document.
pub async fn document(channel: Channel, path: &str) -> Value {
    let (status, body) = send(channel, get(path)).await;
    let body = body.collect().await.unwrap().to_bytes();
    assert_eq!(status, StatusCode::OK, "{path}");
    serde_json::from_slice(&body).unwrap()
}

async fn send(mut channel: Channel, request: Request<Body>) -> (StatusCode, Body) {
    let response = channel.ready().await.unwrap().call(request).await;
    let (head, body) = response.unwrap().into_parts();
    (head.status, body)
}

fn get(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).unwrap()
}

fn request(resources: &Resources, asked: &Question) -> Request<Body> {
    if asked.resource.starts_with('/') {
        return get(&asked.resource);
    }
    if asked.verb == IMPERSONATE {
        let request = Request::get("/version").header("impersonate-user", &asked.name);
        return request.body(Body::empty()).unwrap();
    }
    let (method, path) = target(&resources[&asked.resource], asked);
    let body = match method {
        Method::GET | Method::DELETE => Body::empty(),
        _ => Body::new(Full::from("{}")),
    };
    let of = match asked.verb.as_str() {
        "patch" => MERGE_PATCH,
        _ => JSON,
    };
    let request = Request::builder().method(method).uri(path);
    request.header("content-type", of).body(body).unwrap()
}

fn target(served: &Served, asked: &Question) -> (Method, String) {
    let (whole, part) = match asked.resource.split_once('/') {
        Some((whole, part)) => (whole, format!("/{part}")),
        None => (asked.resource.as_str(), String::new()),
    };
    let plural = whole.split('.').next().unwrap_or_default();
    let (base, name) = (&served.base, &asked.name);
    let collection = match asked.namespace.as_str() {
        namespace if served.namespaced => format!("{base}/namespaces/{namespace}/{plural}"),
        _ => format!("{base}/{plural}"),
    };
    let object = format!("{collection}/{name}{part}");
    let selected = match name.as_str() {
        "" => NONE.to_owned(),
        name => format!("{NONE}&fieldSelector=metadata.name%3D{name}"),
    };
    match asked.verb.as_str() {
        "get" => (Method::GET, object),
        "list" => (Method::GET, format!("{collection}?{selected}")),
        "watch" => (
            Method::GET,
            format!("{collection}?watch=1&timeoutSeconds=1&{selected}"),
        ),
        "create" if part.is_empty() => (Method::POST, collection),
        "create" => (Method::POST, object),
        "update" => (Method::PUT, object),
        "patch" => (Method::PATCH, object),
        "delete" => (Method::DELETE, object),
        _ => (Method::DELETE, format!("{collection}?{NONE}")),
    }
}
