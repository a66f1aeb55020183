//! Validation of IP addresses and CIDR ranges, as strict as in Kubernetes 1.36.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use setpoint_model::ip::endpoint_problems;

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

/// Validates an IP address.
pub fn validate(text: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if let Some(detail) = problem(text) {
        errors.invalid(path, text, detail);
    }
}

/// Returns the problem of an IP address; `None` if it is valid.
fn problem(text: &str) -> Option<&'static str> {
    match text.parse() {
        Ok(IpAddr::V6(address)) if is_mapped(address) => {
            Some("must not be an IPv4-mapped IPv6 address")
        }
        Ok(_) => None,
        Err(_) if without_leading_zeros(text).is_some() => Some("must not have leading 0s"),
        Err(_) => Some("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
    }
}

/// Parses an IP address; octets of IPv4 may have leading zeros.
pub fn parse(text: &str) -> Option<IpAddr> {
    let exactly = text.parse().ok();
    exactly.or_else(|| without_leading_zeros(text).map(IpAddr::V4))
}

/// Validates a CIDR range.
pub fn validate_range(text: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let Some((address, length)) = parse_range(text) else {
        let detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        return errors.invalid(path, text, detail);
    };
    let strict = text.split_once('/').is_some_and(|(before, after)| {
        before.parse::<IpAddr>().is_ok() && (after == "0" || !after.starts_with('0'))
    });
    if !strict {
        errors.invalid(
            path,
            text,
            "must not have leading 0s in IP or prefix length",
        );
    } else if matches!(address, IpAddr::V6(address) if is_mapped(address)) {
        errors.invalid(path, text, "must not have an IPv4-mapped IPv6 address");
    } else if has_bits_beyond(address, length) {
        errors.invalid(
            path,
            text,
            "must not have bits set beyond the prefix length",
        );
    }
}

/// Returns the problems of an IP address in its canonical form (upstream: `IsValidIP`).
pub fn check_canonical(text: &str) -> Vec<String> {
    let problem = problem(text).map(str::to_owned);
    let canonical = text.parse().map(|address: IpAddr| address.to_string());
    let problem = problem.or_else(|| {
        let canonical = canonical.ok().filter(|canonical| canonical != text)?;
        Some(format!("must be in canonical form ({canonical:?})"))
    });
    problem.into_iter().collect()
}

/// Validates a CIDR range in its canonical form (upstream: `IsValidCIDR`).
pub fn validate_canonical_range(text: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let before = errors.count();
    validate_range(text, path, errors);
    if let Some((address, length)) = parse_range(text)
        && errors.count() == before
        && format!("{address}/{length}") != text
    {
        let detail = format!("must be in canonical form (\"{address}/{length}\")");
        errors.invalid(path, text, detail);
    }
}

/// Validates that a Service may forward to the address (upstream: `ValidateEndpointIP`).
pub fn validate_endpoint(text: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let Some(address) = parse(text) else {
        return errors.invalid(path, text, "must be a valid IP address");
    };
    for problem in endpoint_problems(text, address) {
        errors.invalid(path, text, problem);
    }
}

/// Parses a CIDR range; octets and length may have leading zeros.
pub fn parse_range(text: &str) -> Option<(IpAddr, u32)> {
    let (address, length) = text.split_once('/')?;
    let (address, length) = (parse(address)?, digits(length)?);
    (length <= width(address)).then_some((address, length))
}

/// Returns whether `inner` is a range within `outer` and smaller.
pub fn is_strictly_within(inner: (IpAddr, u32), outer: (IpAddr, u32)) -> bool {
    let network = |address: IpAddr, length: u32| match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - length.min(32)).unwrap_or(0);
            u128::from(address.to_bits() & mask)
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - length.min(128)).unwrap_or(0);
            address.to_bits() & mask
        }
    };
    inner.0.is_ipv4() == outer.0.is_ipv4()
        && inner.1 > outer.1
        && network(inner.0, outer.1) == network(outer.0, outer.1)
}

