//! The addresses of the Pods of a node. Pure.

use std::net::Ipv4Addr;

use setpoint_model::Cidr;

/// The addresses of the Pods of a node: of the first hosts of a range, host 1 is the node, the others are for Pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PodNetwork {
    /// The first address of the range.
    base: Ipv4Addr,
    /// The last host for Pods.
    pub(super) last: u8,
}

impl PodNetwork {
    /// Returns the /24 network with this first address.
    pub const fn new(base: Ipv4Addr) -> Self {
        Self { base, last: 254 }
    }

    /// Parses a range such as `spec.podCIDR` of a Node; `None` if it is no range with room for Pods. Of a range that is
    /// larger than /24, the first addresses are used.
    pub fn parse(range: &str) -> Option<Self> {
        let range: Cidr = range.parse().ok()?;
        let (base, last) = (range.first(), range.last().to_bits());
        // The last address is that of all hosts.
        let last = last.checked_sub(base.to_bits())?.checked_sub(1)?.min(254);
        let last = u8::try_from(last).ok().filter(|last| *last >= 2)?;
        Some(Self { base, last })
    }

    /// Returns the address of a host.
    pub fn address(self, host: u8) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.base.to_bits().saturating_add(host.into()))
    }

    /// Returns the host with this address, if that is for Pods.
    pub(super) fn host(self, ip: Ipv4Addr) -> Option<u8> {
        let host = ip.to_bits().checked_sub(self.base.to_bits())?;
        let host = u8::try_from(host).ok()?;
        (2..=self.last).contains(&host).then_some(host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_hosts_for_pods_between_the_node_and_the_broadcast_address() {
        for (range, first, last) in [
            ("10.244.3.0/24", [10, 244, 3, 2], [10, 244, 3, 254]),
            ("10.244.3.64/26", [10, 244, 3, 66], [10, 244, 3, 126]),
            ("10.0.0.0/8", [10, 0, 0, 2], [10, 0, 0, 254]),
            ("10.1.2.3/24", [10, 1, 2, 2], [10, 1, 2, 254]),
        ] {
            let network = PodNetwork::parse(range).unwrap();
            let ends = [2, network.last].map(|host| network.address(host).octets());
            assert_eq!(ends, [first, last], "{range}");
            assert_eq!(network.host(network.address(2)), Some(2));
            assert_eq!(network.host(network.address(1)), None);
            assert_eq!(network.host(Ipv4Addr::new(10, 255, 0, 2)), None);
        }
    }

    #[test]
    fn a_range_without_room_or_of_another_family_is_none() {
        for range in [
            "",
            "10.0.0.0",
            "10.0.0.0/31",
            "10.0.0.0/33",
            "fd00::/64",
            "x/24",
        ] {
            assert_eq!(PodNetwork::parse(range), None, "{range}");
        }
    }
}
