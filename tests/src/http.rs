//! A blocking HTTP client.

use std::thread;

use axum::body::Body;
use axum::http::Request;
use setpoint_host::http_client::{self, Answer};
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
    // In a thread of its own, because the caller's may have a runtime already.
    let answer = thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let answering = http_client::send_as(credentials.as_ref(), request, usize::MAX);
        runtime.block_on(async { timeout(DEADLINE, answering).await })?
    });
    answer.join().expect("it does not panic")
}
