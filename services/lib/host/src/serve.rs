//! The listener: HTTP/2 and HTTP/1.1 with upgrades on the same port, with TLS or without. Without TLS, HTTP/2 is used
//! with prior knowledge.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use nix::sys::resource::{Resource, getrlimit};
use setpoint_task::Panicked;
use setpoint_tls::Credentials;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

pub use crate::connection_info::ConnectionInfo;
use crate::handshake::ServerStream;
pub use crate::limits::Limits;
pub use crate::origin::Hosts;
use crate::request::{OpenRequests, RequestHandler};
use crate::stall_timeout::{StallTimeout, count_cut};

/// HTTP/2 flow control windows of received data, in bytes.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 2 << 20;
/// A node-agent of many nodes keeps several watches for each of them on one connection.
const MAX_STREAMS: u32 = 16_384;
/// A dead peer is detected after interval + timeout, which is less than the lease duration.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(5);
/// The time for which nothing may come on a connection, the interval of the probes that follow, and their number.
/// Upgraded connections have no other sign that their client has vanished.
const PROBE_IDLE: Duration = Duration::from_secs(30);
const PROBE_INTERVAL: Duration = Duration::from_secs(10);
const PROBES: u32 = 3;
/// The time in which an idle connection must close, and for which a new one waits for a slot.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
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

/// A connection of a client.
struct Connection {
    peer: SocketAddr,
    credentials: Option<Credentials>,
    handler: RequestHandler,
    limits: Arc<Limits>,
    requests: OpenRequests,
    slots: ConnectionSlots,
    shutdown: CancellationToken,
}

impl Connection {
    /// Serves the connection until it is closed.
    async fn run(self, stream: TcpStream) {
        let Some(slot) = self.slots.take().await else {
            count_cut("limit");
            return;
        };
        let peer = self.peer;
        match self.begin(stream, slot).await {
            Ok(Some((stream, info))) => self.answer(stream, info).await,
            Ok(None) => {}
            Err(error) => debug!(%peer, %error, "connection closed before its first request"),
        }
    }

    /// Makes the handshake; `None` if the connection is to be closed.
    async fn begin(
        &self,
        stream: TcpStream,
        slot: OwnedSemaphorePermit,
    ) -> io::Result<Option<(ServerStream, ConnectionInfo)>> {
        // With Nagle's algorithm small responses wait for the peer's delayed acknowledgement, some 40 ms.
        stream.set_nodelay(true)?;
        let local = stream.local_addr()?;
        let stream = StallTimeout::new(stream, slot, self.limits.stall);
        let accepted = ServerStream::accept(stream, self.credentials.as_ref(), local);
        tokio::select! {
            biased;
            accepted = accepted => return accepted.map(Some),
            () = self.shutdown.cancelled() => {}
            () = sleep(self.limits.handshake) => count_cut("handshake"),
            () = self.slots.wanted.notified() => count_cut("limit"),
        }
        Ok(None)
    }

    /// Answers the requests of the connection until it is closed.
    async fn answer(&self, stream: ServerStream, info: ConnectionInfo) {
        let (handler, requests, peer) = (self.handler.clone(), self.requests.clone(), self.peer);
        let of_requests = info.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(Peer(peer));
            request.extensions_mut().insert(of_requests.clone());
            handler.clone().handle(request, requests.open())
        });
        let builder = connection_builder(&self.limits);
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = self.until_stalled(connection.as_mut()) => ended,
            () = self.leaves(&info) => {
                connection.as_mut().graceful_shutdown();
                self.until_stalled(connection).await
            }
            () = self.idle() => {
                connection.as_mut().graceful_shutdown();
                // Dropped if the client does not close it in time.
                timeout(CLOSE_TIMEOUT, connection).await.unwrap_or(Ok(()))
            }
        };
        if let Err(error) = ended {
            debug!(%peer, %error, "connection failed");
        }
    }

    /// Waits until the connection ends, or its client has stopped reading one of the responses.
    async fn until_stalled<E>(
        &self,
        connection: impl Future<Output = Result<(), E>>,
    ) -> Result<(), E> {
        tokio::select! {
            ended = connection => ended,
            () = self.requests.stalled() => {
                count_cut("stalled");
                Ok(())
            }
        }
    }

    /// Waits until the connection may have no further requests: at shutdown, and when the client's certificate
    /// expires, so that the client connects again with its new one. Open requests go on.
    async fn leaves(&self, info: &ConnectionInfo) {
        tokio::select! {
            () = self.shutdown.cancelled() => {}
            () = info.expired() => {}
        }
    }

    /// Waits until the connection has been idle for too long, or has been idle for longest while another one needs its
    /// slot.
    async fn idle(&self) {
        let mut requests = self.requests.follow();
        let mut limit = self.limits.header;
        loop {
            if *requests.borrow_and_update() > 0 {
                let _ = requests.changed().await;
                continue;
            }
            tokio::select! {
                _ = requests.changed() => limit = self.limits.idle,
                () = sleep(limit) => return count_cut("idle"),
                () = self.slots.wanted.notified() => return count_cut("limit"),
            }
        }
    }
}

/// The slots of open connections.
#[derive(Clone)]
struct ConnectionSlots {
    free: Arc<Semaphore>,
    /// Wakes the connection that has been idle for longest.
    wanted: Arc<Notify>,
}

impl ConnectionSlots {
    fn new(limits: &Limits) -> Self {
        let descriptors = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
        let descriptors = usize::try_from(descriptors).unwrap_or(usize::MAX);
        let slots = limits.connections.min(descriptors / 8 * 3).max(1);
        Self {
            free: Arc::new(Semaphore::new(slots.min(Semaphore::MAX_PERMITS))),
            wanted: Arc::default(),
        }
    }

    /// Takes a slot, if necessary that of an idle connection; `None` if no slot becomes free in time.
    async fn take(&self) -> Option<OwnedSemaphorePermit> {
        let free = || Arc::clone(&self.free);
        if let Ok(slot) = free().try_acquire_owned() {
            return Some(slot);
        }
        self.wanted.notify_one();
        timeout(CLOSE_TIMEOUT, free().acquire_owned())
            .await
            .ok()?
            .ok()
    }
}

fn connection_builder(limits: &Limits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(MAX_STREAMS);
    builder
}

#[cfg(test)]
mod tests {
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
