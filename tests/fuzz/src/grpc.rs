//! gRPC requests. The first byte selects the method of `setpoint.v1.Objects`, the rest is the message.

use axum::body::Body;
use bytes::{BufMut as _, Bytes, BytesMut};
use http::Request;
use http::header::{CONTENT_TYPE, TE};
use http_body_util::BodyExt as _;
use prost::Message;
use setpoint_proto::setpoint::{
    CreateRequest, DeleteRequest, GetRequest, ListRequest, PatchRequest, UpdateRequest,
    WatchRequest,
};
use std::time::Duration;
use tokio::time::timeout;

use crate::dry;

/// The gRPC codes of server errors.
const UNKNOWN: &[u8] = b"2";
const INTERNAL: &[u8] = b"13";

/// Sends the message; a write as a dry run.
pub fn run(input: &[u8]) {
    let Some((first, message)) = input.split_first() else {
        return;
    };
    match first % 7 {
        0 => call::<GetRequest>("Get", message, |_| {}),
        1 => call::<ListRequest>("List", message, |_| {}),
        2 => call::<WatchRequest>("Watch", message, |_| {}),
        3 => call::<CreateRequest>("Create", message, |asked| asked.dry_run = true),
        4 => call::<UpdateRequest>("Update", message, |asked| asked.dry_run = true),
        5 => call::<PatchRequest>("Patch", message, |asked| asked.dry_run = true),
        _ => call::<DeleteRequest>("Delete", message, |asked| {
            asked.options.get_or_insert_default().dry_run = vec!["All".into()];
        }),
    }
}

fn call<T: Message + Default>(method: &str, message: &[u8], dry: fn(&mut T)) {
    let Ok(mut message) = T::decode(message) else {
        return;
    };
    dry(&mut message);
    let request = Request::post(format!("/setpoint.v1.Objects/{method}"))
        .header(CONTENT_TYPE, "application/grpc")
        .header(TE, "trailers")
        .body(Body::from(framed(&message)))
        .expect("the path is valid");
    let status = dry::with(|gateway| {
        gateway.block_on(async {
            let (parts, body) = gateway.open(request).await.into_parts();
            let collected = timeout(Duration::from_secs(35), body.collect()).await;
            let trailers = collected.ok().and_then(|all| all.ok()?.trailers().cloned());
            let headers = trailers.unwrap_or(parts.headers);
            let message = headers.get("grpc-message").cloned();
            headers
                .get("grpc-status")
                .cloned()
                .map(|code| (code, message))
        })
    });
    // A watch has no status until it ends.
    if let Some((code, message)) = status {
        assert!(
            ![UNKNOWN, INTERNAL].contains(&code.as_bytes()),
            "{code:?}: {message:?}"
        );
    }
}

/// Returns an uncompressed gRPC frame of a message.
fn framed(message: &impl Message) -> Bytes {
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(message.encoded_len() as u32);
    frame.put_slice(&message.encode_to_vec());
    frame.freeze()
}
