//! Tests of connections of HTTP/2 on which a client sends frames without end.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::routing::{get, post};
use http::StatusCode;
use http_body_util::BodyExt as _;
use setpoint_host::serve::Limits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::limits::{SHORT, SOON, fetch, serve_router};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;
/// `POST http://localhost/` (RFC 7541, static table).
const POST: &[u8] = b"\x83\x86\x84\x01\x09localhost";
/// The error code of a client that does too much.
const ENHANCE_YOUR_CALM: u8 = 11;
/// Frames of a flood, far more than any client needs.
const FLOOD: usize = 200_000;

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    let head = [0, 0, length, kind, flags, 0, 0, 0, stream];
    [&head, payload].concat()
}

/// Begins a connection and a request with these flags of its head.
async fn begin(address: SocketAddr, flags: u8) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let settings = frame(SETTINGS, 0, 0, b"");
    let request = frame(HEADERS, flags, 1, POST);
    let sent = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(),
        &settings,
        &request,
    ];
    stream.write_all(&sent.concat()).await.unwrap();
    stream
}

/// Sends a frame again and again. Returns how many the server has taken until it closed the connection, and the error
/// code of its GOAWAY frame.
async fn flood(stream: TcpStream, frame: Vec<u8>) -> (usize, Option<u8>) {
    let (mut answers, mut sending) = stream.into_split();
    let ended = tokio::spawn(async move {
        let mut answer = Vec::new();
        let _ = answers.read_to_end(&mut answer).await;
        answer
    });
    let mut sent = 0;
    while sent < FLOOD && !ended.is_finished() && sending.write_all(&frame).await.is_ok() {
        sent += 1;
    }
    let answer = timeout(SOON, ended)
        .await
        .expect("the connection is closed");
    (sent, error_code(&answer.unwrap()))
}

/// Returns the last octet of the error code of the GOAWAY frame among these frames.
fn error_code(mut frames: &[u8]) -> Option<u8> {
    while let [0, high, low, kind, _, _, _, _, _, rest @ ..] = frames {
        let (payload, others) =
            rest.split_at_checked(usize::from(u16::from_be_bytes([*high, *low])))?;
        if *kind == GOAWAY {
            return payload.get(7).copied();
        }
        frames = others;
    }
    None
}

/// Checks V17: the head of a request is not continued without end, and other clients are served meanwhile.
#[tokio::test]
async fn a_flood_of_continuation_frames_ends_its_connection() {
    let router = Router::new().route("/", get(|| async { "yes" }));
    let (address, _stop) = serve_router(router, Limits::default()).await;
    for payload in [b"".as_slice(), b"\x00\x01a\x01b"] {
        let attack = begin(address, 0).await;
        let ((sent, error), (status, _)) = tokio::join!(
            flood(attack, frame(CONTINUATION, 0, 1, payload)),
            fetch(address, true, "/"),
        );
        assert!(sent < FLOOD, "{sent} frames were taken");
        assert_eq!(error, Some(ENHANCE_YOUR_CALM));
        assert_eq!(status, StatusCode::OK);
    }
}

/// Checks V17: empty frames do not keep a body on its way.
#[tokio::test]
async fn a_flood_of_empty_data_frames_does_not_keep_a_request() {
    let limits = Limits {
        body: SHORT,
        ..Limits::default()
    };
    let read = post(|body: Body| async move {
        let failed = body.collect().await.is_err();
        if failed { "refused" } else { "complete" }
    });
    let router = Router::new().route("/", read.get(|| async { "yes" }));
    let (address, _stop) = serve_router(router, limits).await;
    let attack = begin(address, END_HEADERS).await;
    let ((sent, error), (status, _)) = tokio::join!(
        flood(attack, frame(DATA, 0, 1, b"")),
        fetch(address, true, "/"),
    );
    assert!(sent < FLOOD, "{sent} frames were taken");
    assert_eq!(error, Some(ENHANCE_YOUR_CALM));
    assert_eq!(status, StatusCode::OK);
}
