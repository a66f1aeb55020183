//! A small HTTP client: one request on a connection of its own.
//!
//! It has no deadline; callers set one with `timeout`.

use axum::body::{Body, to_bytes};
use axum::http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::task::AbortOnDropHandle;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: StatusCode,
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
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}
