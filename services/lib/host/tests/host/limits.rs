//! Tests of the listener's limits, and of panics in handlers.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::{any, get, post};
use futures::{StreamExt as _, stream};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use setpoint_host::serve::{self, Limits};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::Code;

pub(crate) const SOON: Duration = Duration::from_secs(20);
pub(crate) const SHORT: Duration = Duration::from_millis(200);

pub(crate) async fn serve_router(router: Router, limits: Limits) -> (SocketAddr, DropGuard) {
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

/// Sends bytes on a new connection; returns what the server sends until it closes the connection.
async fn read_until_closed(address: SocketAddr, sent: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(sent).await.unwrap();
    let mut answer = Vec::new();
    let cut = timeout(SOON, stream.read_to_end(&mut answer)).await;
    // Either reset or closed.
    let _ = cut.expect("the connection is closed");
    answer
}

/// Checks F15 and V16: a head that does not end is cut after 10 s.
#[tokio::test]
async fn connections_without_a_complete_request_and_idle_ones_are_closed() {
    assert_eq!(Limits::default().header, Duration::from_secs(10));
    let limits = Limits {
        header: SHORT,
        idle: SHORT,
        ..Limits::default()
    };
    let (address, _stop) = serve_router(Router::new(), limits).await;
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
        read_until_closed(address, sent).await;
    }
    let used = read_until_closed(address, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(
        used.starts_with(b"HTTP/1.1 404"),
        "closed after the response"
    );
}

/// Checks F15.
#[tokio::test]
async fn a_request_body_that_does_not_arrive_fails_after_the_timeout() {
    let limits = Limits {
        body: SHORT,
        ..Limits::default()
    };
    let read = post(|body: Body| async move {
        let failed = body.collect().await.unwrap_err();
        failed.to_string()
    });
    let (address, _stop) = serve_router(Router::new().route("/", read), limits).await;
    let head =
        "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 9\r\n\r\nhalf";
    let answer = read_until_closed(address, head.as_bytes()).await;
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.ends_with("did not arrive in time"), "{answer}");
}

#[tokio::test]
async fn a_request_beyond_the_timeout_is_answered_with_504() {
    let limits = Limits {
        request: SHORT,
        ..Limits::default()
    };
    let hang = get(std::future::pending::<String>);
    let (address, _stop) = serve_router(Router::new().route("/", hang), limits).await;
    for http2 in [false, true] {
        let (status, body) = fetch(address, http2, "/").await;
        assert_eq!(status, StatusCode::GATEWAY_TIMEOUT);
        assert_eq!(body["reason"], "Timeout");
    }
}

