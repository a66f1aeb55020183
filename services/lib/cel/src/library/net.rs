//! Addresses and networks.

use std::net::{IpAddr, Ipv4Addr};

use super::super::meter::{Failure, scan};
use super::super::values::{Cidr, Val};
use super::{Cost, Entry};
use crate::go::quote;

macro_rules! about {
    ($name:literal, $test:expr) => {
        (
            &[concat!("ip::", $name, "() bool")],
            Cost::Unit,
            |args, _| {
                let test: fn(&IpAddr) -> bool = $test;
                match args {
                    [Val::Ip(address)] => Ok(Val::Bool(test(address))),
                    _ => Err(Failure::NoOverload),
                }
            },
        )
    };
}

pub(super) const ENTRIES: &[Entry] = &[
    (&["ip(string) ip"], Cost::First, |args, _| {
        text(args, |text| address(text).map(Val::Ip))
    }),
    (&["isIP(string) bool"], Cost::First, |args, _| {
        text(args, |text| Ok(Val::Bool(address(text).is_ok())))
    }),
    (&["ip.isCanonical(string) bool"], Cost::Copy, |args, _| {
        text(args, |text| {
            Ok(Val::Bool(address(text)?.to_string() == text))
        })
    }),
    (&["ip::family() int"], Cost::Unit, |args, _| match args {
        [Val::Ip(IpAddr::V4(_))] => Ok(Val::Int(4)),
        [Val::Ip(IpAddr::V6(_))] => Ok(Val::Int(6)),
        _ => Err(Failure::NoOverload),
    }),
    about!("isUnspecified", IpAddr::is_unspecified),
    about!("isLoopback", IpAddr::is_loopback),
    about!("isLinkLocalMulticast", |address| match address {
        IpAddr::V4(address) => address.octets().starts_with(&[224, 0, 0]),
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }),
    about!("isLinkLocalUnicast", is_link_local),
    about!("isGlobalUnicast", |address| {
        !address.is_unspecified()
            && !address.is_loopback()
            && !address.is_multicast()
            && !is_link_local(address)
            && *address != IpAddr::V4(Ipv4Addr::BROADCAST)
    }),
    (&["cidr(string) cidr"], Cost::First, |args, _| {
        text(args, |text| network(text).map(Val::Cidr))
    }),
    (&["isCIDR(string) bool"], Cost::First, |args, _| {
        text(args, |text| Ok(Val::Bool(network(text).is_ok())))
    }),
    (
        &["cidr::containsIP(ip) bool", "cidr::containsIP(string) bool"],
        Cost::Address,
        |args, meter| match args {
            [Val::Cidr(network), Val::Ip(address)] => {
                meter.spend(network.compared())?;
                Ok(Val::Bool(network.contains(*address)))
            }
            [Val::Cidr(network), Val::String(text)] => {
                meter.spend(network.compared() + scan(text.len() as u64))?;
                Ok(Val::Bool(network.contains(address(text)?)))
            }
            _ => Err(Failure::NoOverload),
        },
    ),
    (
        &[
            "cidr::containsCIDR(cidr) bool",
            "cidr::containsCIDR(string) bool",
        ],
        Cost::Network,
        |args, meter| {
            let (whole, part) = match args {
                [Val::Cidr(whole), Val::Cidr(part)] => (whole, *part),
                [Val::Cidr(whole), Val::String(text)] => {
                    meter.spend(scan(text.len() as u64))?;
                    (whole, network(text)?)
                }
                _ => return Err(Failure::NoOverload),
            };
            meter.spend(whole.compared() + whole.masked() + 1)?;
            let contains = whole.prefix <= part.prefix && whole.contains(part.address);
            Ok(Val::Bool(contains))
        },
    ),
    (&["cidr::ip() ip"], Cost::Unit, |args, _| match args {
        [Val::Cidr(network)] => Ok(Val::Ip(network.address)),
        _ => Err(Failure::NoOverload),
    }),
    (
        &["cidr::prefixLength() int"],
        Cost::Unit,
        |args, _| match args {
            [Val::Cidr(network)] => Ok(Val::Int(network.prefix.into())),
            _ => Err(Failure::NoOverload),
        },
    ),
    (&["cidr::masked() cidr"], Cost::Unit, |args, _| match args {
        [Val::Cidr(network)] => Ok(Val::Cidr(Cidr {
            address: masked(network.address, network.prefix),
            prefix: network.prefix,
        })),
        _ => Err(Failure::NoOverload),
    }),
];

impl Cidr {
    /// Returns the number of bytes that its prefix has.
    fn bytes(&self) -> u64 {
        u64::from(self.prefix).div_ceil(8)
    }

    /// Returns the cost of comparing its prefix with that of an address.
    fn compared(&self) -> u64 {
        scan(self.bytes() * 2)
    }

    /// Returns the cost of masking an address with its prefix.
    fn masked(&self) -> u64 {
        scan(self.bytes())
    }

    fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && masked(self.address, self.prefix) == masked(address, self.prefix)
    }
}

fn text<'a>(
    args: &[Val<'a>],
    then: impl FnOnce(&str) -> Result<Val<'a>, Failure>,
) -> Result<Val<'a>, Failure> {
    match args {
        [Val::String(text)] => then(text),
        _ => Err(Failure::NoOverload),
    }
}

fn is_link_local(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// Reads an address. Addresses of version 4 in those of version 6 are refused.
fn address(text: &str) -> Result<IpAddr, Failure> {
    let shown = quote(text);
    let malformed = |_| {
        let detail = format!(
            "IP Address {shown} parse error during conversion from string: ParseAddr({shown}): unable to parse IP"
        );
        Failure::Error(detail)
    };
    match text.parse().map_err(malformed)? {
        IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => {
            let detail = format!("IPv4-mapped IPv6 address {} is not allowed", quote(text));
            Err(Failure::Error(detail))
        }
        address => Ok(address),
    }
}

fn network(text: &str) -> Result<Cidr, Failure> {
    let malformed = || {
        let detail = format!(
            "network address parse error during conversion from string: netip.ParsePrefix({}): malformed",
            quote(text)
        );
        Failure::Error(detail)
    };
    let (host, prefix) = text.split_once('/').ok_or_else(malformed)?;
    let address = address(host)?;
    let digits = prefix.bytes().all(|byte| byte.is_ascii_digit());
    let canonical = digits && (prefix == "0" || !prefix.starts_with('0'));
    let width = if address.is_ipv4() { 32 } else { 128 };
    let found: Option<u8> = prefix.parse().ok();
    let prefix = found
        .filter(|prefix| canonical && *prefix <= width)
        .ok_or_else(malformed)?;
    Ok(Cidr { address, prefix })
}

/// Returns an address with all bits after the prefix cleared.
fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX
                .checked_shl(32 - u32::from(prefix.min(32)))
                .unwrap_or(0);
            IpAddr::V4((address.to_bits() & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX
                .checked_shl(128 - u32::from(prefix.min(128)))
                .unwrap_or(0);
            IpAddr::V6((address.to_bits() & mask).into())
        }
    }
}
