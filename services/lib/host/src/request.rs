//! One request, from its head to the end of its answer.

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

use crate::body::{Answered, Budget, Received, panic_error};
use crate::limits::Limits;
use crate::pieces::Pieces;
use crate::refusal::Protocol;

/// Calls whose clients send for as long as they please, so that neither the call nor its body has a deadline.
const CLIENT_STREAMS: [&str; 2] = [
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// Far enough to be never.
const NEVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Answers requests with a router, within limits. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Answerer {
    router: Router,
    limits: Arc<Limits>,
    budget: Arc<Budget>,
}

impl Answerer {
    pub fn new(router: Router, limits: Arc<Limits>) -> Self {
        let budget = Budget::new(limits.body_bytes);
        Self {
            router,
            limits,
            budget,
        }
    }

    /// Answers a request whatever becomes of it: with 403 if a page of another site sent it, with 500 if it panics and
    /// with 504 if it takes too long. `open` is counted up until the answer has ended.
    pub async fn answer(
        self,
        request: Request<Incoming>,
        open: Open,
    ) -> Result<Response<Body>, Infallible> {
        let protocol = Protocol::of(request.headers());
        let stall = self.limits.stall;
        let (parts, body) = request.into_parts();
        let response = match self.limits.hosts.check(&parts) {
            Ok(()) => {
                let (patience, body_patience) = match CLIENT_STREAMS.contains(&parts.uri.path()) {
                    true => (NEVER, NEVER),
                    false => (self.limits.request, self.limits.body),
                };
                let patience =
                    grpc_timeout(&parts.headers).map_or(patience, |asked| asked.min(patience));
                let share = self.budget.share();
                let by = Instant::now() + body_patience;
                let body = Body::new(Received::new(body, protocol, by, Arc::clone(&share)));
                let request = Request::from_parts(parts, body);
                let response = self.call(request, protocol, patience).await;
                drop(share);
                response
            }
            Err(error) => protocol.refuse(error),
        };
        let stalled = Arc::clone(&open.stalled);
        Ok(response.map(|body| {
            let body = Body::new(Answered::new(body, protocol, open));
            Body::new(Pieces::new(body, stall, stalled))
        }))
    }

    async fn call(
        mut self,
        request: Request<Body>,
        protocol: Protocol,
        patience: Duration,
    ) -> Response<Body> {
        let called = catch_panic(protocol.name(), async move {
            match self.router.call(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            }
        });
        let error = match timeout(patience, called).await {
            Ok(Ok(response)) => return response,
            Ok(Err(panicked)) => panic_error(&panicked),
            Err(_) => {
                let message = "request did not complete within the allotted timeout";
                ApiError::new(Reason::Timeout, message)
            }
        };
        protocol.refuse(error)
    }
}

/// Returns the time that a client of gRPC gives its call: up to eight digits and a unit. What cannot be read is ignored.
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

/// The number of open requests of a connection, and whether the client does not take the answer to one of them.
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
    /// Counts one more, until it is dropped.
    pub fn open(&self) -> Open {
        let Self { count, stalled } = self.clone();
        count.send_modify(|open| *open = open.saturating_add(1));
        Open { count, stalled }
    }

    /// Follows the count.
    pub fn follow(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    /// Returns when the client has taken nothing of an answer for too long.
    pub async fn stalled(&self) {
        self.stalled.notified().await;
    }
}

/// A request that is open for as long as this lives.
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
    fn a_call_ends_when_its_client_says() {
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
