//! The gateway as one process reaches it: with the faults of the process, and with turns for its writes.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use futures::{StreamExt as _, stream};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;
use setpoint_proto::{ApiError, Reason};
use tokio::sync::watch;
use tonic::Status;
use tower::ServiceExt as _;

use crate::call::{Call, Watched};
use crate::faults::{Delivery, Faults};
use crate::turns::Turns;
use crate::{Entry, Log, Refusal};

/// The gateway as one process reaches it.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) process: Arc<str>,
    pub(crate) gateway: Router,
    pub(crate) faults: watch::Sender<Faults>,
    pub(crate) turns: Turns,
    pub(crate) log: Log,
}

impl Endpoint {
    /// Answers a request.
    pub(crate) async fn answer(
        self,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Infallible> {
        let (head, body) = request.into_parts();
        let method = head
            .uri
            .path()
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_owned();
        let body = match body.collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => return Ok(Status::cancelled(error.to_string()).into_http()),
        };
        let (watched, call) = (
            Watched::of(head.uri.path(), &body),
            Call::of(&method, &body),
        );
        let request = Request::from_parts(head, Body::new(Full::new(body)));
        let answer = async move {
            self.until(|faults| !faults.frozen).await;
            match (watched, call) {
                (Some(watched), _) => self.watch(watched, request).await,
                (None, Some(call)) => self.write(call, request).await,
                (None, None) => self.forward(request).await,
            }
        };
        // A request that was sent arrives some day, even if its caller has given up meanwhile.
        let answered = tokio::spawn(answer).await;
        Ok(answered.unwrap_or_else(|error| Status::internal(error.to_string()).into_http()))
    }

    async fn forward(&self, request: Request<Body>) -> Response<Body> {
        let answer = self.gateway.clone().oneshot(request).await;
        answer.unwrap_or_else(|never| match never {})
    }

    /// Waits until the faults are so.
    async fn until(&self, are: impl FnMut(&Faults) -> bool) {
        // The sender is a field, so the channel is open.
        let _ = self.faults.subscribe().wait_for(are).await;
    }

    async fn write(&self, call: Call, request: Request<Body>) -> Response<Body> {
        self.until(|faults| !faults.holds_writes).await;
        if call.is_of_lease() {
            return self.forward(request).await;
        }
        let Some(turn) = self.turns.take(&self.process, &call).await else {
            return Status::cancelled("the simulation has ended").into_http();
        };
        let (head, body) = self.forward(request).await.into_parts();
        let Ok(body) = body.collect().await else {
            return Status::internal("the gateway's answer broke").into_http();
        };
        let error = error(&head.headers).or_else(|| error(body.trailers()?));
        let delivery = match &error {
            None => self.count_write(),
            Some(_) => Delivery::Prompt,
        };
        if let Some(error) = error {
            let process = self.process.clone();
            self.log.push(Entry::Refused(Refusal {
                process,
                call,
                error,
            }));
        } else if delivery == Delivery::Lost {
            // The write is recorded first.
            tokio::task::yield_now().await;
            self.log.push(Entry::Lost(self.process.clone(), call));
        }
        drop(turn);
        match delivery {
            Delivery::Prompt => Response::from_parts(head, Body::new(body)),
            Delivery::Lost => unavailable("the connection broke").into_http(),
            Delivery::Never => std::future::pending().await,
        }
    }

    fn count_write(&self) -> Delivery {
        let mut delivery = Delivery::Prompt;
        self.faults
            .send_modify(|faults| delivery = faults.count_write());
        delivery
    }

    /// Opens a watch whose events are held back while the faults say so.
    async fn watch(&self, watched: Watched, request: Request<Body>) -> Response<Body> {
        let (broken, expired) = {
            let faults = self.faults.borrow();
            (faults.broken, faults.expired)
        };
        if watched.after.is_some_and(|after| after < expired) {
            return Status::from(ApiError::new(Reason::Expired, "too old resource version"))
                .into_http();
        }
        let (head, body) = self.forward(request).await.into_parts();
        let watch = (self.clone(), watched.resource, body);
        let frames = stream::try_unfold(watch, move |(endpoint, resource, mut body)| async move {
            let frame = tokio::select! {
                biased;
                () = endpoint.until(|faults| faults.broken != broken) => {
                    return Err(axum::Error::new("the connection broke"));
                }
                frame = async {
                    let frame = body.frame().await;
                    endpoint.until(|faults| !faults.holds_back(&resource)).await;
                    frame
                } => frame.transpose()?,
            };
            Ok(frame.map(|frame| (frame, (endpoint, resource, body))))
        });
        Response::from_parts(head, Body::new(StreamBody::new(frames.boxed())))
    }
}

/// Returns reason and message of the error that headers or trailers have.
fn error(headers: &HeaderMap) -> Option<String> {
    let text = |name| headers.get(name)?.to_str().ok();
    let status = text("grpc-status")?;
    let message = percent_decode_str(text("grpc-message").unwrap_or_default()).decode_utf8_lossy();
    let reason = text("setpoint-reason").unwrap_or(status);
    (status != "0").then(|| format!("{reason}: {message}"))
}

fn unavailable(why: &str) -> Status {
    ApiError::new(Reason::ServiceUnavailable, why).into()
}
