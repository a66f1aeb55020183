//! A gRPC channel that ends a request with its last message.
//!
//! tonic's body of a request says that it is over only when it is asked for a message after the last one. Every call
//! then has an empty frame at its end, which is mostly sent and received by itself, and a server does not begin with a
//! unary call before it: one system call and one wake-up more on each side.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tonic::Status;
use tonic::body::Body;
use tonic::transport::Channel;
use tower::Service;

/// A channel whose requests end with their last message. Clones share the connection.
#[derive(Clone, Debug)]
pub struct EarlyEnd(Channel);

impl EarlyEnd {
    /// Returns a service that sends requests over the channel.
    pub const fn new(channel: Channel) -> Self {
        Self(channel)
    }
}

impl Service<http::Request<Body>> for EarlyEnd {
    type Response = <Channel as Service<http::Request<Body>>>::Response;
    type Error = <Channel as Service<http::Request<Body>>>::Error;
    type Future = <Channel as Service<http::Request<Body>>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        self.0.call(request.map(|body| Body::new(Ahead::of(body))))
    }
}

/// A body that knows of each frame whether it is the last one, unless the next one is not there yet.
struct Ahead {
    body: Body,
    /// The next frame, if it is there already.
    next: Option<Result<Frame<Bytes>, Status>>,
    is_over: bool,
}

impl Ahead {
    const fn of(body: Body) -> Self {
        Self {
            body,
            next: None,
            is_over: false,
        }
    }
}

impl HttpBody for Ahead {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let frame = match self.next.take() {
            Some(frame) => Some(frame),
            None => ready!(Pin::new(&mut self.body).poll_frame(context)),
        };
        if !matches!(frame, Some(Ok(_))) {
            self.is_over = true;
            return Poll::Ready(frame);
        }
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(next)) => self.next = Some(next),
            Poll::Ready(None) => self.is_over = true,
            // It wakes the task, which asks for the next frame anyway.
            Poll::Pending => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || (self.next.is_none() && self.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.next {
            // The hint is that of the rest of the body.
            Some(_) => SizeHint::default(),
            None => self.body.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use http_body_util::{BodyExt as _, StreamBody};

    use super::*;

    fn frames(texts: &'static [&'static str]) -> Body {
        let frames = texts
            .iter()
            .map(|text| Ok::<_, Status>(Frame::data(Bytes::from(*text))));
        Body::new(StreamBody::new(stream::iter(frames)))
    }

    #[tokio::test]
    async fn the_last_frame_is_known_to_be_the_last() {
        let mut body = Ahead::of(frames(&["a", "b"]));
        let mut seen = Vec::new();
        while let Some(frame) = body.frame().await {
            let data = frame.unwrap().into_data().unwrap();
            seen.push((data, body.is_end_stream()));
        }
        assert_eq!(seen, [("a".into(), false), ("b".into(), true)]);
    }

    #[tokio::test]
    async fn a_frame_does_not_wait_for_the_next_one() {
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        let frames = tokio_stream::wrappers::ReceiverStream::new(receiver);
        let mut body = Ahead::of(Body::new(StreamBody::new(frames)));
        let frame = |text: &'static str| Ok::<_, Status>(Frame::data(Bytes::from(text)));
        sender.send(frame("a")).await.unwrap();
        assert!(body.frame().await.unwrap().is_ok());
        assert!(!body.is_end_stream());
        sender.send(frame("b")).await.unwrap();
        drop(sender);
        assert!(body.frame().await.unwrap().is_ok());
        assert!(body.is_end_stream());
        assert!(body.frame().await.is_none());
    }

    #[tokio::test]
    async fn an_error_after_a_message_is_not_lost() {
        let items = [Ok(Frame::data(Bytes::from("a"))), Err(Status::aborted("b"))];
        let mut body = Ahead::of(Body::new(StreamBody::new(stream::iter(items))));
        assert!(body.frame().await.unwrap().is_ok());
        assert!(!body.is_end_stream());
        assert_eq!(body.frame().await.unwrap().unwrap_err().message(), "b");
        assert!(body.frame().await.is_none());
    }
}
