//! A blocking HTTP client.

use std::thread;

use axum::body::Body;
use axum::http::Request;
use axum::http::header::HOST;
use setpoint_host::http_client::{self, Answer};
use setpoint_host::unverified_tls;
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::time::timeout;

use crate::Address;
use crate::wait::DEADLINE;

/// Sends a GET request.
///
/// # Errors
/// The connection fails, or there is no answer in time.
pub fn get(address: &Address, path: &str) -> anyhow::Result<Answer> {
    send("GET", address, path, &[], "")
}

/// Sends a GET request over TLS without credentials; the certificate of the server is not verified.
///
/// # Errors
/// The connection fails, or there is no answer in time.
pub fn get_without_credentials(address: &Address, path: &str) -> anyhow::Result<Answer> {
    let place = address.place().to_owned();
    let request = Request::get(path)
        .header(HOST, &place)
        .body(Body::empty())?;
    wait(async move {
        let stream = TcpStream::connect(&place).await?;
        let stream = unverified_tls::connect("localhost", stream).await;
        let stream = stream.map_err(anyhow::Error::msg)?;
        http_client::send_on(stream, request, usize::MAX).await
    })
}

/// Sends a request. `headers` must contain the type of the body.
///
/// # Errors
/// The connection fails, or there is no answer in time.
pub fn send(
    method: &str,
    address: &Address,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> anyhow::Result<Answer> {
    let request = Request::builder()
        .method(method)
        .uri(format!("{address}{path}"));
    let request = headers.iter().fold(request, |request, (name, value)| {
        request.header(*name, *value)
    });
    let request = request.body(Body::from(body.to_owned()))?;
    let credentials = address.credentials().cloned();
    wait(async move { http_client::send_as(credentials.as_ref(), request, usize::MAX).await })
}

/// Waits in a thread of its own, because the caller's may have a runtime already.
fn wait(
    answering: impl Future<Output = anyhow::Result<Answer>> + Send + 'static,
) -> anyhow::Result<Answer> {
    let answer = thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async { timeout(DEADLINE, answering).await })?
    });
    answer.join().expect("it does not panic")
}
