//! Bodies of requests, bounded in time and memory; bodies of responses, in which panics are caught.

use std::error::Error as StdError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::HeaderMap;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use setpoint_proto::meta::StatusDetails;
use setpoint_proto::{ApiError, Reason};
use setpoint_task::Panicked;
use tokio::time::{Instant, Sleep, sleep_until};
use tonic::Status;

use crate::protocol::Protocol;

/// The error of a body: an [`ApiError`] over HTTP, a [`Status`] over gRPC, so that handlers can return it to the
/// client.
type BoxError = Box<dyn StdError + Send + Sync>;

/// Bodies up to this length, such as those of Leases, are rejected only beyond twice the budget.
const SMALL: usize = 64 << 10;

/// The number of bytes that request bodies may take in memory, over all requests of a process.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    used: AtomicUsize,
}

impl Budget {
    pub fn new(limit: usize) -> Arc<Self> {
        let used = AtomicUsize::new(0);
        Arc::new(Self { limit, used })
    }

    /// Returns a share that grows as the body of a request arrives; dropping it releases the bytes.
    pub fn share(self: &Arc<Self>) -> Arc<Share> {
        Arc::new(Share {
            budget: Arc::clone(self),
            bytes: AtomicUsize::new(0),
        })
    }
}

/// The share of one request in a [`Budget`].
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    bytes: AtomicUsize,
}

impl Share {
    fn grow(&self, by: usize) -> Result<(), ApiError> {
        let own = self
            .bytes
            .fetch_add(by, Ordering::Relaxed)
            .saturating_add(by);
        let all = self
            .budget
            .used
            .fetch_add(by, Ordering::Relaxed)
            .saturating_add(by);
        let limit = match own <= SMALL {
            true => self.budget.limit.saturating_mul(2),
            false => self.budget.limit,
        };
        if all <= limit {
            return Ok(());
        }
        let message = "Too many requests, please try again later.";
        Err(
            ApiError::new(Reason::TooManyRequests, message).with_details(StatusDetails {
                retry_after_seconds: 1,
                ..Default::default()
            }),
        )
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let bytes = self.bytes.load(Ordering::Relaxed);
        self.budget.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The body of a request, which must arrive by a time, and whose bytes count against a budget.
pub(crate) struct RequestBody {
    inner: Incoming,
    protocol: Protocol,
    by: Instant,
    /// Set while the next frame is pending.
    deadline: Option<Pin<Box<Sleep>>>,
    share: Arc<Share>,
}

impl RequestBody {
    pub fn new(inner: Incoming, protocol: Protocol, by: Instant, share: Arc<Share>) -> Self {
        Self {
            inner,
            protocol,
            by,
            deadline: None,
            share,
        }
    }

    fn fail(&self, error: ApiError) -> BoxError {
        match self.protocol {
            Protocol::Http => error.into(),
            Protocol::Grpc => Status::from(error).into(),
        }
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match Pin::new(&mut self.inner).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                let length = frame.data_ref().map_or(0, Bytes::len);
                let grown = self.share.grow(length).map(|()| frame);
                Poll::Ready(Some(grown.map_err(|error| self.fail(error))))
            }
            Poll::Ready(ended) => Poll::Ready(ended.map(|frame| frame.map_err(Into::into))),
            Poll::Pending => {
                let by = self.by;
                let deadline = self
                    .deadline
                    .get_or_insert_with(|| Box::pin(sleep_until(by)));
                deadline.as_mut().poll(context).map(|()| {
                    let message = "the body of the request did not arrive in time";
                    Some(Err(self.fail(ApiError::new(Reason::Timeout, message))))
                })
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The body of a response. A panic in it ends the body with an error.
///
/// Over gRPC the error is in the trailers, over HTTP/2 the stream is reset, and over HTTP/1 the connection is closed.
pub(crate) struct ResponseBody<G> {
    inner: Body,
    protocol: Protocol,
    panicked: bool,
    _guard: G,
}

impl<G> ResponseBody<G> {
    /// `guard` is dropped with the body.
    pub const fn new(inner: Body, protocol: Protocol, guard: G) -> Self {
        Self {
            inner,
            protocol,
            panicked: false,
            _guard: guard,
        }
    }
}

impl<G: Unpin> HttpBody for ResponseBody<G> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.panicked {
            return Poll::Ready(None);
        }
        let inner = Pin::new(&mut self.inner);
        let polled = catch_unwind(AssertUnwindSafe(|| inner.poll_frame(context)));
        let payload = match polled {
            Ok(polled) => {
                return polled.map(|frame| frame.map(|frame| frame.map_err(Into::into)));
            }
            Err(payload) => payload,
        };
        self.panicked = true;
        let error = panic_error(&Panicked::record(self.protocol.name(), &*payload));
        Poll::Ready(Some(match self.protocol {
            Protocol::Http => Err(error.into()),
            Protocol::Grpc => Ok(Frame::trailers(trailers(error))),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.panicked || self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

fn trailers(error: ApiError) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    // Fails only for messages that are not valid in headers; the client then sees a stream without a status.
    let _ = Status::from(error).add_header(&mut trailers);
    trailers
}

/// Returns the error that a client gets after a panic, without the panic's message.
pub(crate) fn panic_error(_panicked: &Panicked) -> ApiError {
    let message = "this request caused a panic; look in the logs for details";
    ApiError::new(Reason::InternalError, message)
}
