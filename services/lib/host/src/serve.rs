//! The listener: HTTP/2 and HTTP/1.1 with upgrades on the same port, with TLS or without. Without TLS, HTTP/2 is used
//! with prior knowledge.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use setpoint_task::Panicked;
use setpoint_tls::Credentials;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::connection::{Connection, ConnectionSlots};
pub use crate::connection_info::{ConnectionInfo, WeakConnection};
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
/// Number of connections that may wait to be accepted, as that of `TcpListener::bind`.
const BACKLOG: u32 = 1024;

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

/// Listens on `address`, which this machine may get later: that of a network that does not exist yet.
///
/// # Errors
/// If the port is in use or the process may not bind it.
pub fn bind_early(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    match address {
        SocketAddr::V4(_) => SockRef::from(&socket).set_freebind_v4(true)?,
        SocketAddr::V6(_) => SockRef::from(&socket).set_freebind_v6(true)?,
    }
    // As `TcpListener::bind` does: a port is free once its listener is gone.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
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
    serve_all(credentials, vec![listener], router, limits, shutdown).await;
}

/// Serves as [`serve_with`] does, on several listeners, whose connections share the limits.
pub async fn serve_all(
    credentials: Option<Credentials>,
    listeners: Vec<TcpListener>,
    router: Router,
    limits: Limits,
    shutdown: CancellationToken,
) {
    if let Err(error) = listeners.iter().try_for_each(keep_alive) {
        warn!(%error, "connections of vanished clients are kept");
    }
    let mut turn = 0;
    let slots = ConnectionSlots::new(&limits);
    let limits = Arc::new(limits);
    let handler = RequestHandler::new(router, Arc::clone(&limits));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            Some(ended) = connections.join_next() => record(ended),
            accepted = accept(&listeners, &mut turn) => match accepted {
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
    drop(listeners);
    while let Some(ended) = connections.join_next().await {
        record(ended);
    }
}

/// Accepts a connection of any listener. The first to be asked is another each time, so that none waits for the others.
async fn accept(
    listeners: &[TcpListener],
    turn: &mut usize,
) -> io::Result<(TcpStream, SocketAddr)> {
    *turn = turn.wrapping_add(1);
    let first = *turn % listeners.len().max(1);
    poll_fn(|context| {
        let (before, after) = listeners.split_at(first);
        let mut polled = after
            .iter()
            .chain(before)
            .map(|listener| listener.poll_accept(context));
        polled.find(Poll::is_ready).unwrap_or(Poll::Pending)
    })
    .await
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
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    async fn status(address: SocketAddr) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer.lines().next().unwrap_or_default().to_owned()
    }

    #[tokio::test]
    async fn all_listeners_are_served() {
        let listeners = vec![
            bind(([127, 0, 0, 1], 0).into()).await.unwrap(),
            bind_early(([127, 0, 0, 2], 0).into()).unwrap(),
        ];
        let addresses = [0, 1].map(|index: usize| listeners[index].local_addr().unwrap());
        let stop = CancellationToken::new();
        let limits = Limits::default();
        let serving = serve_all(None, listeners, Router::new(), limits, stop.clone());
        let server = tokio::spawn(serving);
        for address in addresses.into_iter().chain(addresses) {
            assert!(status(address).await.starts_with("HTTP/1.1 404"));
        }
        stop.cancel();
        server.await.unwrap();
    }

    /// 192.0.2.0/24 is for documentation: no machine has an address of it.
    #[tokio::test]
    async fn a_further_address_need_not_be_one_of_this_machine_yet() {
        let address: SocketAddr = ([192, 0, 2, 1], 0).into();
        assert!(bind(address).await.is_err());
        let listener = bind_early(address).unwrap();
        assert_eq!(listener.local_addr().unwrap().ip(), address.ip());
    }

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
