//! Serves DNS by UDP and TCP on one address.
//!
//! Bounds: a datagram is answered before the next one is read, unless it has to be forwarded, and those are bounded by
//! the forwarder; connections are bounded in number, and each in the time that it may take for its next question, and
//! to take an answer.

mod addresses;
mod message;
mod respond;
mod tcp;
mod udp;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use respond::Responder;
pub use tcp::Limits;

/// The longest datagram that is sent, which fits into a packet on any path. Longer answers are truncated, and asked for
/// again by TCP.
pub const UDP_PAYLOAD: u16 = 1232;
/// The tasks that read datagrams, one for each thread of the process.
const UDP_TASKS: usize = 2;
/// Attempts to find a port that is free for both protocols.
const BIND_ATTEMPTS: usize = 16;

/// A bound server.
pub struct Server {
    udp: Arc<UdpSocket>,
    tcp: TcpListener,
    limits: Limits,
}

impl Server {
    /// Binds an address, with port 0 a port that is free for both protocols.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    pub async fn bind(address: SocketAddr, limits: Limits) -> anyhow::Result<Self> {
        let mut attempts = 0;
        let bound = loop {
            attempts += 1;
            match bind_both(address).await {
                Err(error) if address.port() == 0 && attempts < BIND_ATTEMPTS => drop(error),
                bound => break bound,
            }
        };
        let (udp, tcp) = bound.with_context(|| format!("cannot listen on {address} for DNS"))?;
        Ok(Self {
            udp: Arc::new(udp),
            tcp,
            limits,
        })
    }

    /// Returns the address, with the actual port.
    ///
    /// # Errors
    /// If the socket has none.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// Serves until `stop`; then ends connections and forwarded questions.
    pub async fn run(self, responder: Responder, stop: CancellationToken) {
        let mut tasks = JoinSet::new();
        let responder = Arc::new(responder);
        for _ in 0..UDP_TASKS {
            tasks.spawn(udp::serve(self.udp.clone(), responder.clone()));
        }
        tasks.spawn(tcp::serve(self.tcp, responder, self.limits));
        stop.cancelled().await;
    }
}

async fn bind_both(address: SocketAddr) -> io::Result<(UdpSocket, TcpListener)> {
    let tcp = TcpListener::bind(address).await?;
    let udp = UdpSocket::bind(tcp.local_addr()?).await?;
    Ok((udp, tcp))
}
