//! The one listener: HTTP/2 without upgrade and HTTP/1.1 with upgrades on the same port.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::Service;
use tracing::{debug, warn};

use crate::patience::Patient;

/// Windows large enough that a list of thousands of objects is not throttled by round trips.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;
/// An agent that hosts many nodes keeps several watches for each of them on one connection.
const STREAMS: u32 = 16_384;
/// A dead peer is noticed after interval + timeout, which is well inside a lease.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(5);
/// Long enough for people typing HTTP by hand, short enough that silent connections do not pile up.
const HEADERS_TIMEOUT: Duration = Duration::from_secs(30);
/// When no file descriptor is left, accepting at once again would only spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Who is at the other end; every request carries it as an extension.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// Listens on `address`; port 0 picks a free one.
///
/// # Errors
/// The port is taken, or not ours to take.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}

/// Answers every connection with `router` until `shutdown`, then lets requests under way finish. A client that takes
/// nothing of what is sent to it for as long as `stall` is cut off.
///
/// It waits for them without a deadline: who calls it sets one. Dropping it cuts what is left.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    stall: Duration,
    shutdown: CancellationToken,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let router = router.clone();
                    connections.spawn(converse(stream, peer, router, stall, shutdown.clone()));
                }
                Err(error) => {
                    warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// One connection, from its first byte to its last.
async fn converse(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    stall: Duration,
    shutdown: CancellationToken,
) {
    // Without it small answers wait for the peer's delayed acknowledgement, some 40 ms.
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%peer, %error, "connection ended before it began");
        return;
    }
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        router.clone().call(request)
    });
    let builder = protocol();
    let connection =
        builder.serve_connection_with_upgrades(TokioIo::new(Patient::new(stream, stall)), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        debug!(%peer, %error, "connection ended badly");
    }
}

fn protocol() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_TIMEOUT);
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
