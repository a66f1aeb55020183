//! Tests of the listener over TLS.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::routing::{any, get};
use axum::{Extension, Router};
use futures::{StreamExt as _, stream};
use http::{Request, Response, StatusCode, Version};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::{http1, http2};
use hyper::upgrade::Upgraded;
use hyper_util::rt::{TokioExecutor, TokioIo};
use jiff::{SignedDuration, Timestamp};
use rustls::pki_types::ServerName;
use setpoint_host::serve::{self, ConnectionInfo, Limits};
use setpoint_host::unverified_tls;
use setpoint_tls::authority::{Authority, Issued, Leaf, Usage, write_certificates};
use setpoint_tls::{Credentials, Files, Validity};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::limits::{SHORT, SOON, counter};

/// An identity whose files are renewed.
struct Identity {
    directory: TempDir,
    credentials: Credentials,
}

impl Identity {
    fn new(issued: &Issued) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::in_directory(directory.path());
        write_certificates(&files.ca_file, &[&issued.ca]).unwrap();
        issued.write(&files).unwrap();
        let credentials = Credentials::load(&files).unwrap();
        Self {
            directory,
            credentials,
        }
    }

    fn renew(&self, issued: &Issued) {
        issued
            .write(&Files::in_directory(self.directory.path()))
            .unwrap();
        self.credentials.reload().unwrap();
    }
}

fn leaf(name: &str) -> Leaf {
    Leaf {
        name: name.to_owned(),
        groups: vec!["system:setpoint".to_owned()],
        hosts: vec!["127.0.0.1".to_owned()],
        usage: Usage::ServerAndClient,
        lifetime: Duration::from_secs(3_600),
    }
}

/// Issues a certificate that expires after some milliseconds.
fn issue_short(authority: &Authority, name: &str, milliseconds: i64) -> Issued {
    let now = Timestamp::now();
    let validity = Validity {
        not_before: now - SignedDuration::from_mins(1),
        not_after: now + SignedDuration::from_millis(milliseconds),
    };
    authority.issue_for(&leaf(name), validity).unwrap()
}

fn credentials(authority: &Authority, name: &str) -> Credentials {
    authority.issue(&leaf(name)).unwrap().credentials().unwrap()
}

async fn serve_router(credentials: Credentials, limits: Limits) -> (SocketAddr, DropGuard) {
    let listener = serve::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let serving = serve::serve_with(Some(credentials), listener, router(), limits, stop.clone());
    tokio::spawn(serving);
    (address, stop.drop_guard())
}

fn router() -> Router {
    Router::new()
        .route("/whoami", get(whoami))
        .route("/stream", get(endless))
        .route("/upgrade", any(upgrade))
}

async fn whoami(Extension(info): Extension<ConnectionInfo>) -> (StatusCode, String) {
    assert!(info.is_tls());
    match info.identity() {
        Ok(Some(client)) => (StatusCode::OK, client.name.clone()),
        Ok(None) => (StatusCode::OK, "anonymous".to_owned()),
        Err(reason) => (StatusCode::UNAUTHORIZED, reason),
    }
}

/// Sends a frame every few milliseconds.
async fn endless() -> Body {
    let frames = stream::iter(0_u64..).then(|n| async move {
        tokio::time::sleep(Duration::from_millis(5)).await;
        Ok::<_, std::convert::Infallible>(n.to_string())
    });
    Body::from_stream(frames)
}

/// Upgrades the connection, and sends back what comes.
async fn upgrade(mut request: Request<Body>) -> Response<Body> {
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let connection = TokioIo::new(upgraded.await.unwrap());
        let (mut read, mut write) = tokio::io::split(connection);
        let _ = tokio::io::copy(&mut read, &mut write).await;
    });
    let response = Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header("connection", "upgrade")
        .header("upgrade", "test");
    response.body(Body::empty()).unwrap()
}

type Connected = TlsStream<TcpStream>;

async fn connect(client: &Credentials, address: SocketAddr, is_http2: bool) -> Connected {
    let config = match is_http2 {
        true => client.client(),
        false => client.http1_client(),
    };
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    TlsConnector::from(config)
        .connect(name, stream)
        .await
        .unwrap()
}

type Sender = http2::SendRequest<Empty<Bytes>>;

