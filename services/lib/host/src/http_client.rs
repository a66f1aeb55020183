//! A small HTTP client: one request on a connection of its own.
//!
//! It has no deadline; callers set one with `timeout`.

use anyhow::Context as _;
use axum::body::{Body, to_bytes};
use axum::http::header::HOST;
use axum::http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use setpoint_tls::{ClientStream, Credentials};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

/// An answer.
#[derive(Debug, Default)]
pub struct Answer {
    /// The status code.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as text.
    pub body: String,
}

/// Sends a GET request; see [`send`].
///
/// # Errors
/// As [`send`], or the URL is invalid.
pub async fn get(url: &str, max_bytes: usize) -> anyhow::Result<Answer> {
    send(Request::get(url).body(Body::empty())?, max_bytes).await
}

/// Sends a request to its absolute `http://` URL, and reads the whole answer.
///
/// # Errors
/// The server cannot be reached, the connection breaks, or the body is longer than `max_bytes`.
pub async fn send(request: Request<Body>, max_bytes: usize) -> anyhow::Result<Answer> {
    let client = Client::builder(TokioExecutor::new()).build_http();
    read(client.request(request).await?, max_bytes).await
}

/// Sends a request to its absolute URL, and reads the whole answer. To one of the scheme `https`, with these
/// credentials: the certificate of the server must have the host of the URL, and be by a CA that they trust.
///
/// # Errors
/// As [`send`], or the server's certificate is not accepted, or there are no credentials for `https`.
pub async fn send_as(
    credentials: Option<&Credentials>,
    request: Request<Body>,
    max_bytes: usize,
) -> anyhow::Result<Answer> {
    let connection = connect(credentials, request.uri()).await?;
    send_on(connection, in_origin_form(request)?, max_bytes).await
}

async fn connect(
    credentials: Option<&Credentials>,
    uri: &Uri,
) -> anyhow::Result<ClientStream<TcpStream>> {
    let is_tls = uri.scheme_str() == Some("https");
    let host = uri.host().context("the URL has no host")?;
    let host = host.trim_matches(['[', ']']);
    let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    if !is_tls {
        return Ok(ClientStream::Plain(stream));
    }
    let credentials = credentials.context("https needs credentials")?;
    let name = ServerName::try_from(host.to_owned())?;
    Ok(ClientStream::handshake(credentials.http1_client(), name, stream).await?)
}

/// Returns the request with the path as its target, and the host in its header.
fn in_origin_form(mut request: Request<Body>) -> anyhow::Result<Request<Body>> {
    if let Some(authority) = request.uri().authority() {
        let host = HeaderValue::from_str(authority.as_str())?;
        let path = request.uri().path_and_query();
        let path = path.map_or("/", |path| path.as_str()).parse()?;
        *request.uri_mut() = path;
        request.headers_mut().entry(HOST).or_insert(host);
    }
    Ok(request)
}

/// Sends a request on a connection by HTTP/1.1, with the path and the `Host` header that it has, and reads the whole
/// answer.
///
/// # Errors
/// The connection breaks, or the body is longer than `max_bytes`.
pub async fn send_on<C>(
    connection: C,
    request: Request<Body>,
    max_bytes: usize,
) -> anyhow::Result<Answer>
where
    C: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(connection)).await?;
    let connection = AbortOnDropHandle::new(tokio::spawn(connection));
    let answer = read(sender.send_request(request).await?, max_bytes).await;
    drop(connection);
    answer
}

async fn read(response: Response<Incoming>, max_bytes: usize) -> anyhow::Result<Answer> {
    let (head, body) = response.into_parts();
    let body = to_bytes(Body::new(body), max_bytes).await?;
    Ok(Answer {
        status: head.status,
        headers: head.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}
