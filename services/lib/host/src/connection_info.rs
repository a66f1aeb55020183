//! The connection of a request: its local address, and a nonce.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

/// The connection of a request; an extension of every request.
#[derive(Clone, Debug)]
pub struct ConnectionInfo(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    local: SocketAddr,
    nonce: OnceLock<String>,
}

impl ConnectionInfo {
    /// Returns the description of a new connection to `local`, an address of this process.
    pub fn new(local: SocketAddr) -> Self {
        Self(Arc::new(Inner {
            local: SocketAddr::new(local.ip().to_canonical(), local.port()),
            nonce: OnceLock::new(),
        }))
    }

    /// Returns the address that the client is connected to.
    pub fn local(&self) -> SocketAddr {
        self.0.local
    }

    /// Returns a random text that no other connection has.
    pub fn nonce(&self) -> &str {
        let random = || hex::encode(rand::random::<[u8; 32]>());
        self.0.nonce.get_or_init(random)
    }
}
