//! The listener: HTTP/2 and HTTP/1.1 with upgrades on the same port, with TLS or without. Without TLS, HTTP/2 is used
//! with prior knowledge.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use setpoint_task::Panicked;
use setpoint_tls::Credentials;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpListener;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::connection::{Connection, ConnectionSlots};
pub use crate::connection_info::ConnectionInfo;
pub use crate::limits::Limits;
pub use crate::origin::Hosts;
use crate::request::{OpenRequests, RequestHandler};

/// The time for which nothing may come on a connection, the interval of the probes that follow, and their number.
/// Upgraded connections have no other sign that their client has vanished.
const PROBE_IDLE: Duration = Duration::from_secs(30);
const PROBE_INTERVAL: Duration = Duration::from_secs(10);
const PROBES: u32 = 3;
/// The delay after a failed accept. Without it the loop would spin while no file descriptor is free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The address of the client; an extension of every request.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// Listens on `address`; port 0 picks a free one.
///
/// # Errors
/// If the port is in use or the process may not bind it.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}

/// Serves `router` to every connection without TLS, within `limits`, until `shutdown`; see [`serve_with`].
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    shutdown: CancellationToken,
) {
    serve_with(None, listener, router, limits, shutdown).await;
}

/// Serves `router` to every connection, within `limits`, until `shutdown`; then waits until open requests have ended.
/// With credentials, connections are those of TLS.
///
/// That wait has no deadline; the caller sets one. Dropping the future closes the remaining connections.
pub async fn serve_with(
    credentials: Option<Credentials>,
    listener: TcpListener,
    router: Router,
    limits: Limits,
    shutdown: CancellationToken,
) {
    if let Err(error) = keep_alive(&listener) {
        warn!(%error, "connections of vanished clients are kept");
    }
    let slots = ConnectionSlots::new(&limits);
    let limits = Arc::new(limits);
    let handler = RequestHandler::new(router, Arc::clone(&limits));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            Some(ended) = connections.join_next() => record(ended),
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let connection = Connection {
                        peer,
                        credentials: credentials.clone(),
                        handler: handler.clone(),
                        limits: Arc::clone(&limits),
                        requests: OpenRequests::default(),
                        slots: slots.clone(),
                        shutdown: shutdown.clone(),
                    };
                    connections.spawn(connection.run(stream));
                }
                Err(error) => {
                    warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    while let Some(ended) = connections.join_next().await {
        record(ended);
    }
}

/// Lets the connections of a listener end whose clients no longer answer. They inherit its options.
fn keep_alive(listener: &TcpListener) -> io::Result<()> {
    let keepalive = TcpKeepalive::new()
        .with_time(PROBE_IDLE)
        .with_interval(PROBE_INTERVAL)
        .with_retries(PROBES);
    SockRef::from(listener).set_tcp_keepalive(&keepalive)
}

/// Logs and counts the panic of a connection; other connections are not affected.
fn record(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && let Ok(payload) = error.try_into_panic()
    {
        Panicked::record("connection", &*payload);
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;

    /// Checks DG8.
    #[tokio::test]
    async fn accepted_connections_end_when_their_client_no_longer_answers() {
        let listener = bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        keep_alive(&listener).unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await;
        let (accepted, _) = listener.accept().await.unwrap();
        let socket = SockRef::from(&accepted);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), PROBE_IDLE);
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), PROBE_INTERVAL);
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), PROBES);
    }
}
