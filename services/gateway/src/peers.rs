//! The filter of addresses that the gateway may call.
//!
//! Without authentication, any client can write a Node or a Lease with any address in it. The gateway calls only addresses
//! that a process of its own cluster can have: never one outside of private networks, never a link-local one (where clouds
//! serve credentials), never etcd, and never itself.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tonic::transport::Endpoint;

/// The timeout of resolving a name, and that of connecting to an address.
const DIAL_TIMEOUT: Duration = Duration::from_secs(5);

/// The addresses that the gateway may call, as exceptions from those of private networks.
#[derive(Clone, Debug, Default)]
pub struct Peers {
    etcd_ports: BTreeSet<u16>,
    own_port: Option<u16>,
    /// The file with the secret of agents; empty for none.
    agent_secret_file: PathBuf,
}

impl Peers {
    /// Excludes the ports of etcd on every host, and the port of this process on its own addresses.
    pub fn except(etcd_ports: impl IntoIterator<Item = u16>, own_port: u16) -> Self {
        Self {
            etcd_ports: etcd_ports.into_iter().collect(),
            own_port: Some(own_port),
            agent_secret_file: PathBuf::new(),
        }
    }

    /// Sets the file with the secret that agents of nodes require.
    #[must_use]
    pub fn with_agent_secret(mut self, path: PathBuf) -> Self {
        self.agent_secret_file = path;
        self
    }

    /// Returns the file with the secret of agents; empty for none.
    pub fn agent_secret_file(&self) -> &Path {
        &self.agent_secret_file
    }

    /// Returns an endpoint for `host` (a name or an IP) and `port`, with a timeout for connecting.
    ///
    /// # Errors
    /// When the address is excluded, or the name cannot be resolved.
    pub async fn endpoint(&self, host: &str, port: u16) -> Result<Endpoint, String> {
        let resolved = timeout(DIAL_TIMEOUT, lookup_host((host, port))).await;
        let resolved =
            resolved.map_err(|_| format!("{host} is not resolved in {DIAL_TIMEOUT:?}"))?;
        let mut resolved = resolved.map_err(|error| format!("{host} is not resolved: {error}"))?;
        let address = resolved.next();
        let address = address.ok_or_else(|| format!("{host} has no address"))?;
        self.check(address)?;
        let endpoint = Endpoint::from_shared(format!("http://{address}"));
        let endpoint = endpoint.map_err(|error| error.to_string())?;
        Ok(endpoint.connect_timeout(DIAL_TIMEOUT).tcp_nodelay(true))
    }

    /// Connects to `host` (an IP) and `port`.
    ///
    /// # Errors
    /// When the address is excluded, or nothing answers there.
    pub async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, String> {
        let ip: IpAddr = host
            .parse()
            .map_err(|_| format!("{host:?} is no IP address"))?;
        let address = SocketAddr::new(ip, port);
        self.check(address)?;
        let connected = timeout(DIAL_TIMEOUT, TcpStream::connect(address)).await;
        let connected = connected.map_err(|_| format!("{address} does not answer"))?;
        connected.map_err(|error| error.to_string())
    }

    /// Checks the address of a process of the cluster.
    ///
    /// # Errors
    /// When the address is excluded.
    pub fn check(&self, address: SocketAddr) -> Result<(), String> {
        let ip = address.ip().to_canonical();
        if !is_private(ip) {
            return Err(format!(
                "{ip} is neither a loopback nor a private address, and the gateway calls only those"
            ));
        }
        self.check_port(ip, address.port())
    }

    /// Checks the address of a webhook, which may be outside of the cluster: its certificate is verified before anything is sent.
    ///
    /// # Errors
    /// When the address is excluded.
    pub fn check_webhook(&self, address: SocketAddr) -> Result<(), String> {
        let ip = address.ip().to_canonical();
        if is_link_local(ip) || ip.is_unspecified() || ip.is_multicast() {
            return Err(format!("the gateway does not call {ip}"));
        }
        self.check_port(ip, address.port())
    }

    fn check_port(&self, ip: IpAddr, port: u16) -> Result<(), String> {
        let own = self.own_port == Some(port) && is_own(ip);
        if port == 0 || self.etcd_ports.contains(&port) || own {
            return Err(format!("the gateway does not call {ip} at port {port}"));
        }
        Ok(())
    }
}

/// Returns whether the address is in a loopback, private or shared range.
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

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

/// Returns whether this host has the address: no other can be bound.
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
    fn only_private_addresses_without_etcd_and_itself_are_allowed() {
        let allowed = [
            "127.0.0.1:8080",
            "10.1.2.3:8080",
            "172.18.0.4:8080",
            "100.64.0.1:8080",
            "[::1]:8080",
            "[fd00::1]:8080",
            "10.255.255.254:6443",
        ];
        for address in allowed {
            assert!(check(address), "{address}");
        }
        let excluded = [
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
        for address in excluded {
            assert!(!check(address), "{address}");
        }
    }

    /// Checks F29.
    #[test]
    fn a_webhook_may_be_outside_of_the_cluster() {
        let peers = Peers::except([2379], 6443);
        let check = |address: &str| peers.check_webhook(address.parse().unwrap()).is_ok();
        for address in ["127.0.0.1:8443", "10.1.2.3:443", "8.8.8.8:443"] {
            assert!(check(address), "{address}");
        }
        for address in [
            "169.254.169.254:443",
            "[fe80::1]:443",
            "0.0.0.0:443",
            "10.1.2.3:2379",
            "127.0.0.1:6443",
        ] {
            assert!(!check(address), "{address}");
        }
    }

    /// Checks F29.
    #[tokio::test]
    async fn a_host_name_is_checked_by_its_address() {
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
