//! Processes that objects tell of, and which of their addresses the gateway calls.
//!
//! Where nobody has to prove who they are, anyone can write a Node or a Lease that names any address. So the gateway calls
//! only what can be a process of its own cluster: never an address outside of private networks, never a link-local one (where
//! clouds answer with credentials), never etcd, and never itself.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::time::timeout;
use tonic::transport::Endpoint;

/// A name that is not resolved, and an address that does not answer, by then is not there.
const DIAL: Duration = Duration::from_secs(5);

/// The rule by which addresses are called.
#[derive(Clone, Debug, Default)]
pub struct Peers {
    /// Ports of etcd.
    store: BTreeSet<u16>,
    /// The port at which this process listens.
    own: Option<u16>,
}

impl Peers {
    /// Calls no etcd at these ports, and not this process at its own.
    pub fn except(store: impl IntoIterator<Item = u16>, own: u16) -> Self {
        Self {
            store: store.into_iter().collect(),
            own: Some(own),
        }
    }

    /// Returns an endpoint for `host` (a name or an IP) and `port`, with a limit on the time that connecting takes.
    ///
    /// # Errors
    /// Why that address is not called, or that the name is unknown.
    pub async fn endpoint(&self, host: &str, port: u16) -> Result<Endpoint, String> {
        let resolved = timeout(DIAL, lookup_host((host, port))).await;
        let resolved = resolved.map_err(|_| format!("{host} is not resolved in {DIAL:?}"))?;
        let mut resolved = resolved.map_err(|error| format!("{host} is not resolved: {error}"))?;
        let address = resolved.next();
        let address = address.ok_or_else(|| format!("{host} has no address"))?;
        self.check(address)?;
        let endpoint = Endpoint::from_shared(format!("http://{address}"));
        let endpoint = endpoint.map_err(|error| error.to_string())?;
        Ok(endpoint.connect_timeout(DIAL).tcp_nodelay(true))
    }

    fn check(&self, address: SocketAddr) -> Result<(), String> {
        let (ip, port) = (address.ip().to_canonical(), address.port());
        if !is_private(ip) {
            return Err(format!(
                "{ip} is neither a loopback nor a private address: the gateway calls no others"
            ));
        }
        let itself = self.own == Some(port) && is_own(ip);
        if port == 0 || self.store.contains(&port) || itself {
            return Err(format!("no process that the gateway calls has port {port}"));
        }
        Ok(())
    }
}

/// Can it be of a process in the same private network?
fn is_private(ip: IpAddr) -> bool {
    const SHARED: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 0);
    match ip {
        IpAddr::V4(ip) => {
            let shared = ip.to_bits() >> 22 == SHARED.to_bits() >> 22;
            ip.is_loopback() || ip.is_private() || shared
        }
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local(),
    }
}

/// Only an address of one's own can be bound.
fn is_own(ip: IpAddr) -> bool {
    UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(address: &str) -> bool {
        let peers = Peers::except([2379], 6443);
        peers.check(address.parse().unwrap()).is_ok()
    }

    /// Checks F29.
    #[test]
    fn only_processes_of_the_cluster_are_called() {
        let called = [
            "127.0.0.1:8080",
            "10.1.2.3:8080",
            "172.18.0.4:8080",
            "100.64.0.1:8080",
            "[::1]:8080",
            "[fd00::1]:8080",
            "10.255.255.254:6443",
        ];
        for address in called {
            assert!(check(address), "{address}");
        }
        let not_called = [
            "169.254.169.254:80",
            "[::ffff:169.254.169.254]:80",
            "[fe80::1]:8080",
            "0.0.0.0:8080",
            "[::]:8080",
            "8.8.8.8:53",
            "224.0.0.1:8080",
            "255.255.255.255:8080",
            "10.1.2.3:2379",
            "127.0.0.1:2379",
            "127.0.0.1:6443",
            "127.0.0.1:0",
        ];
        for address in not_called {
            assert!(!check(address), "{address}");
        }
    }

    /// Checks F29.
    #[tokio::test]
    async fn a_name_is_judged_by_its_address() {
        let peers = Peers::except([2379], 6443);
        assert!(peers.endpoint("localhost", 8080).await.is_ok());
        assert!(peers.endpoint("localhost", 2379).await.is_err());
        let error = peers.endpoint("169.254.169.254", 80).await.unwrap_err();
        assert!(
            error.contains("neither a loopback nor a private"),
            "{error}"
        );
        assert!(peers.endpoint("", 80).await.is_err());
    }
}
