//! Connections inside the process that can be cut without notice to either end.

use std::io;
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{DuplexStream, copy_bidirectional, duplex};
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Uri;
use tower::service_fn;

const BUFFER: usize = 64 << 10;

/// All connections to one server.
#[derive(Clone)]
pub struct Wires {
    accept: mpsc::UnboundedSender<DuplexStream>,
    cut: Arc<Mutex<CancellationToken>>,
}

impl Wires {
    pub fn new() -> (
        Self,
        impl tokio_stream::Stream<Item = io::Result<DuplexStream>>,
    ) {
        let (accept, accepted) = mpsc::unbounded_channel();
        let wires = Self {
            accept,
            cut: Arc::default(),
        };
        (wires, UnboundedReceiverStream::new(accepted).map(Ok))
    }

    pub fn connector(
        &self,
    ) -> impl tower::Service<
        Uri,
        Response = TokioIo<DuplexStream>,
        Error = io::Error,
        Future = impl Future<Output = io::Result<TokioIo<DuplexStream>>> + Send,
    > + Send
    + 'static {
        let wires = self.clone();
        service_fn(move |_| {
            let connected = wires.connect();
            async move { connected }
        })
    }

    /// Drops all bytes on the current connections.
    pub fn cut(&self) {
        std::mem::take(&mut *self.cut.lock()).cancel();
    }

    fn connect(&self) -> io::Result<TokioIo<DuplexStream>> {
        let (client, near) = duplex(BUFFER);
        let (far, server) = duplex(BUFFER);
        let closed = |_| io::Error::from(io::ErrorKind::ConnectionRefused);
        self.accept.send(server).map_err(closed)?;
        tokio::spawn(carry(near, far, self.cut.lock().clone()));
        Ok(TokioIo::new(client))
    }
}

async fn carry(mut near: DuplexStream, mut far: DuplexStream, cut: CancellationToken) {
    let carried = copy_bidirectional(&mut near, &mut far);
    if cut.run_until_cancelled(carried).await.is_none() {
        // Both ends stay open and receive nothing.
        std::future::pending::<()>().await;
    }
}