async fn http2(stream: Connected) -> Sender {
    let io = TokioIo::new(stream);
    let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn request(address: SocketAddr, path: &str) -> Request<Empty<Bytes>> {
    Request::get(format!("https://{address}{path}"))
        .body(Empty::new())
        .unwrap()
}

async fn text<B: hyper::body::Body<Error: std::fmt::Debug>>(
    response: Response<B>,
) -> (StatusCode, String) {
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// Returns the answer to who the client is, on a new connection.
async fn ask(client: &Credentials, address: SocketAddr) -> (StatusCode, String) {
    let mut sender = http2(connect(client, address, true).await).await;
    text(
        sender
            .send_request(request(address, "/whoami"))
            .await
            .unwrap(),
    )
    .await
}

/// Returns the common name of the server's certificate.
fn server_name(stream: &Connected, anyone: &Credentials) -> String {
    let chain = stream.get_ref().1.peer_certificates().unwrap();
    anyone.identify(chain).unwrap().unwrap().name
}

async fn upgraded(client: &Credentials, address: SocketAddr) -> TokioIo<Upgraded> {
    let io = TokioIo::new(connect(client, address, false).await);
    let (mut sender, connection) = http1::handshake(io).await.unwrap();
    tokio::spawn(connection.with_upgrades());
    let request = Request::get("/upgrade")
        .header("host", "127.0.0.1")
        .header("connection", "upgrade")
        .header("upgrade", "test");
    let request = request.body(Empty::<Bytes>::new()).unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
    TokioIo::new(hyper::upgrade::on(response).await.unwrap())
}

/// The streams that stay open while certificates are renewed.
struct Streams {
    sender: Sender,
    frames: hyper::body::Incoming,
    upgraded: TokioIo<Upgraded>,
}

impl Streams {
    async fn open(client: &Credentials, address: SocketAddr) -> Self {
        let mut sender = http2(connect(client, address, true).await).await;
        let response = sender
            .send_request(request(address, "/stream"))
            .await
            .unwrap();
        let frames = response.into_body();
        let upgraded = upgraded(client, address).await;
        Self {
            sender,
            frames,
            upgraded,
        }
    }

    /// Checks that both streams go on.
    async fn go_on(&mut self) {
        let alive = timeout(SOON, async {
            self.frames.frame().await.unwrap().unwrap();
            self.upgraded.write_all(b"ping").await.unwrap();
            let mut echo = [0; 4];
            self.upgraded.read_exact(&mut echo).await.unwrap();
            assert_eq!(&echo, b"ping");
        });
        alive.await.expect("the streams go on");
    }
}

#[tokio::test]
async fn a_hundred_renewals_drop_no_stream_and_each_handshake_has_the_newest_certificate() {
    let authority = Authority::create("ca").unwrap();
    let server = Identity::new(&issue_short(&authority, "server", 3_000));
    let client = Identity::new(&issue_short(&authority, "client", 3_000));
    let first_expires = client.credentials.expiry();
    let (address, _stop) = serve_router(server.credentials.clone(), Limits::default()).await;
    let mut streams = Streams::open(&client.credentials, address).await;

    let mut newest = 0;
    for n in 0..100 {
        server.renew(&authority.issue(&leaf(&format!("server-{n}"))).unwrap());
        client.renew(&authority.issue(&leaf(&format!("client-{n}"))).unwrap());
        let stream = connect(&client.credentials, address, true).await;
        let shown = server_name(&stream, &client.credentials);
        let mut sender = http2(stream).await;
        let seen = sender
            .send_request(request(address, "/whoami"))
            .await
            .unwrap();
        let seen = text(seen).await.1;
        newest += u32::from((shown, seen) == (format!("server-{n}"), format!("client-{n}")));
        streams.go_on().await;
    }
    assert_eq!(newest, 100);

    let past_expiry =
        first_expires.duration_since(Timestamp::now()) + SignedDuration::from_millis(200);
    tokio::time::sleep(Duration::try_from(past_expiry).unwrap_or_default()).await;
    assert!(Timestamp::now() > first_expires);
    for _ in 0..10 {
        streams.go_on().await;
    }
    // But the connection accepts no further request: the client makes a new one, with its new certificate.
    let refused = async {
        while streams
            .sender
            .send_request(request(address, "/whoami"))
            .await
            .is_ok()
        {}
    };
    timeout(SOON, refused)
        .await
        .expect("the connection accepts no further request");
    streams.go_on().await;
    assert_eq!(ask(&client.credentials, address).await.1, "client-99");
}

#[tokio::test]
async fn both_versions_of_http_are_chosen_by_alpn() {
    let authority = Authority::create("ca").unwrap();
    let client = credentials(&authority, "client");
    let (address, _stop) = serve_router(credentials(&authority, "a"), Limits::default()).await;
    for (is_http2, alpn) in [(true, &b"h2"[..]), (false, b"http/1.1")] {
        let stream = connect(&client, address, is_http2).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(alpn));
    }
    let mut sender = http2(connect(&client, address, true).await).await;
    let response = sender
        .send_request(request(address, "/whoami"))
        .await
        .unwrap();
    assert_eq!(response.version(), Version::HTTP_2);
}

/// Checks V20.
#[tokio::test]
async fn a_client_is_who_its_certificate_says_if_a_trusted_ca_does() {
    let (authority, other) = (
        Authority::create("ca").unwrap(),
        Authority::create("other").unwrap(),
    );
    let (address, _stop) = serve_router(credentials(&authority, "a"), Limits::default()).await;
    let known = ask(&credentials(&authority, "someone"), address).await;
    assert_eq!(known, (StatusCode::OK, "someone".to_owned()));

    let forged = other.issue(&leaf("someone")).unwrap();
    let forged = Credentials::from_pem(authority.certificate(), &forged.certificate, &forged.key);
    let expired = issue_short(&authority, "someone", -1_000)
        .credentials()
        .unwrap();
    for (client, reason) in [(forged.unwrap(), "UnknownIssuer"), (expired, "expired")] {
        let (status, text) = ask(&client, address).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        assert!(
            text.to_lowercase().contains(&reason.to_lowercase()),
            "{text}"
        );
    }

    let stream = TcpStream::connect(address).await.unwrap();
    let mut stream = unverified_tls::connect("127.0.0.1", stream).await.unwrap();
    let sent = b"GET /whoami HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(sent).await.unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    assert!(answer.ends_with("anonymous"), "{answer}");
}

/// Checks V16.
#[tokio::test]
async fn a_handshake_that_does_not_end_is_cut() {
    assert_eq!(Limits::default().handshake, Duration::from_secs(10));
    let authority = Authority::create("ca").unwrap();
    let limits = Limits {
        handshake: SHORT,
        ..Limits::default()
    };
    let (address, _stop) = serve_router(credentials(&authority, "a"), limits).await;
    let before = counter("setpoint_connections_cut_total", "handshake");
    for sent in [&b""[..], b"\x16", b"\x16\x03\x01\x02\x00\x01"] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(sent).await.unwrap();
        let closed = timeout(SOON, stream.read_to_end(&mut Vec::new())).await;
        let _ = closed.expect("the connection is closed");
    }
    assert_eq!(
        counter("setpoint_connections_cut_total", "handshake") - before,
        3.0
    );
}

#[tokio::test]
async fn a_request_without_tls_is_told_so() {
    let authority = Authority::create("ca").unwrap();
    let (address, _stop) = serve_router(credentials(&authority, "a"), Limits::default()).await;
    for sent in [
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(SOON, stream.read_to_string(&mut answer))
            .await
            .unwrap()
            .unwrap();
        assert!(
            answer.starts_with("HTTP/1.0 400 Bad Request\r\n"),
            "{answer}"
        );
        assert!(
            answer.ends_with("Client sent an HTTP request to an HTTPS server.\n"),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn a_connection_in_its_handshake_gives_its_slot_to_another_one() {
    let authority = Authority::create("ca").unwrap();
    let limits = Limits {
        connections: 1,
        ..Limits::default()
    };
    let (address, _stop) = serve_router(credentials(&authority, "a"), limits).await;
    let _silent = TcpStream::connect(address).await.unwrap();
    let client = credentials(&authority, "client");
    let asked = timeout(SOON, ask(&client, address)).await.unwrap();
    assert_eq!(asked.1, "client");
}
