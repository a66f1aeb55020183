//! IP addresses.

use std::net::IpAddr;
use std::sync::OnceLock;

use crate::Cidr;

/// The loopback range of the cluster whose addresses may be those of endpoints.
static LOOPBACK: OnceLock<Cidr> = OnceLock::new();

/// Returns the loopback range that a setting names, `None` if it is empty.
///
/// # Errors
/// If it is no range within 127.0.0.0/8.
pub fn loopback_range(text: &str) -> Result<Option<Cidr>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let range: Cidr = text.parse()?;
    let is_loopback = range.first().is_loopback() && range.last().is_loopback();
    match is_loopback {
        true => Ok(Some(range)),
        false => Err(format!("{text:?} is not a range within 127.0.0.0/8")),
    }
}

/// Lets Services forward to addresses of a loopback range from now on, in this process: that of a cluster on one
/// machine whose Pods have addresses of the loopback. The first call counts: the range is a setting.
pub fn allow_loopback_endpoints(range: Cidr) {
    // All parts of a process are of one cluster, and have its range.
    let _ = LOOPBACK.set(range);
}

fn is_allowed(address: IpAddr) -> bool {
    let allowed = LOOPBACK.get();
    allowed.is_some_and(|range| matches!(address, IpAddr::V4(ip) if range.contains(ip)))
}

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
            address.is_loopback() && !is_allowed(address),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        endpoint_problems(text, text.parse().unwrap())
    }

    #[test]
    fn addresses_of_the_loopback_are_refused_except_for_the_range_of_the_cluster() {
        let refused = ["may not be in the loopback range (127.0.0.0/8, ::1/128)"];
        assert_eq!(problems("127.1.2.3"), refused);
        let range = loopback_range("127.1.0.0/16").unwrap().unwrap();
        allow_loopback_endpoints(range);
        assert!(problems("127.1.2.3").is_empty());
        assert_eq!(problems("127.2.0.1"), refused);
        assert_eq!(problems("::1"), refused);
        assert_eq!(
            problems("::ffff:127.1.2.3").len(),
            0,
            "it is the same address"
        );
        assert_eq!(problems("169.254.1.1").len(), 1);
    }

    #[test]
    fn a_loopback_range_is_within_the_loopback() {
        assert_eq!(loopback_range(""), Ok(None));
        for wrong in [
            "10.0.0.0/8",
            "126.0.0.0/7",
            "0.0.0.0/0",
            "::1/128",
            "127.1.2.3/99",
        ] {
            assert!(loopback_range(wrong).is_err(), "{wrong}");
        }
    }
}
