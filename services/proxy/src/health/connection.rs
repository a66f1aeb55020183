//! Connections of health checks.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::json;
use setpoint_model::Key;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tracing::debug;

/// The time that a connection has for its request and the answer.
const LIMIT: Duration = Duration::from_secs(5);
/// The size of the buffer of a connection, and of the largest head of a request, in bytes.
const BUFFER: usize = 8192;
/// The header with the number of endpoints, as upstream.
const WEIGHT: &str = "X-Load-Balancing-Endpoint-Weight";

/// The facts that a health check reports.
#[derive(Debug)]
pub struct State {
    /// The Service.
    pub service: Key,
    /// The number of its ready endpoints.
    pub endpoints: AtomicUsize,
    /// Whether the proxy has programmed everything.
    pub healthy: Arc<AtomicBool>,
}

/// Serves one request of a connection.
pub async fn serve(stream: TcpStream, state: Arc<State>) {
    let answer = move |request: Request<Incoming>| {
        let response = answer(&request, &state);
        async move { Ok::<_, Infallible>(response) }
    };
    let mut http = http1::Builder::new();
    let http = http.keep_alive(false).max_buf_size(BUFFER);
    let served = http.serve_connection(TokioIo::new(stream), service_fn(answer));
    match timeout(LIMIT, served).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(%error, "a connection of a health check failed"),
        Err(_) => debug!("a connection of a health check took too long"),
    }
}

/// Returns the answer to any request, as upstream: 200 if there are endpoints and all is programmed, otherwise 503.
fn answer(_: &Request<Incoming>, state: &State) -> Response<String> {
    let count = state.endpoints.load(Ordering::Relaxed);
    let healthy = state.healthy.load(Ordering::Relaxed);
    let Key { namespace, name } = &state.service;
    let body = json!({
        "service": {"namespace": namespace, "name": name},
        "localEndpoints": count,
        "serviceProxyHealthy": healthy,
    });
    let mut response = Response::new(body.to_string());
    *response.status_mut() = match count > 0 && healthy {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    let headers = response.headers_mut();
    let json = hyper::header::HeaderValue::from_static("application/json");
    headers.insert(CONTENT_TYPE, json);
    let nosniff = hyper::header::HeaderValue::from_static("nosniff");
    headers.insert("X-Content-Type-Options", nosniff);
    headers.insert(WEIGHT, count.into());
    response
}
