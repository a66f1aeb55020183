//! Connects Pods to the network of their node, and streams to Pods.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};

use super::network::{self, Namespace};
use super::{Processes, state_error};
use crate::streams::{CONNECT_TIMEOUT, Unconnected, connection};
use crate::{Connection, Error, SandboxConfig};

impl Processes {
    /// Makes the network of Pods with these addresses, for existing Pods too.
    pub(super) async fn make_network(&self, range: &str) -> Result<(), Error> {
        let Some(network) = &self.shared.network else {
            return Ok(());
        };
        let failed = |source| state_error("the network of Pods", source);
        let known = |uid: &str| self.shared.table.lock().key(uid).is_some();
        network.remove_others(known).await.map_err(failed)?;
        let existing = self.shared.table.lock().configs();
        network.set_range(range, &existing).await.map_err(failed)
    }

    /// Connects a Pod, unless it is in the network of its node.
    pub(super) async fn connect_to_network(&self, config: &SandboxConfig) -> Result<(), Error> {
        let folder = self.sandbox_folder(&config.uid);
        let network = self.shared.network.as_ref();
        let connected = match network.filter(|_| !config.host_network) {
            Some(network) => network.connect(&folder, config).await,
            None => network::leave(&folder).await,
        };
        connected.map_err(|source| state_error(&config.uid, source))
    }

    /// Disconnects a Pod whose containers have ended.
    pub(super) async fn disconnect(&self, config: &SandboxConfig) -> Result<(), Error> {
        let Some(network) = &self.shared.network else {
            return Ok(());
        };
        let folder = self.sandbox_folder(&config.uid);
        let disconnected = network.disconnect(&folder, config).await;
        disconnected.map_err(|source| state_error(&config.uid, source))
    }

    /// Returns the network namespace of a Pod; `None` if it is in that of the machine.
    pub(super) fn namespace_of(&self, uid: &str) -> Result<Option<Namespace>, Error> {
        let namespace = network::of_pod(&self.sandbox_folder(uid));
        namespace.map_err(|source| state_error(uid, source))
    }
}

/// Connects to a port of the loopback of a Pod, first of IPv4, as runtimes of containers do for `port-forward`.
pub async fn dial_within(namespace: &Namespace, port: u16) -> Result<Connection, Error> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let failed = |source| Error::Connect(Unconnected { address, source });
    let dialled = namespace.inside(move || {
        let other = SocketAddr::from((Ipv6Addr::LOCALHOST, port));
        let dial = |to: &SocketAddr| TcpStream::connect_timeout(to, CONNECT_TIMEOUT);
        let stream = dial(&address).or_else(|error| dial(&other).map_err(|_| error))?;
        stream.set_nonblocking(true).map(|()| stream)
    });
    let stream: io::Result<_> = dialled.await.and_then(|stream| {
        let stream = tokio::net::TcpStream::from_std(stream)?;
        connection(stream)
    });
    stream.map_err(failed)
}
