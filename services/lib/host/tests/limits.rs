//! What the listener does about clients that say nothing, ask for too much, or make a handler panic.

#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is all it has to say"
)]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::{any, get, post};
use futures::{StreamExt as _, stream};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use setpoint_host::serve::{self, Limits};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::Code;

const SOON: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(200);

async fn listening(router: Router, limits: Limits) -> (SocketAddr, DropGuard) {
    let listener = serve::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    tokio::spawn(serve::serve(listener, router, limits, stop.clone()));
    (address, stop.drop_guard())
}

fn client(http2: bool) -> Client<HttpConnector, Full<Bytes>> {
    let mut builder = Client::builder(TokioExecutor::new());
    builder.http2_only(http2).build_http()
}

/// Sends bytes on a new connection and returns what comes back until the server ends it.
async fn until_cut(address: SocketAddr, sent: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(sent).await.unwrap();
    let mut answer = Vec::new();
    let cut = timeout(SOON, stream.read_to_end(&mut answer)).await;
    // Reset or ended, as long as it is over.
    let _ = cut.expect("the connection is ended");
    answer
}

/// Checks F15.
#[tokio::test]
async fn connections_that_say_nothing_are_ended() {
    let limits = Limits {
        header: SHORT,
        idle: SHORT,
        ..Limits::default()
    };
    let (address, _stop) = listening(Router::new(), limits).await;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let greeting = [preface.as_slice(), &settings].concat();
    for sent in [
        b"".as_slice(),
        b"GET / HT",
        &preface[..9],
        preface,
        &greeting,
    ] {
        until_cut(address, sent).await;
    }
    let used = until_cut(address, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(
        used.starts_with(b"HTTP/1.1 404"),
        "an idle one has had its answer"
    );
}

/// Checks F15.
#[tokio::test]
async fn a_body_that_never_comes_is_given_up() {
    let limits = Limits {
        body: SHORT,
        ..Limits::default()
    };
    let read = post(|body: Body| async move {
        let failed = body.collect().await.unwrap_err();
        failed.to_string()
    });
    let (address, _stop) = listening(Router::new().route("/", read), limits).await;
    let head =
        "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 9\r\n\r\nhalf";
    let answer = until_cut(address, head.as_bytes()).await;
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.ends_with("did not arrive in time"), "{answer}");
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_told_so() {
    let limits = Limits {
        request: SHORT,
        ..Limits::default()
    };
    let hang = get(std::future::pending::<String>);
    let (address, _stop) = listening(Router::new().route("/", hang), limits).await;
    for http2 in [false, true] {
        let (status, body) = fetch(address, http2, "/").await;
        assert_eq!(status, StatusCode::GATEWAY_TIMEOUT);
        assert_eq!(body["reason"], "Timeout");
    }
}

#[tokio::test]
async fn a_grpc_call_has_no_more_time_than_its_client_gave_it() {
    let hang = any(std::future::pending::<String>);
    let (address, _stop) = listening(Router::new().route("/", hang), Limits::default()).await;
    let request = Request::post(format!("http://{address}/"))
        .header("content-type", "application/grpc")
        .header("grpc-timeout", "50m");
    let answered = client(true).request(request.body(Full::default()).unwrap());
    let answer = timeout(SOON, answered).await.unwrap().unwrap();
    let status = tonic::Status::from_header_map(answer.headers()).unwrap();
    assert_eq!(status.code(), Code::DeadlineExceeded);
}

/// Checks F15.
#[tokio::test]
async fn large_bodies_together_are_bounded_and_small_ones_pass() {
    let limits = Limits {
        body_bytes: 100_000,
        ..Limits::default()
    };
    let read = post(|body: Body| async move {
        match body.collect().await {
            Ok(body) => body.to_bytes().len().to_string(),
            Err(error) => error.to_string(),
        }
    });
    let (address, _stop) = listening(Router::new().route("/", read), limits).await;
    let send = async |bytes: usize| {
        let body = Full::new(vec![0; bytes].into());
        let request = Request::post(format!("http://{address}/"))
            .body(body)
            .unwrap();
        let answer = client(true).request(request).await.unwrap().into_body();
        String::from_utf8(answer.collect().await.unwrap().to_bytes().to_vec()).unwrap()
    };
    assert_eq!(send(60_000).await, "60000");
    assert_eq!(
        send(200_000).await,
        "Too many requests, please try again later."
    );
    assert_eq!(
        send(60_000).await,
        "60000",
        "what was taken has been given back"
    );
}

/// Checks F15.
#[tokio::test]
async fn an_answer_that_its_client_does_not_take_is_dropped_with_the_connection() {
    const LONG: usize = 16 << 20;
    let limits = Limits {
        stall: SHORT,
        ..Limits::default()
    };
    let router = Router::new().route("/", get(|| async { vec![b'x'; LONG] }));
    let (address, _stop) = listening(router, limits).await;
    let ask = || async {
        let request = Request::get(format!("http://{address}/")).body(Full::default());
        client(true)
            .request(request.unwrap())
            .await
            .unwrap()
            .into_body()
    };
    assert_eq!(ask().await.collect().await.unwrap().to_bytes().len(), LONG);

    let untaken = ask().await;
    let cut = timeout(SOON, async {
        while counted("setpoint_connections_cut_total", "stalled") == 0.0 {
            tokio::time::sleep(SHORT).await;
        }
    });
    cut.await.expect("the client's connection is cut");
    assert!(untaken.collect().await.is_err());
}

/// Checks F15.
#[tokio::test]
async fn a_connection_too_many_takes_the_place_of_an_idle_one() {
    let limits = Limits {
        connections: 2,
        ..Limits::default()
    };
    let (address, _stop) =
        listening(Router::new().route("/", get(|| async { "yes" })), limits).await;
    let mut silent = Vec::new();
    for _ in 0..2 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let answer = until_cut(
        address,
        b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    assert!(answer.await.starts_with(b"HTTP/1.1 200"));
}

/// Checks F4.
#[tokio::test]
async fn pages_of_other_sites_are_refused_by_every_process() {
    let router = Router::new().route("/", any(|| async { "done" }));
    let (address, _stop) = listening(router, Limits::default()).await;
    for head in [
        "Host: evil.example:17443\r\n",
        "Host: localhost\r\nOrigin: http://evil.example\r\n",
        "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n",
    ] {
        let sent = format!("POST / HTTP/1.1\r\n{head}Connection: close\r\n\r\n");
        let answer = until_cut(address, sent.as_bytes()).await;
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 403"), "{head}: {answer}");
        assert!(answer.contains(r#""reason":"Forbidden""#), "{answer}");
    }
}

async fn fetch(address: SocketAddr, http2: bool, path: &str) -> (StatusCode, Value) {
    let request = Request::get(format!("http://{address}{path}"));
    let request = request.body(Full::default()).unwrap();
    let answer = client(http2).request(request).await.unwrap();
    let status = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

/// A body of one good piece, at whose second a panic is thrown.
fn breaking() -> Body {
    let pieces = stream::iter(0..).map(|n| {
        assert!(n < 1, "piece {n}");
        Ok::<_, Infallible>(Frame::data(Bytes::from("piece")))
    });
    Body::new(StreamBody::new(pieces))
}

fn panicking() -> Router {
    async fn at_once() -> String {
        panic!("thrown by a test")
    }
    Router::new()
        .route("/well", any(|| async { "well" }))
        .route("/panic", any(at_once))
        .route("/stream", any(async || breaking()))
}

fn panics(task: &str) -> f64 {
    counted("setpoint_panics_total", task)
}

/// Returns what a counter says for a value of one of its labels.
fn counted(name: &str, value: &str) -> f64 {
    let families = prometheus::gather();
    let family = families.iter().find(|family| family.name() == name);
    let metrics = family.into_iter().flat_map(|family| family.get_metric());
    let with_value = metrics.filter(|metric| {
        metric
            .get_label()
            .iter()
            .any(|label| label.value() == value)
    });
    with_value
        .map(|metric| metric.get_counter().get_value())
        .sum()
}

#[tokio::test]
async fn a_panic_in_a_request_is_answered_and_counted_and_the_connection_lives() {
    let (address, _stop) = listening(panicking(), Limits::default()).await;
    for http2 in [false, true] {
        let client = client(http2);
        let before = panics("http");
        let ask = async |path: &str| {
            let request = Request::get(format!("http://{address}{path}"));
            client
                .request(request.body(Full::default()).unwrap())
                .await
                .unwrap()
        };
        let answer = ask("/panic").await;
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            (&body["kind"], &body["reason"]),
            (&"Status".into(), &"InternalError".into())
        );
        assert_eq!(ask("/well").await.status(), StatusCode::OK);
        let request = Request::get(format!("http://{address}/stream"));
        let broken = client.request(request.body(Full::default()).unwrap()).await;
        // HTTP/1 may be cut before its head has left.
        let whole = match broken {
            Ok(answer) => answer.into_body().collect().await.is_ok(),
            Err(_) => false,
        };
        assert!(!whole, "a body that breaks off does not look whole");
        assert_eq!(ask("/well").await.status(), StatusCode::OK);
        assert_eq!(panics("http") - before, 2.0);
    }
}

#[tokio::test]
async fn a_panic_in_a_grpc_call_is_internal_and_counted() {
    let (address, _stop) = listening(panicking(), Limits::default()).await;
    let client = client(true);
    let before = panics("grpc");
    let call = async |path: &str| {
        let request = Request::post(format!("http://{address}{path}"));
        let request = request.header("content-type", "application/grpc");
        client
            .request(request.body(Full::default()).unwrap())
            .await
            .unwrap()
    };
    let unary = call("/panic").await;
    assert!(is_internal(unary.headers()), "{unary:?}");
    let streaming = call("/stream").await.into_body().collect().await.unwrap();
    assert!(is_internal(streaming.trailers().unwrap()), "{streaming:?}");
    assert_eq!(streaming.to_bytes(), "piece");
    assert_eq!(call("/well").await.status(), StatusCode::OK);
    assert_eq!(panics("grpc") - before, 2.0);
}

fn is_internal(headers: &HeaderMap) -> bool {
    let status = tonic::Status::from_header_map(headers).unwrap();
    let reason = status.metadata().get("setpoint-reason");
    status.code() == Code::Internal && reason.is_some_and(|reason| reason == "InternalError")
}
