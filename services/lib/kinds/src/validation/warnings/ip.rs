//! Warnings of IP addresses and CIDR ranges that programs read differently, or that are not in their canonical form.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Warnings;
use crate::validation::field_path::FieldPath;
use crate::validation::ip;

/// Warns of an IP address (upstream: `GetWarningsForIP`).
pub fn warn_of_address(text: &str, path: &FieldPath<'_>, warnings: &mut Warnings) {
    let Some(address) = ip::parse(text) else {
        return;
    };
    let plain = address.to_canonical();
    if plain != address || text.parse::<IpAddr>().is_err() {
        let better = plain.to_string();
        let text = format!("non-standard IP address {text:?} is invalid: use {better:?}");
        return warnings.about(path, text);
    }
    let canonical = address.to_string();
    if address.is_ipv6() && canonical != text {
        let text =
            format!("IPv6 address {text:?} should be in RFC 5952 canonical format ({canonical:?})");
        warnings.about(path, text);
    }
}

/// Warns of each IP address of a list.
pub fn warn_of_addresses(texts: &[String], path: &FieldPath<'_>, warnings: &mut Warnings) {
    for (index, text) in texts.iter().enumerate() {
        warn_of_address(text, &path.index(index), warnings);
    }
}

/// Warns of a CIDR range (upstream: `GetWarningsForCIDR`).
pub fn warn_of_range(text: &str, path: &FieldPath<'_>, warnings: &mut Warnings) {
    let Some((address, length)) = ip::parse_range(text) else {
        return;
    };
    let first = first_of(address, length);
    let range = display(first, length);
    let is_ambiguous = first != address;
    if is_ambiguous {
        let (plain, width) = (address.to_canonical(), width(address));
        let one = format!("{plain}/{width}");
        warnings.about(
            path,
            format!(
                "CIDR value {text:?} is ambiguous in this context (should be {range:?} or {one:?}?)"
            ),
        );
    }
    if address.to_canonical() != address || !is_standard(text) {
        let text = format!("non-standard CIDR value {text:?} is invalid: use {range:?}");
        warnings.about(path, text);
    } else if !is_ambiguous && address.is_ipv6() && range != text {
        let text =
            format!("IPv6 CIDR value {text:?} should be in RFC 5952 canonical format ({range:?})");
        warnings.about(path, text);
    }
}

/// Returns whether neither the address nor the length has leading zeros.
fn is_standard(text: &str) -> bool {
    text.split_once('/').is_some_and(|(address, length)| {
        address.parse::<IpAddr>().is_ok() && (length == "0" || !length.starts_with('0'))
    })
}

/// Returns the first address of the range with an address.
fn first_of(address: IpAddr, length: u32) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let rest = u32::MAX.checked_shr(length).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & !rest).into()
        }
        IpAddr::V6(address) => {
            let rest = u128::MAX.checked_shr(length).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & !rest).into()
        }
    }
}

/// Returns a range as Go writes it: one of IPv4 addresses as IPv6 ones is a range of IPv4.
fn display(first: IpAddr, length: u32) -> String {
    let plain = first.to_canonical();
    let length = length.saturating_sub(width(first) - width(plain));
    format!("{plain}/{length}")
}

const fn width(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(warn: fn(&str, &FieldPath<'_>, &mut Warnings), text: &str) -> Vec<String> {
        let mut warnings = Warnings::default();
        warn(text, &FieldPath::root("ip"), &mut warnings);
        warnings.into_texts()
    }

    #[test]
    fn addresses_are_checked_as_in_kubernetes() {
        for (text, expected) in [
            ("192.12.2.2", ""),
            ("2001:db8::2", ""),
            ("none", ""),
            (
                "192.012.2.2",
                r#"ip: non-standard IP address "192.012.2.2" is invalid: use "192.12.2.2""#,
            ),
            (
                "::ffff:192.12.2.2",
                r#"ip: non-standard IP address "::ffff:192.12.2.2" is invalid: use "192.12.2.2""#,
            ),
            (
                "2001:db8:0:0::2",
                r#"ip: IPv6 address "2001:db8:0:0::2" should be in RFC 5952 canonical format ("2001:db8::2")"#,
            ),
        ] {
            assert_eq!(texts(warn_of_address, text).join("\n"), expected);
        }
    }

    #[test]
    fn ranges_are_checked_as_in_kubernetes() {
        for (text, expected) in [
            ("192.12.2.0/24", ""),
            ("2001:db8::/64", ""),
            ("0.0.0.0/0", ""),
            ("::/0", ""),
            (
                "192.012.2.0/24",
                r#"ip: non-standard CIDR value "192.012.2.0/24" is invalid: use "192.12.2.0/24""#,
            ),
            (
                "192.12.2.0/024",
                r#"ip: non-standard CIDR value "192.12.2.0/024" is invalid: use "192.12.2.0/24""#,
            ),
            (
                "::ffff:192.12.2.0/120",
                r#"ip: non-standard CIDR value "::ffff:192.12.2.0/120" is invalid: use "192.12.2.0/24""#,
            ),
            (
                "192.12.2.8/24",
                r#"ip: CIDR value "192.12.2.8/24" is ambiguous in this context (should be "192.12.2.0/24" or "192.12.2.8/32"?)"#,
            ),
            (
                "192.012.2.8/24",
                "ip: CIDR value \"192.012.2.8/24\" is ambiguous in this context \
                 (should be \"192.12.2.0/24\" or \"192.12.2.8/32\"?)\n\
                 ip: non-standard CIDR value \"192.012.2.8/24\" is invalid: use \"192.12.2.0/24\"",
            ),
            (
                "2001:db8:0:0::/64",
                r#"ip: IPv6 CIDR value "2001:db8:0:0::/64" should be in RFC 5952 canonical format ("2001:db8::/64")"#,
            ),
        ] {
            assert_eq!(texts(warn_of_range, text).join("\n"), expected);
        }
    }
}
