//! IP addresses.

use std::net::IpAddr;

/// Returns the reasons for which no Service may forward to an address, which is written as `text` (upstream:
/// `ValidateEndpointIP`).
pub fn endpoint_problems(text: &str, address: IpAddr) -> Vec<String> {
    let address = address.to_canonical();
    let (local, multicast) = match address {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets().starts_with(&[224, 0, 0])),
        IpAddr::V6(v6) => (
            v6.is_unicast_link_local(),
            v6.octets()[0] == 0xff && v6.octets()[1] & 0x0f == 2,
        ),
    };
    let mut problems = Vec::new();
    if address.is_unspecified() {
        problems.push(format!("may not be unspecified ({text})"));
    }
    let ranges = [
        (
            address.is_loopback(),
            "may not be in the loopback range (127.0.0.0/8, ::1/128)",
        ),
        (
            local,
            "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
        ),
        (
            multicast,
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
        ),
    ];
    let within = ranges.into_iter().filter(|(is_within, _)| *is_within);
    problems.extend(within.map(|(_, problem)| problem.to_owned()));
    problems
}