/// Returns whether there is at most one address of each family.
pub fn are_of_different_families<'a>(texts: impl Iterator<Item = &'a str>) -> bool {
    let (v6, v4): (Vec<_>, Vec<_>) = texts.partition(|text| text.contains(':'));
    v6.len() <= 1 && v4.len() <= 1
}

const fn is_mapped(address: Ipv6Addr) -> bool {
    address.to_ipv4_mapped().is_some()
}

const fn width(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

fn digits(text: &str) -> Option<u32> {
    let plain = !text.is_empty() && text.len() <= 3 && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

fn without_leading_zeros(text: &str) -> Option<Ipv4Addr> {
    let octet = |part: &str| u8::try_from(digits(part)?).ok();
    let octets: Option<Vec<u8>> = text.split('.').map(octet).collect();
    let octets: [u8; 4] = octets?.try_into().ok()?;
    Some(octets.into())
}

fn has_bits_beyond(address: IpAddr, length: u32) -> bool {
    match address {
        IpAddr::V4(address) => address.to_bits().checked_shl(length).unwrap_or(0) != 0,
        IpAddr::V6(address) => address.to_bits().checked_shl(length).unwrap_or(0) != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors_of(check: fn(&str, &FieldPath<'_>, &mut FieldErrors), text: &str) -> String {
        let mut errors = FieldErrors::default();
        check(text, &FieldPath::root("ip"), &mut errors);
        errors.to_string()
    }

    #[test]
    fn addresses_are_validated_as_in_kubernetes() {
        for right in [
            "10.9.8.7",
            "0.0.0.0",
            "255.255.255.255",
            "2001:db8::1",
            "::",
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "0:0:0:0:0:0:0:0",
            "0001:002:03:4::",
            "1234::ABCD",
        ] {
            assert_eq!(errors_of(validate, right), "[]", "{right}");
        }
        for (wrong, why) in [
            ("", "must be a valid IP address"),
            ("1.2.3", "must be a valid IP address"),
            ("aaaaaaa", "must be a valid IP address"),
            ("myhost.mydomain", "must be a valid IP address"),
            ("1.2.3.0/24", "must be a valid IP address"),
            ("-1.0.0.0", "must be a valid IP address"),
            ("2001:db8::10005", "must be a valid IP address"),
            ("1.2.3.4:80", "must be a valid IP address"),
            ("[2001:db8::1]", "must be a valid IP address"),
            ("[2001:db8::1]:80", "must be a valid IP address"),
            ("example.com:80", "must be a valid IP address"),
            ("169.254.0.0%eth0", "must be a valid IP address"),
            ("1.2.3.256", "must be a valid IP address"),
            ("fe80::1%eth0", "must be a valid IP address"),
            ("1.2.3.04", "must not have leading 0s"),
            ("::ffff:1.2.3.4", "must not be an IPv4-mapped IPv6 address"),
        ] {
            assert!(errors_of(validate, wrong).contains(why), "{wrong}");
        }
    }

    #[test]
    fn ranges_are_validated_as_in_kubernetes() {
        for right in [
            "10.0.0.0/8",
            "0.0.0.0/0",
            "10.1.2.3/32",
            "2001:db8::/64",
            "::/0",
            "::1/128",
            "2a00:79e0:2:0::/64",
            "2001:DB8::/64",
        ] {
            assert_eq!(errors_of(validate_range, right), "[]", "{right}");
        }
        for (wrong, why) in [
            ("10.0.0.0", "must be a valid CIDR value"),
            ("", "must be a valid CIDR value"),
            ("aaaaaaa", "must be a valid CIDR value"),
            ("192.168.0.1/healthz", "must be a valid CIDR value"),
            ("192.168.0.1/0/99", "must be a valid CIDR value"),
            ("192.168.0.0/-16", "must be a valid CIDR value"),
            ("1.1.01.0/24", "must not have leading 0s in IP"),
            ("192.168.0.0/016", "must not have leading 0s"),
            ("::ffff:1.1.1.0/24", "IPv4-mapped"),
            ("2001:db8::1/64", "must not have bits set beyond"),
            ("10.0.0.0/33", "must be a valid CIDR value"),
            ("10.0.0.0/0008", "must be a valid CIDR value"),
            ("10.0.0.0/+8", "must be a valid CIDR value"),
            ("10.0.0.0/08", "must not have leading 0s"),
            ("010.0.0.0/8", "must not have leading 0s"),
            ("::ffff:1.2.3.0/120", "IPv4-mapped"),
            ("10.0.0.1/8", "must not have bits set beyond"),
        ] {
            assert!(errors_of(validate_range, wrong).contains(why), "{wrong}");
        }
    }

    #[test]
    fn canonical_forms_are_required_where_upstream_does() {
        assert!(check_canonical("2001:db8::1").is_empty());
        let expected = r#"must be in canonical form ("2001:db8::1")"#;
        assert_eq!(check_canonical("2001:DB8:0::1"), [expected]);
        assert_eq!(check_canonical("1.2.3.04"), ["must not have leading 0s"]);
        assert_eq!(errors_of(validate_canonical_range, "2001:db8::/64"), "[]");
        let errors = errors_of(validate_canonical_range, "2001:DB8::/64");
        assert!(errors.contains("must be in canonical form"), "{errors}");
    }

    /// Checks V18 (CVE-2021-25737).
    #[test]
    fn services_do_not_forward_to_local_addresses() {
        for right in ["10.0.0.1", "2001:db8::1", "224.0.1.1"] {
            assert_eq!(errors_of(validate_endpoint, right), "[]");
        }
        for (wrong, why) in [
            ("0.0.0.0", "may not be unspecified (0.0.0.0)"),
            ("127.0.0.1", "loopback"),
            ("::1", "loopback"),
            ("169.254.169.254", "link-local range"),
            ("fe80::1", "link-local range"),
            ("224.0.0.1", "link-local multicast"),
            ("ff02::1", "link-local multicast"),
            ("nowhere", "must be a valid IP address"),
        ] {
            assert!(errors_of(validate_endpoint, wrong).contains(why), "{wrong}");
        }
    }

    #[test]
    fn services_forward_to_the_loopback_range_of_the_cluster_and_to_no_other_of_the_loopback() {
        setpoint_model::ip::allow_loopback_endpoints("127.77.0.0/16".parse().unwrap());
        assert_eq!(errors_of(validate_endpoint, "127.77.0.9"), "[]");
        for other in ["127.0.0.1", "127.78.0.0", "::1"] {
            let errors = errors_of(validate_endpoint, other);
            let upstream = "may not be in the loopback range (127.0.0.0/8, ::1/128)";
            assert!(errors.contains(upstream), "{errors}");
        }
    }

    #[test]
    fn a_range_is_within_another_one_if_it_is_smaller_and_has_its_prefix() {
        let within = |inner, outer| {
            is_strictly_within(parse_range(inner).unwrap(), parse_range(outer).unwrap())
        };
        assert!(within("10.1.0.0/16", "10.0.0.0/8"));
        assert!(within("10.1.0.0/16", "0.0.0.0/0"));
        assert!(within("2001:db8::/64", "2001:db8::/32"));
        for (inner, outer) in [
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("11.0.0.0/16", "10.0.0.0/8"),
            ("10.0.0.0/8", "10.1.0.0/16"),
            ("2001:db8::/64", "0.0.0.0/0"),
        ] {
            assert!(!within(inner, outer), "{inner} {outer}");
        }
    }

    #[test]
    fn parsing_accepts_leading_zeros() {
        assert_eq!(parse("001.002.003.004"), parse("1.2.3.4"));
        assert!(parse("::1").is_some_and(|address| address.is_loopback()));
        for wrong in ["a.b", "1.2.3", "1.2.3.256"] {
            assert_eq!(parse(wrong), None);
        }
    }

    #[test]
    fn at_most_one_address_of_each_family_is_allowed() {
        assert!(are_of_different_families(["1.2.3.4", "::1"].into_iter()));
        assert!(!are_of_different_families(["::2", "::1"].into_iter()));
    }
}
