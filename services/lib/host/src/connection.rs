//! One connection of a client: its handshake, its requests, and the reasons to close it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use nix::sys::resource::{Resource, getrlimit};
use setpoint_tls::Credentials;
use tokio::net::TcpStream;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::connection_info::ConnectionInfo;
use crate::handshake::{self, ServerStream};
use crate::limits::Limits;
use crate::request::{OpenRequests, RequestHandler};
use crate::serve::Peer;
use crate::stall_timeout::{StallTimeout, count_cut};

/// HTTP/2 flow control windows of received data, in bytes.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 2 << 20;
/// A node-agent of many nodes keeps several watches for each of them on one connection.
const MAX_STREAMS: u32 = 16_384;
/// The time in which the head of a further request must arrive over HTTP/1.1. The connection may be idle meanwhile.
const NEXT_HEADER: Duration = Duration::from_secs(32);
/// A dead peer is detected after interval + timeout, which is less than the lease duration.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(5);
/// The time in which an idle connection must close, and for which a new one waits for a slot.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection of a client.
pub(crate) struct Connection {
    pub peer: SocketAddr,
    pub credentials: Option<Credentials>,
    pub handler: RequestHandler,
    pub limits: Arc<Limits>,
    pub requests: OpenRequests,
    pub slots: ConnectionSlots,
    pub shutdown: CancellationToken,
}

impl Connection {
    /// Serves the connection until it is closed.
    pub async fn run(self, stream: TcpStream) {
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
        let accepted = handshake::accept(stream, self.credentials.as_ref(), local);
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
    /// expires, so that the client connects again with its new one. Open requests go on. If its CA is no longer
    /// trusted, the connection is closed a moment later (`handshake::cut`).
    async fn leaves(&self, info: &ConnectionInfo) {
        tokio::select! {
            () = self.shutdown.cancelled() => {}
            () = info.expired() => {}
            () = info.distrusted() => {}
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
pub(crate) struct ConnectionSlots {
    free: Arc<Semaphore>,
    /// Wakes the connection that has been idle for longest.
    wanted: Arc<Notify>,
}

impl ConnectionSlots {
    pub fn new(limits: &Limits) -> Self {
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
        .header_read_timeout(NEXT_HEADER.max(limits.header));
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
