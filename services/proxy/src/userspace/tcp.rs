//! Connections of TCP: accepted, connected to an endpoint, and copied both ways.
//!
//! An endpoint that does not accept the connection in time is passed over for another one, before a byte of the client
//! was read. From then on the connection is the endpoint's: it stays while the Service changes or goes, and ends when
//! either side ends it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, warn};

use super::metrics::Reason;
use super::route::Route;
use super::splice;
use super::{ATTEMPTS, Shared};
use crate::Protocol;

/// The pause after an error of `accept`, such as of too many open files.
const PAUSE: Duration = Duration::from_millis(50);

/// Accepts connections until it is dropped.
pub async fn serve(listener: TcpListener, route: watch::Receiver<Arc<Route>>, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((stream, SocketAddr::V4(peer))) => admit(stream, *peer.ip(), &route, &shared),
            Ok(_) => {}
            Err(error) => {
                warn!(%error, "connections are not accepted for a moment");
                sleep(PAUSE).await;
            }
        }
    }
}

/// Forwards a connection in a task of its own, or resets it if there are too many.
fn admit(
    client: TcpStream,
    from: Ipv4Addr,
    route: &watch::Receiver<Arc<Route>>,
    shared: &Arc<Shared>,
) {
    let Ok(permit) = Arc::clone(&shared.permits).try_acquire_owned() else {
        shared.tcp.refused(Reason::Limit);
        return reset(&client);
    };
    let (route, shared) = (Arc::clone(&route.borrow()), Arc::clone(shared));
    tokio::spawn(async move {
        let _open = shared.tcp.open();
        if let Err(reason) = forward(&client, from, &route, &shared).await {
            shared.tcp.refused(reason);
            reset(&client);
        }
        drop(permit);
    });
}

/// Forwards a connection until it ends.
async fn forward(
    client: &TcpStream,
    from: Ipv4Addr,
    route: &Route,
    shared: &Shared,
) -> Result<(), Reason> {
    let endpoint = connect(from, route, shared).await?;
    // Segments are sent on as they arrive.
    let _ = (client.set_nodelay(true), endpoint.set_nodelay(true));
    let (pipes, metrics) = (&shared.pipes, &shared.tcp);
    let outcome = tokio::try_join!(
        splice::copy(client, &endpoint, pipes, &metrics.sent),
        splice::copy(&endpoint, client, pipes, &metrics.received),
    );
    if let Err(error) = outcome {
        debug!(%error, "a connection ended with an error");
        reset(client);
        reset(&endpoint);
    }
    Ok(())
}

async fn connect(from: Ipv4Addr, route: &Route, shared: &Shared) -> Result<TcpStream, Reason> {
    let target = route.target(from).ok_or(Reason::Policy)?;
    let pool = target.pool(from, is_local).map_err(|_| Reason::Policy)?;
    let mut tried = Vec::new();
    while tried.len() < ATTEMPTS {
        let (affinity, now) = (target.plan.affinity, Instant::now());
        let chosen = target.balancer.choose(pool, &tried, from, affinity, now);
        let Some(endpoint) = chosen else { break };
        let connected = match shared.is_front(Protocol::Tcp, endpoint) {
            true => Err(io::ErrorKind::AddrNotAvailable.into()),
            false => open(endpoint, shared.limits.connect_timeout).await,
        };
        match connected {
            Ok(stream) => return Ok(stream),
            Err(error) => {
                shared.tcp.failures.inc();
                debug!(%endpoint, %error, port = %target.plan.id, "an endpoint does not accept a connection");
                tried.push(endpoint);
            }
        }
    }
    Err(Reason::Endpoints)
}

async fn open(endpoint: SocketAddrV4, time: Duration) -> io::Result<TcpStream> {
    let connected = timeout(time, TcpStream::connect(SocketAddr::V4(endpoint)));
    connected.await.unwrap_or_else(|late| Err(late.into()))
}

/// Returns whether an address is one of this machine.
pub fn is_local(address: Ipv4Addr) -> bool {
    address.is_loopback() || UdpSocket::bind((address, 0)).is_ok()
}

/// Lets a connection end with a reset when it is dropped.
fn reset(stream: &TcpStream) {
    let set: io::Result<()> = SockRef::from(stream).set_linger(Some(Duration::ZERO));
    if let Err(error) = set {
        debug!(%error, "a connection is closed instead of reset");
    }
}
