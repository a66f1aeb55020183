//! Handles one request, from its head to the end of the response.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use setpoint_proto::{ApiError, Reason};
use setpoint_task::catch_panic;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};
use tower::Service;

use crate::body::{Budget, RequestBody, ResponseBody, panic_error};
use crate::chunked_body::ChunkedBody;
use crate::limits::Limits;
use crate::protocol::Protocol;

/// Calls with client streaming, which have no deadline for the call, and whose bodies are bounded by nothing but how
/// fast they are read.
const CLIENT_STREAMS: [&str; 5] = [
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    "/setpoint.v1.Node/Attach",
    "/setpoint.v1.Node/Exec",
    "/setpoint.v1.Node/PortForward",
];

/// Stands for no deadline.
const NEVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Passes requests to a router, within limits. Cheap to clone.
#[derive(Clone)]
pub(crate) struct RequestHandler {
    router: Router,
    limits: Arc<Limits>,
    budget: Arc<Budget>,
}

impl RequestHandler {
    pub fn new(router: Router, limits: Arc<Limits>) -> Self {
        let budget = Budget::new(limits.body_bytes);
        Self {
            router,
            limits,
            budget,
        }
    }

    /// Handles a request. The response is 403 if a page of another site sent it, 500 if the handler panics, and 504 if
    /// it takes too long. `open` is dropped at the end of the response.
    pub async fn handle(
        self,
        request: Request<Incoming>,
        open: Open,
    ) -> Result<Response<Body>, Infallible> {
        let protocol = Protocol::of(request.headers());
        let stall = self.limits.stall;
        let (parts, body) = request.into_parts();
        let response = match self.limits.hosts.check(&parts) {
            Ok(()) => {
                let is_stream = CLIENT_STREAMS.contains(&parts.uri.path());
                let call_timeout = if is_stream {
                    NEVER
                } else {
                    self.limits.request
                };
                let call_timeout = grpc_timeout(&parts.headers)
                    .map_or(call_timeout, |timeout| timeout.min(call_timeout));
                let share = self.budget.share();
                let by = Instant::now() + self.limits.body;
                let body = match is_stream {
                    true => Body::new(body),
                    false => Body::new(RequestBody::new(body, protocol, by, Arc::clone(&share))),
                };
                let request = Request::from_parts(parts, body);
                let response = self.call(request, protocol, call_timeout).await;
                drop(share);
                response
            }
            Err(error) => protocol.error_response(error),
        };
        let stalled = Arc::clone(&open.stalled);
        Ok(response.map(|body| {
            let body = ResponseBody::new(body, protocol, open);
            Body::new(ChunkedBody::new(body, stall, stalled))
        }))
    }

    async fn call(
        mut self,
        request: Request<Body>,
        protocol: Protocol,
        call_timeout: Duration,
    ) -> Response<Body> {
        let called = catch_panic(protocol.name(), async move {
            match self.router.call(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            }
        });
        let error = match timeout(call_timeout, called).await {
            Ok(Ok(response)) => return response,
            Ok(Err(panicked)) => panic_error(&panicked),
            Err(_) => {
                let message = "request did not complete within the allotted timeout";
                ApiError::new(Reason::Timeout, message)
            }
        };
        protocol.error_response(error)
    }
}

/// Returns the timeout in the `grpc-timeout` header: up to eight digits and a unit. An invalid one is ignored.
fn grpc_timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (amount, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if amount.len() > 8 || !amount.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let amount = amount.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(amount * 60 * 60)),
        "M" => Some(Duration::from_secs(amount * 60)),
        "S" => Some(Duration::from_secs(amount)),
        "m" => Some(Duration::from_millis(amount)),
        "u" => Some(Duration::from_micros(amount)),
        "n" => Some(Duration::from_nanos(amount)),
        _ => None,
    }
}

/// The number of open requests of a connection, and whether its client has stopped reading one of the responses.
#[derive(Clone)]
pub(crate) struct OpenRequests {
    count: watch::Sender<usize>,
    stalled: Arc<Notify>,
}

impl Default for OpenRequests {
    fn default() -> Self {
        Self {
            count: watch::Sender::new(0),
            stalled: Arc::default(),
        }
    }
}

impl OpenRequests {
    /// Increments the count until the result is dropped.
    pub fn open(&self) -> Open {
        let Self { count, stalled } = self.clone();
        count.send_modify(|open| *open = open.saturating_add(1));
        Open { count, stalled }
    }

    /// Returns a receiver of the count.
    pub fn follow(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    /// Waits until the client has not read from a response for too long.
    pub async fn stalled(&self) {
        self.stalled.notified().await;
    }
}

/// Counts as an open request until it is dropped.
pub(crate) struct Open {
    count: watch::Sender<usize>,
    stalled: Arc<Notify>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.count
            .send_modify(|open| *open = open.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn grpc_timeout_parses_all_units_and_ignores_invalid_values() {
        let timeout = |text: &'static str| {
            let header = (
                "grpc-timeout".parse().unwrap(),
                HeaderValue::from_static(text),
            );
            grpc_timeout(&HeaderMap::from_iter([header]))
        };
        for (text, nanoseconds) in [
            ("2H", 7_200_000_000_000),
            ("3M", 180_000_000_000),
            ("4S", 4_000_000_000),
            ("99999999m", 99_999_999_000_000),
            ("6u", 6_000),
            ("0n", 0),
        ] {
            assert_eq!(timeout(text).unwrap().as_nanos(), nanoseconds, "{text}");
        }
        for text in ["", "S", "1", "-1S", "+1S", "1s", "100000000S", "1 S"] {
            assert_eq!(timeout(text), None, "{text}");
        }
        assert_eq!(grpc_timeout(&HeaderMap::new()), None);
    }
}
