//! Splits bodies into small frames, so that a client that stops reading is detected.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

/// hyper takes a whole frame as soon as the client's HTTP/2 window is open, and polls for the next when it is open
/// again.
const MAX_CHUNK: usize = 32 << 10;

/// A body whose frames are split into chunks of at most 32 KiB. Notifies `stalled` if the next chunk of a frame has not
/// been polled for `limit`.
pub(crate) struct ChunkedBody<B> {
    inner: B,
    rest: Bytes,
    limit: Duration,
    stalled: Arc<Notify>,
    /// Runs from the return of a chunk until the next poll.
    timer: Option<AbortOnDropHandle<()>>,
}

impl<B> ChunkedBody<B> {
    pub fn new(inner: B, limit: Duration, stalled: Arc<Notify>) -> Self {
        Self {
            inner,
            rest: Bytes::new(),
            limit,
            stalled,
            timer: None,
        }
    }

    fn next_chunk(&mut self) -> Frame<Bytes> {
        let chunk = self.rest.split_to(self.rest.len().min(MAX_CHUNK));
        if !self.rest.is_empty() {
            let (limit, stalled) = (self.limit, Arc::clone(&self.stalled));
            let timer = tokio::spawn(async move {
                sleep(limit).await;
                stalled.notify_one();
            });
            self.timer = Some(AbortOnDropHandle::new(timer));
        }
        Frame::data(chunk)
    }
}

impl<B: HttpBody<Data = Bytes> + Unpin> HttpBody for ChunkedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        self.timer = None;
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.next_chunk())));
        }
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        polled.map(|frame| match frame?.map(Frame::into_data) {
            Ok(Ok(data)) => {
                self.rest = data;
                Some(Ok(self.next_chunk()))
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
