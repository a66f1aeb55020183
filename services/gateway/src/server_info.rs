//! The data about the gateway itself that it publishes in the API.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::time::timeout;

/// The timeout of resolving the advertised name.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);
/// A port for the route to an address. Nothing is sent to it.
const PORT: u16 = 9;

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
/// to `service`, an address of Services: in the network of Pods if that has these addresses, too.
pub(crate) async fn endpoint_address(advertised: &str, service: Ipv4Addr) -> Option<IpAddr> {
    let resolved = timeout(RESOLVE_TIMEOUT, lookup_host(advertised)).await;
    let addresses: Vec<_> = resolved.ok()?.ok()?.map(|address| address.ip()).collect();
    match addresses.first() {
        Some(first) if first.is_unspecified() => outbound_address(service).filter(can_be_endpoint),
        _ => addresses.into_iter().find(can_be_endpoint),
    }
}

/// Returns the source address of packets to an address. Connecting a UDP socket sends none.
fn outbound_address(to: Ipv4Addr) -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((to, PORT)).ok()?;
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
        let service = Ipv4Addr::new(10, 96, 0, 1);
        for advertised in [
            "127.0.0.1:6443",
            "[::1]:6443",
            "169.254.1.1:6443",
            "nonsense",
        ] {
            let found = endpoint_address(advertised, service).await;
            assert_eq!(found, None, "{advertised}");
        }
        let address = "10.1.2.3".parse().ok();
        assert_eq!(endpoint_address("10.1.2.3:6443", service).await, address);
        let found = endpoint_address("0.0.0.0:6443", service).await;
        assert!(
            found.is_none_or(|found| can_be_endpoint(&found)),
            "{found:?}"
        );
    }

    #[tokio::test]
    async fn an_uncertain_address_is_that_of_the_route_to_services() {
        let own = Ipv4Addr::LOCALHOST;
        assert_eq!(outbound_address(own), Some(own.into()));
        let found = endpoint_address("0.0.0.0:6443", own).await;
        assert_eq!(found, None, "as any loopback address");
    }
}
