//! The data about the gateway itself that it publishes in the API.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::time::timeout;

/// The timeout of resolving the advertised name.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);
/// An address of documentation networks, to which the kernel finds a route. Nothing is sent to it.
const ELSEWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9);

/// The address of the gateway, as clients in the cluster see it.
#[derive(Clone, Debug)]
pub struct ServerInfo {
    /// The identity of the process.
    pub instance: String,
    /// The port of the gateway.
    pub port: u16,
    /// The address at which Pods reach the gateway; `None` if others than this host cannot.
    pub address: Option<IpAddr>,
}

impl Default for ServerInfo {
    fn default() -> Self {
        Self {
            instance: "gateway".into(),
            port: 6443,
            address: None,
        }
    }
}

/// Returns the address of `advertised`, a host and a port, that can be an endpoint of a Service. Upstream refuses
/// loopback addresses there, which mean another host to each client. Without a certain address, it is that of the route
/// to other networks.
pub(crate) async fn endpoint_address(advertised: &str) -> Option<IpAddr> {
    let resolved = timeout(RESOLVE_TIMEOUT, lookup_host(advertised)).await;
    let addresses: Vec<_> = resolved.ok()?.ok()?.map(|address| address.ip()).collect();
    match addresses.first() {
        Some(first) if first.is_unspecified() => outbound_address().filter(can_be_endpoint),
        _ => addresses.into_iter().find(can_be_endpoint),
    }
}

/// Returns the source address of packets to other networks. Connecting a UDP socket sends none.
fn outbound_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect(ELSEWHERE).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

fn can_be_endpoint(address: &IpAddr) -> bool {
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !(address.is_loopback() || address.is_unspecified() || address.is_multicast() || link_local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn loopback_addresses_are_no_endpoints() {
        for advertised in [
            "127.0.0.1:6443",
            "[::1]:6443",
            "169.254.1.1:6443",
            "nonsense",
        ] {
            assert_eq!(endpoint_address(advertised).await, None, "{advertised}");
        }
        let address = "10.1.2.3".parse().ok();
        assert_eq!(endpoint_address("10.1.2.3:6443").await, address);
        let found = endpoint_address("0.0.0.0:6443").await;
        assert!(
            found.is_none_or(|found| can_be_endpoint(&found)),
            "{found:?}"
        );
    }
}
