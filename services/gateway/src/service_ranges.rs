//! The ranges of the addresses and of the node ports of Services (upstream: `--service-cluster-ip-range`,
//! `--service-node-port-range`).

use std::fmt;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use setpoint_model::Cidr;

/// The shortest prefix, as upstream: 20 bits for the addresses.
const SHORTEST_PREFIX: u8 = 12;
/// The longest prefix, as upstream: eight addresses.
const LONGEST_PREFIX: u8 = 29;

/// Kubernetes' default range of addresses.
const DEFAULT: Cidr = match Cidr::new(Ipv4Addr::new(10, 96, 0, 0), 16) {
    Some(range) => range,
    None => Cidr::host(Ipv4Addr::new(10, 96, 0, 0)),
};

/// The addresses and node ports that Services get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServiceRanges {
    addresses: Cidr,
    pub(crate) ports: RangeInclusive<u16>,
}

impl Default for ServiceRanges {
    /// Returns the defaults of Kubernetes.
    fn default() -> Self {
        Self {
            addresses: DEFAULT,
            ports: 30_000..=32_767,
        }
    }
}

/// Writes the range of addresses.
impl fmt::Display for ServiceRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.addresses.prefixed())
    }
}

impl ServiceRanges {
    /// Parses a range of addresses and one of ports.
    ///
    /// # Errors
    /// The setting that is wrong, and why.
    pub(crate) fn parse(addresses: &str, ports: &str) -> Result<Self, String> {
        let of_addresses = |why| format!("service_cluster_ip_range: {addresses:?} {why}");
        let range = network(addresses).map_err(of_addresses)?;
        let of_ports = |why| format!("service_node_port_range: {ports:?} {why}");
        Ok(Self {
            addresses: range,
            ports: port_range(ports).map_err(of_ports)?,
        })
    }

    /// Returns the first address, which is that of the Service `kubernetes`.
    pub(crate) fn first(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.addresses.first().to_bits() | 1)
    }

    /// Returns the range of addresses.
    pub(crate) const fn range(&self) -> Cidr {
        self.addresses
    }
}

/// Parses the network of a range of IPv4. Bits beyond its prefix are ignored, as upstream.
fn network(text: &str) -> Result<Cidr, &'static str> {
    const FORM: &str = "is not a range of IPv4 addresses such as 10.96.0.0/16";
    let range = text.contains('/').then(|| text.parse().ok()).flatten();
    let range: Cidr = range.ok_or(FORM)?;
    match range.bits() {
        SHORTEST_PREFIX..=LONGEST_PREFIX => Ok(range),
        ..SHORTEST_PREFIX => Err("is too large; for 32-bit addresses, the mask must be >= 12"),
        _ => Err("is too small; it must have at least 8 IP addresses"),
    }
}

/// Parses `first-last`, `first+more` or one port.
fn port_range(text: &str) -> Result<RangeInclusive<u16>, &'static str> {
    const FORM: &str = "is not a range of ports such as 30000-32767";
    let parse = |text: &str| text.trim().parse::<u16>().map_err(|_| FORM);
    let range = if let Some((first, last)) = text.split_once('-') {
        parse(first)?..=parse(last)?
    } else if let Some((first, more)) = text.split_once('+') {
        let first = parse(first)?;
        first..=first.saturating_add(parse(more)?)
    } else {
        parse(text)?..=parse(text)?
    };
    match range.is_empty() || *range.start() == 0 {
        true => Err("must be of ports from 1 to 65535, the first of which is not beyond the last"),
        false => Ok(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_upstreams_forms_and_limits() {
        assert_eq!(
            ServiceRanges::parse("10.96.0.0/16", "30000-32767"),
            Ok(ServiceRanges::default())
        );
        let small = ServiceRanges::parse("172.20.3.9/29", "31000+9").unwrap();
        assert_eq!(small.to_string(), "172.20.3.8/29");
        assert_eq!(small.first(), Ipv4Addr::new(172, 20, 3, 9));
        assert_eq!(small.ports, 31_000..=31_009);
        let one = ServiceRanges::parse("10.0.0.0/12", "80").unwrap();
        assert_eq!(one.ports, 80..=80);
        // That of a cluster whose Services carry traffic in user space.
        let loopback = ServiceRanges::parse("127.96.0.0/16", "30000-32767").unwrap();
        assert_eq!(loopback.first(), Ipv4Addr::new(127, 96, 0, 1));
        for (addresses, ports, expected) in [
            (
                "10.0.0.0",
                "80",
                "service_cluster_ip_range: \"10.0.0.0\" is not a range",
            ),
            (
                "fd00::/112",
                "80",
                "service_cluster_ip_range: \"fd00::/112\" is not a range",
            ),
            ("10.0.0.0/11", "80", "the mask must be >= 12"),
            ("10.0.0.0/30", "80", "at least 8 IP addresses"),
            (
                "10.0.0.0/16",
                "",
                "service_node_port_range: \"\" is not a range",
            ),
            ("10.0.0.0/16", "0-9", "from 1 to 65535"),
            ("10.0.0.0/16", "9-8", "from 1 to 65535"),
            ("10.0.0.0/16", "1-65536", "is not a range of ports"),
        ] {
            let error = ServiceRanges::parse(addresses, ports).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
