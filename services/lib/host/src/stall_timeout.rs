//! A connection that is closed when its client stops reading, or is no longer trusted.

use std::io;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use prometheus::{IntCounterVec, register_int_counter_vec};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Sleep, sleep};

static CUT_CONNECTIONS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Connections closed because of their clients, by reason.";
    register_int_counter_vec!("setpoint_connections_cut_total", help, &["reason"])
        .expect("the name is unique")
});

/// Counts a connection that is closed for this reason.
pub(crate) fn count_cut(reason: &str) {
    CUT_CONNECTIONS.with_label_values(&[reason]).inc();
}

/// A stream whose writes fail once nothing could be written for `limit`. It keeps the slot of its connection until it
/// is closed, also after an upgrade.
pub(crate) struct StallTimeout {
    stream: TcpStream,
    _slot: OwnedSemaphorePermit,
    limit: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    /// Ends the connection, also after an upgrade.
    end: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    has_ended: bool,
}

impl StallTimeout {
    pub fn new(stream: TcpStream, slot: OwnedSemaphorePermit, limit: Duration) -> Self {
        Self {
            stream,
            _slot: slot,
            limit,
            timer: None,
            end: None,
            has_ended: false,
        }
    }

    /// Lets all reads and writes fail once a future is ready. It is polled by reads.
    pub fn end_with(&mut self, end: impl Future<Output = ()> + Send + 'static) {
        self.end = Some(Box::pin(end));
    }

    /// Returns an error once the connection must end.
    fn check_end(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if let Some(end) = &mut self.end
            && end.as_mut().poll(context).is_ready()
        {
            (self.end, self.has_ended) = (None, true);
        }
        self.check_ended()
    }

    fn check_ended(&self) -> io::Result<()> {
        match self.has_ended {
            true => Err(io::ErrorKind::ConnectionAborted.into()),
            false => Ok(()),
        }
    }

    /// Reads the first bytes of the connection, which are read again later.
    pub async fn peek(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.peek(buffer).await
    }

    /// Returns the outcome of a write, or an error if it has been pending for too long.
    fn check_stall<T>(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.timer = None;
            return outcome;
        }
        let limit = self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(timer.as_mut().poll(context));
        count_cut("stalled");
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for StallTimeout {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check_end(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for StallTimeout {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check_ended()?;
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.check_stall(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check_ended()?;
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.check_stall(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
