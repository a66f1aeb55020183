//! Compression of responses.

use axum::body::Body;
use flate2::read::GzDecoder;
use http::Request;
use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING};
use serde_json::{Value, json};

use crate::http::api::{Api, CONFIGMAPS, Reply};

async fn get(api: &Api, path: &str) -> Reply {
    let request = Request::get(path).header(ACCEPT_ENCODING, "gzip");
    api.send(request, Body::empty()).await
}

#[tokio::test]
async fn large_responses_are_compressed_if_the_client_accepts_it() {
    let api = Api::start().await;
    let data = json!({ "a": "x".repeat(200 << 10) });
    let large = json!({ "metadata": { "name": "large" }, "data": data });
    api.post(CONFIGMAPS, large).await.ok();
    let plain = api.get(CONFIGMAPS).await;
    assert!(!plain.headers.contains_key(CONTENT_ENCODING));
    let small = get(&api, CONFIGMAPS).await;
    assert_eq!(small.headers[CONTENT_ENCODING], "gzip");
    assert!(small.body.len() < plain.body.len() / 10);
    let list: Value = serde_json::from_reader(GzDecoder::new(&*small.body)).unwrap();
    assert_eq!(list, plain.json());
}

#[tokio::test]
async fn small_responses_are_not_compressed() {
    let api = Api::start().await;
    let reply = get(&api, CONFIGMAPS).await;
    assert!(!reply.headers.contains_key(CONTENT_ENCODING));
    assert_eq!(reply.headers[CACHE_CONTROL], "no-cache, private");
    reply.ok();
}
