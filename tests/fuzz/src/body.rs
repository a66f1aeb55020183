//! Bodies of writes. Two bytes select kind and request, the rest is the body.

use axum::body::Body;
use http::header::CONTENT_TYPE;
use http::{Method, Request};
use setpoint_codec::{Kind, envelope, kinds};

use crate::dry;
use crate::example::example;
use crate::gateway::{NAMESPACE, collection};
use crate::stretch::stretch;

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Method, suffix of the path, and content type.
const REQUESTS: &[(Method, &str, &str)] = &[
    (Method::POST, "", JSON),
    (Method::PUT, "/web", JSON),
    (Method::PUT, "/web/status", JSON),
    (Method::PUT, "/web/scale", JSON),
    (Method::POST, "/web/binding", JSON),
    (Method::DELETE, "/web", JSON),
    (Method::POST, "", PROTOBUF),
    (Method::PUT, "/web", PROTOBUF),
    (Method::PUT, "/web/status", PROTOBUF),
    (Method::DELETE, "/web", PROTOBUF),
    (Method::PATCH, "/web", "application/json-patch+json"),
    (Method::PATCH, "/web", "application/merge-patch+json"),
    (
        Method::PATCH,
        "/web",
        "application/strategic-merge-patch+json",
    ),
    (Method::PATCH, "/web/status", "application/merge-patch+json"),
    (Method::PATCH, "/web/scale", "application/merge-patch+json"),
    (Method::DELETE, "", JSON),
];

const VALIDATIONS: [&str; 3] = ["Ignore", "Warn", "Strict"];

/// Sends the request as a dry run. The response to an accepted request must be decodable.
pub fn run(input: &[u8]) {
    let [first, second, body @ ..] = input else {
        return;
    };
    let (kind, _) = example(*first);
    let number = usize::from(*second);
    let (method, part, content) = &REQUESTS[number % REQUESTS.len()];
    let validation = VALIDATIONS[number / REQUESTS.len() % VALIDATIONS.len()];
    let body = match *content {
        PROTOBUF if *method == Method::DELETE => wrapped("v1", "DeleteOptions", body),
        PROTOBUF => wrapped(&kind.api_version(), &kind.kind, body),
        _ => stretch(body).into_owned(),
    };
    let path = collection(kind, NAMESPACE);
    let path = format!("{path}{part}?dryRun=All&fieldValidation={validation}");
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(CONTENT_TYPE, *content);
    // The options in the body of a DELETE replace those in its query.
    if *method == Method::DELETE && !body.is_empty() && !is_dry(&body, content) {
        return;
    }
    let reply = dry::send(request.body(Body::from(body)).expect("the path is valid"));
    if reply.code.is_success() && !part.contains("binding") {
        check_response(kind, &reply.body);
    }
}

fn wrapped(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    envelope::write(api_version, kind, raw, None).to_vec()
}

fn is_dry(body: &[u8], content: &str) -> bool {
    let kind = kinds()
        .by_kind("v1", "DeleteOptions")
        .expect("the kind exists");
    let read = match content {
        PROTOBUF => {
            let envelope = envelope::read(&body.to_vec().into());
            envelope
                .ok()
                .and_then(|envelope| kind.decode(&envelope.raw).ok())
        }
        _ => kind.from_json(body).ok(),
    };
    let options = read.as_deref().and_then(|read| read.downcast_ref());
    options.is_some_and(|options: &setpoint_proto::meta::DeleteOptions| !options.dry_run.is_empty())
}

/// Checks that the body of a response is JSON: an object of the kind, a list, a scale or a status.
fn check_response(kind: &'static Kind, body: &[u8]) {
    let value: serde_json::Value = serde_json::from_slice(body).expect("a response is JSON");
    if value["kind"] == kind.kind {
        kind.from_json(body).expect("a response can be decoded");
    }
}