#[tokio::test]
async fn a_grpc_call_ends_after_the_timeout_of_its_client() {
    let hang = any(std::future::pending::<String>);
    let (address, _stop) = serve_router(Router::new().route("/", hang), Limits::default()).await;
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
async fn large_bodies_beyond_the_budget_are_rejected_and_small_ones_accepted() {
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
    let (address, _stop) = serve_router(Router::new().route("/", read), limits).await;
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
    assert_eq!(send(60_000).await, "60000", "the budget was released");
}

/// Checks F15.
#[tokio::test]
async fn a_connection_whose_client_does_not_read_a_response_is_closed() {
    const LONG: usize = 16 << 20;
    let limits = Limits {
        stall: SHORT,
        ..Limits::default()
    };
    let router = Router::new().route("/", get(|| async { vec![b'x'; LONG] }));
    let (address, _stop) = serve_router(router, limits).await;
    let ask = || async {
        let request = Request::get(format!("http://{address}/")).body(Full::default());
        client(true)
            .request(request.unwrap())
            .await
            .unwrap()
            .into_body()
    };
    assert_eq!(ask().await.collect().await.unwrap().to_bytes().len(), LONG);

    let unread = ask().await;
    let cut = timeout(SOON, async {
        while counter("setpoint_connections_cut_total", "stalled") == 0.0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    cut.await.expect("the connection is closed");
    assert!(unread.collect().await.is_err());
}

/// Checks F15.
#[tokio::test]
async fn a_connection_beyond_the_limit_takes_the_slot_of_an_idle_one() {
    let limits = Limits {
        connections: 2,
        ..Limits::default()
    };
    let (address, _stop) =
        serve_router(Router::new().route("/", get(|| async { "yes" })), limits).await;
    let mut silent = Vec::new();
    for _ in 0..2 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let answer = read_until_closed(
        address,
        b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    assert!(answer.await.starts_with(b"HTTP/1.1 200"));
}

/// Upgrades the connection, and reads it until the client closes it.
async fn upgrade(mut request: Request<Body>) -> Response<Body> {
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let mut connection = TokioIo::new(upgraded.await.unwrap());
        let _ = connection.read_to_end(&mut Vec::new()).await;
    });
    let response = Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header("connection", "upgrade")
        .header("upgrade", "test");
    response.body(Body::empty()).unwrap()
}

/// Checks DG8.
#[tokio::test]
async fn an_upgraded_connection_keeps_its_slot_until_it_is_closed() {
    let limits = Limits {
        connections: 2,
        ..Limits::default()
    };
    let (address, _stop) = serve_router(Router::new().route("/", any(upgrade)), limits).await;
    let ask = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: test\r\n\r\n";
    let open = async || {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(ask.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        // Closed or reset beyond the limit.
        let answered = stream.read_exact(&mut answer).await.is_ok();
        answered.then(|| {
            assert_eq!(&answer, b"HTTP/1.1 101");
            stream
        })
    };
    let upgraded = [open().await.unwrap(), open().await.unwrap()];
    assert!(open().await.is_none(), "both slots are taken");
    drop(upgraded);
    let again = timeout(SOON, async { while open().await.is_none() {} });
    again.await.expect("the slots are free again");
}

/// Checks F4.
#[tokio::test]
async fn requests_of_pages_of_other_sites_are_answered_with_403() {
    let router = Router::new().route("/", any(|| async { "done" }));
    let (address, _stop) = serve_router(router, Limits::default()).await;
    for head in [
        "Host: evil.example:17443\r\n",
        "Host: localhost\r\nOrigin: http://evil.example\r\n",
        "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n",
    ] {
        let sent = format!("POST / HTTP/1.1\r\n{head}Connection: close\r\n\r\n");
        let answer = read_until_closed(address, sent.as_bytes()).await;
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 403"), "{head}: {answer}");
        assert!(answer.contains(r#""reason":"Forbidden""#), "{answer}");
    }
}

pub(crate) async fn fetch(address: SocketAddr, http2: bool, path: &str) -> (StatusCode, Value) {
    let request = Request::get(format!("http://{address}{path}"));
    let request = request.body(Full::default()).unwrap();
    let answer = client(http2).request(request).await.unwrap();
    let status = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

/// Returns a body that panics at its second frame.
fn panicking_body() -> Body {
    let frames = stream::iter(0..).map(|n| {
        assert!(n < 1, "frame {n}");
        Ok::<_, Infallible>(Frame::data(Bytes::from("frame")))
    });
    Body::new(StreamBody::new(frames))
}

fn panicking() -> Router {
    async fn at_once() -> String {
        panic!("thrown by a test")
    }
    Router::new()
        .route("/ok", any(|| async { "ok" }))
        .route("/panic", any(at_once))
        .route("/stream", any(async || panicking_body()))
}

fn panics(task: &str) -> f64 {
    counter("setpoint_panics_total", task)
}

/// Returns the value of a counter, summed over all metrics with this label value.
pub(crate) fn counter(name: &str, value: &str) -> f64 {
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
async fn a_panic_in_an_http_request_is_answered_with_500_and_counted() {
    let (address, _stop) = serve_router(panicking(), Limits::default()).await;
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
        assert_eq!(ask("/ok").await.status(), StatusCode::OK);
        let request = Request::get(format!("http://{address}/stream"));
        let broken = client.request(request.body(Full::default()).unwrap()).await;
        // Over HTTP/1 the connection may be closed before the head is sent.
        let complete = match broken {
            Ok(answer) => answer.into_body().collect().await.is_ok(),
            Err(_) => false,
        };
        assert!(!complete, "a truncated body must not seem complete");
        assert_eq!(ask("/ok").await.status(), StatusCode::OK);
        assert_eq!(panics("http") - before, 2.0);
    }
}

#[tokio::test]
async fn a_panic_in_a_grpc_call_is_answered_with_internal_and_counted() {
    let (address, _stop) = serve_router(panicking(), Limits::default()).await;
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
    assert_eq!(streaming.to_bytes(), "frame");
    assert_eq!(call("/ok").await.status(), StatusCode::OK);
    assert_eq!(panics("grpc") - before, 2.0);
}

fn is_internal(headers: &HeaderMap) -> bool {
    let status = tonic::Status::from_header_map(headers).unwrap();
    let reason = status.metadata().get("setpoint-reason");
    status.code() == Code::Internal && reason.is_some_and(|reason| reason == "InternalError")
}
