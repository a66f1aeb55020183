//! Answers in pieces, so that a client that stops to read is noticed and the rest does not wait for it in memory.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

/// HTTP/2 takes a frame as a whole once the client's window is open at all, and asks for the next when it is open again.
const PIECE: usize = 32 << 10;

/// A body whose frames are cut into pieces of at most 32 KiB. Once a client has not asked for the next piece of a frame for
/// `limit`, `stalled` is notified.
pub(crate) struct Pieces {
    inner: Body,
    rest: Bytes,
    limit: Duration,
    stalled: Arc<Notify>,
    /// Runs from the time a piece was given until the next is asked for.
    timer: Option<AbortOnDropHandle<()>>,
}

impl Pieces {
    pub fn new(inner: Body, limit: Duration, stalled: Arc<Notify>) -> Self {
        Self {
            inner,
            rest: Bytes::new(),
            limit,
            stalled,
            timer: None,
        }
    }

    fn next_piece(&mut self) -> Frame<Bytes> {
        let piece = self.rest.split_to(self.rest.len().min(PIECE));
        if !self.rest.is_empty() {
            let (limit, stalled) = (self.limit, Arc::clone(&self.stalled));
            let timer = tokio::spawn(async move {
                sleep(limit).await;
                stalled.notify_one();
            });
            self.timer = Some(AbortOnDropHandle::new(timer));
        }
        Frame::data(piece)
    }
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.timer = None;
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.next_piece())));
        }
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        polled.map(|frame| match frame?.map(Frame::into_data) {
            Ok(Ok(data)) => {
                self.rest = data;
                Some(Ok(self.next_piece()))
            }
            Ok(Err(other)) => Some(Ok(other)),
            Err(error) => Some(Err(error)),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let inner = self.inner.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower().saturating_add(rest));
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}
