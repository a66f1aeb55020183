//! Objects with arbitrary values in some fields, sent as dry runs. Reaches validation more often than raw bodies.

use arbitrary::{Result, Unstructured};
use axum::body::Body;
use http::header::CONTENT_TYPE;
use http::{Method, Request};
use setpoint_codec::{Kind, envelope};

use crate::dry;
use crate::edit::edit;
use crate::example::example;
use crate::gateway::{NAMESPACE, collection};
use crate::json;

/// Creates or replaces an object.
pub fn run(input: &[u8]) {
    let _ = send(&mut Unstructured::new(input));
}

fn send(u: &mut Unstructured<'_>) -> Result<()> {
    let (kind, mut document) = example(u.arbitrary()?);
    let creates = u.arbitrary()?;
    let in_protobuf = u.ratio(1, 4)?;
    edit(kind, &mut document, u)?;
    let (method, name) = match creates {
        true => {
            if document["metadata"]["name"] == "web" {
                document["metadata"]["name"] = "new".into();
            }
            (Method::POST, "")
        }
        false => (Method::PUT, "/web"),
    };
    let path = format!("{}{name}?dryRun=All", collection(kind, NAMESPACE));
    let (content, body) = encoded(kind, document.to_string(), in_protobuf);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(CONTENT_TYPE, content);
    let reply = dry::send(request.body(body).expect("the path is valid"));
    if reply.code.is_success() {
        let body = reply.body.trim_ascii_end();
        let read = kind.from_json(body).expect("a response can be decoded");
        assert_eq!(json::text(&read.to_json()), json::text(body));
    }
    Ok(())
}

/// Encodes a document as JSON, or as protobuf if requested and possible.
pub fn encoded(kind: &'static Kind, document: String, in_protobuf: bool) -> (&'static str, Body) {
    match kind.from_json(document.as_bytes()) {
        Ok(object) if in_protobuf => {
            let body = envelope::write(&kind.api_version(), &kind.kind, &object.encode(), None);
            ("application/vnd.kubernetes.protobuf", body.into())
        }
        _ => ("application/json", document.into()),
    }
}
