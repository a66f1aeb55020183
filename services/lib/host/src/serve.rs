//! The one listener: HTTP/2 without upgrade and HTTP/1.1 with upgrades on the same port.

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
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

pub use crate::limits::Limits;
pub use crate::origin::Hosts;
use crate::patience::{Patient, cut};
use crate::request::{Answerer, OpenRequests};

/// Of what clients send, so much is taken before it is asked for. Their own windows bound the answers.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 2 << 20;
/// An agent that hosts many nodes keeps several watches for each of them on one connection.
const STREAMS: u32 = 16_384;
/// A dead peer is noticed after interval + timeout, which is well inside a lease.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(5);
/// The time that a connection has to end after being told to, and that a new one waits for a place.
const GOODBYE: Duration = Duration::from_secs(2);
/// When no file descriptor is left, accepting at once again would only spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The client's address, an extension of every request.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// Listens on `address`; port 0 picks a free one.
///
/// # Errors
/// The port is taken, or not ours to take.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}

/// Answers every connection with `router`, within `limits`, until `shutdown`; then lets requests under way finish.
///
/// It waits for them without a deadline: who calls it sets one. Dropping it cuts what is left.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    shutdown: CancellationToken,
) {
    let places = Places::new(&limits);
    let limits = Arc::new(limits);
    let answerer = Answerer::new(router, Arc::clone(&limits));
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
                        answerer: answerer.clone(),
                        limits: Arc::clone(&limits),
                        requests: OpenRequests::default(),
                        places: places.clone(),
                        shutdown: shutdown.clone(),
                    };
                    connections.spawn(connection.converse(stream));
                }
                Err(error) => {
                    warn!(%error, "a connection could not be accepted");
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

/// A connection that panicked has ended; the others go on.
fn record(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && let Ok(payload) = error.try_into_panic()
    {
        Panicked::record("connection", &*payload);
    }
}

/// One client's connection.
struct Connection {
    peer: SocketAddr,
    answerer: Answerer,
    limits: Arc<Limits>,
    requests: OpenRequests,
    places: Places,
    shutdown: CancellationToken,
}

impl Connection {
    /// Serves it from its first byte to its last.
    async fn converse(self, stream: TcpStream) {
        let peer = self.peer;
        let Some(_place) = self.places.take().await else {
            cut("limit");
            return;
        };
        // Without it small answers wait for the peer's delayed acknowledgement, some 40 ms.
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%peer, %error, "connection ended before it began");
            return;
        }
        let (answerer, requests) = (self.answerer.clone(), self.requests.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(Peer(peer));
            answerer.clone().answer(request, requests.open())
        });
        let stream = TokioIo::new(Patient::new(stream, self.limits.stall));
        let builder = protocol(&self.limits);
        let connection = builder.serve_connection_with_upgrades(stream, service);
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.requests.stalled() => {
                cut("stalled");
                return;
            }
            () = self.shutdown.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
            () = self.unused() => {
                connection.as_mut().graceful_shutdown();
                // What does not even say goodbye is dropped.
                timeout(GOODBYE, connection).await.unwrap_or(Ok(()))
            }
        };
        if let Err(error) = ended {
            debug!(%peer, %error, "connection ended badly");
        }
    }

    /// Returns when no request has been open for too long, or for the longest of all while another connection needs the place.
    async fn unused(&self) {
        let mut requests = self.requests.follow();
        let mut patience = self.limits.header;
        loop {
            if *requests.borrow_and_update() > 0 {
                let _ = requests.changed().await;
                continue;
            }
            tokio::select! {
                _ = requests.changed() => patience = self.limits.idle,
                () = sleep(patience) => return cut("idle"),
                () = self.places.wanted.notified() => return cut("limit"),
            }
        }
    }
}

/// The places for connections.
#[derive(Clone)]
struct Places {
    free: Arc<Semaphore>,
    /// Wakes the connection that has waited longest for a request.
    wanted: Arc<Notify>,
}

impl Places {
    fn new(limits: &Limits) -> Self {
        let descriptors = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
        let descriptors = usize::try_from(descriptors).unwrap_or(usize::MAX);
        let places = limits.connections.min(descriptors / 4 * 3).max(1);
        Self {
            free: Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS))),
            wanted: Arc::default(),
        }
    }

    /// Takes a place, if need be that of a connection without a request. `None` if there is none soon.
    async fn take(&self) -> Option<OwnedSemaphorePermit> {
        let free = || Arc::clone(&self.free);
        if let Ok(place) = free().try_acquire_owned() {
            return Some(place);
        }
        self.wanted.notify_one();
        timeout(GOODBYE, free().acquire_owned()).await.ok()?.ok()
    }
}

fn protocol(limits: &Limits) -> auto::Builder<TokioExecutor> {
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
        .max_concurrent_streams(STREAMS);
    builder
}
