//! A blocking HTTP client.

use std::thread;

use axum::body::Body;
use axum::http::Request;
use setpoint_host::http_client::{self, Answer};
use tokio::runtime::Builder;
use tokio::time::timeout;

use crate::wait::DEADLINE;

/// Sends a GET request to `address`, `<host>:<port>`.
///
/// # Errors
/// The connection fails, or there is no answer in time.
pub fn get(address: &str, path: &str) -> anyhow::Result<Answer> {
    send("GET", address, path, &[], "")
}

/// Sends a request. `headers` must contain the type of the body.
///
/// # Errors
/// The connection fails, or there is no answer in time.
pub fn send(
    method: &str,
    address: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> anyhow::Result<Answer> {
    let url = format!("http://{address}{path}");
    let request = Request::builder().method(method).uri(url);
    let request = headers.iter().fold(request, |request, (name, value)| {
        request.header(*name, *value)
    });
    let request = request.body(Body::from(body.to_owned()))?;
    // In a thread of its own, because the caller's may have a runtime already.
    let answer = thread::spawn(|| {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        runtime
            .block_on(async { timeout(DEADLINE, http_client::send(request, usize::MAX)).await })?
    });
    answer.join().expect("it does not panic")
}
