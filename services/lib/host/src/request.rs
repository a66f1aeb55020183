//! One request, from its head to the end of its answer.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
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
const CLIENT_STREAMS: [&str; 3] = [
    "/setpoint.v1.Spans/Report",
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

/// How many requests of a connection are open, and whether the answer to one of them is not taken.
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
