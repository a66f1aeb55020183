//! Connects to the first gateway that accepts a connection.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use setpoint_tls::{ClientStream, Credentials};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::transport::Uri;
use tracing::debug;

use super::addresses::{Addresses, Destination};
use super::cancellable_stream::CancellableStream;

/// The time limit of one attempt: a host that is gone does not refuse connections, and the next address is tried only
/// after it.
const WITHIN: Duration = Duration::from_secs(1);
/// The time limit of a handshake of TLS: a gateway that hangs accepts connections.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(3);

/// A connection to a gateway.
pub(super) type Connection = ClientStream<CancellableStream>;

/// Makes the connections of a client, one at a time. Clones share the client.
#[derive(Clone)]
pub(super) struct Connector {
    addresses: Arc<Addresses>,
    credentials: Option<Credentials>,
    present: Arc<Mutex<Current>>,
}

#[derive(Default)]
struct Current {
    peer: Option<Destination>,
    cut: CancellationToken,
    /// The address of the next connection, if it has been chosen.
    wanted: Option<Destination>,
}

impl Connector {
    pub fn new(addresses: Addresses, credentials: Option<Credentials>) -> Self {
        Self {
            addresses: Arc::new(addresses),
            credentials,
            present: Arc::default(),
        }
    }

    /// Returns the addresses of the other gateways.
    pub async fn others(&self) -> Vec<Destination> {
        let mut others = self.addresses.resolve().await;
        let present = self.present.lock().peer.clone();
        others.retain(|other| Some(other) != present.as_ref());
        others
    }

    /// Closes the current connection; the next one is made to `destination` if that accepts it.
    pub fn move_to(&self, destination: Destination) {
        let mut present = self.present.lock();
        present.wanted = Some(destination);
        present.cut.cancel();
    }

    async fn connect(self) -> io::Result<TokioIo<Connection>> {
        let mut last = io::Error::new(
            io::ErrorKind::NotFound,
            "the gateway's name stands for no address",
        );
        for destination in self.candidates().await {
            let cut = CancellationToken::new();
            match self.dial(&destination, &cut).await {
                Ok(connection) => {
                    self.take(destination, cut);
                    return Ok(TokioIo::new(connection));
                }
                Err(error) => last = error,
            }
            debug!(address = %destination.address, error = %last, "no connection");
        }
        Err(last)
    }

    /// Returns the addresses to try. The one of the last connection comes last: it may accept connections without
    /// being ready.
    async fn candidates(&self) -> Vec<Destination> {
        let mut candidates = self.addresses.resolve().await;
        let mut present = self.present.lock();
        let (left, wanted) = (present.peer.clone(), present.wanted.take());
        candidates.sort_by_key(|candidate| match Some(candidate) {
            candidate if candidate == wanted.as_ref() => 0,
            candidate if candidate == left.as_ref() => 2,
            _ => 1,
        });
        candidates
    }

    /// Connects to one gateway, until the connection is `cut`.
    pub async fn dial(
        &self,
        destination: &Destination,
        cut: &CancellationToken,
    ) -> io::Result<Connection> {
        let stream = timeout(WITHIN, TcpStream::connect(destination.address)).await??;
        // Without this option each call waits for the peer's delayed acknowledgement.
        stream.set_nodelay(true)?;
        let stream = CancellableStream::new(stream, cut.clone());
        let Some(name) = &destination.name else {
            return Ok(Connection::Plain(stream));
        };
        let credentials = self.credentials.as_ref();
        let credentials = credentials.ok_or(io::ErrorKind::PermissionDenied)?;
        let handshake = Connection::handshake(credentials.client(), name.clone(), stream);
        timeout(HANDSHAKE_WITHIN, handshake).await?
    }

    fn take(&self, destination: Destination, cut: CancellationToken) {
        debug!(address = %destination.address, "connected");
        let mut present = self.present.lock();
        present.peer = Some(destination);
        present.cut = cut;
    }
}

impl tower::Service<Uri> for Connector {
    type Response = TokioIo<Connection>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Ignores the URI, which is that of the first gateway.
    fn call(&mut self, _: Uri) -> Self::Future {
        Box::pin(self.clone().connect())
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    async fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    fn connector(addresses: &[SocketAddr]) -> Connector {
        let uris: Vec<_> = addresses.iter().map(|a| format!("http://{a}")).collect();
        Connector::new(Addresses::parse(&uris.join(","), "").unwrap(), None)
    }

    fn peer(connector: &Connector) -> Option<SocketAddr> {
        let present = connector.present.lock();
        present.peer.as_ref().map(|peer| peer.address)
    }

    #[tokio::test]
    async fn an_address_that_refuses_is_passed_over() {
        let (_open, open) = listener().await;
        // Bound without listening, so that connections to the port are refused.
        let closed = TcpSocket::new_v4().unwrap();
        closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let refusing = closed.local_addr().unwrap();
        let connector = connector(&[refusing, open]);
        for _ in 0..8 {
            connector.clone().connect().await.unwrap();
            assert_eq!(peer(&connector), Some(open));
        }
        let error = self::connector(&[refusing]).connect().await.err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[tokio::test]
    async fn the_address_of_the_last_connection_is_tried_last() {
        let (a, b) = (listener().await, listener().await);
        let connector = connector(&[a.1, b.1]);
        let mut before = None;
        for _ in 0..8 {
            connector.clone().connect().await.unwrap();
            let now = peer(&connector);
            assert_ne!(now, before);
            before = now;
        }
        drop((a.0, b.0));
    }

    #[tokio::test]
    async fn a_move_closes_the_current_connection() {
        use tokio::io::AsyncReadExt as _;

        let (a, b) = (listener().await, listener().await);
        let connector = connector(&[a.1, b.1]);
        let mut line = connector.clone().connect().await.unwrap().into_inner();
        let others = connector.others().await;
        assert_eq!(others.len(), 1);
        connector.move_to(others[0].clone());
        let error = line.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
        connector.clone().connect().await.unwrap();
        assert_eq!(peer(&connector), Some(others[0].address));
        drop((a.0, b.0));
    }
}
