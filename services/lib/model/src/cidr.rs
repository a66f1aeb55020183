//! Ranges of IPv4 addresses.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A range of IPv4 addresses: those with the same first bits. Its text is `10.96.0.0/16`, or one address.
///
/// ```
/// use setpoint_model::Cidr;
///
/// let pods: Cidr = "10.244.3.9/16".parse()?;
/// assert_eq!(pods.to_string(), "10.244.0.0/16");
/// assert!(pods.contains([10, 244, 255, 255].into()));
/// assert!(pods.overlaps("10.0.0.0/8".parse()?));
/// assert!(!pods.overlaps("10.96.0.0/12".parse()?));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Cidr {
    first: Ipv4Addr,
    bits: u8,
}

impl Cidr {
    /// Returns the range of one address.
    pub const fn host(ip: Ipv4Addr) -> Self {
        Self {
            first: ip,
            bits: 32,
        }
    }

    /// Returns the range of the addresses whose first `bits` are those of `ip`; `None` if there are more than 32.
    pub const fn new(ip: Ipv4Addr, bits: u8) -> Option<Self> {
        if bits > 32 {
            return None;
        }
        let first = Ipv4Addr::from_bits(ip.to_bits() & mask(bits));
        Some(Self { first, bits })
    }

    /// Returns the first address.
    pub const fn first(self) -> Ipv4Addr {
        self.first
    }

    /// Returns the last address.
    pub const fn last(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.first.to_bits() | !mask(self.bits))
    }

    /// Returns the number of first bits that its addresses share, 0 to 32.
    pub const fn bits(self) -> u8 {
        self.bits
    }

    /// Returns whether the address is one of the range.
    pub const fn contains(self, ip: Ipv4Addr) -> bool {
        ip.to_bits() & mask(self.bits) == self.first.to_bits()
    }

    /// Returns whether all addresses of the range are also in `whole`.
    pub const fn is_within(self, whole: Self) -> bool {
        self.bits >= whole.bits && whole.contains(self.first)
    }

    /// Returns whether both ranges have an address in common. One of them is within the other then.
    pub const fn overlaps(self, other: Self) -> bool {
        self.is_within(other) || other.is_within(self)
    }

    /// Returns the text with the number of bits, also of a range of one address, as fields of objects have it.
    pub fn prefixed(self) -> String {
        format!("{}/{}", self.first, self.bits)
    }
}

const fn mask(bits: u8) -> u32 {
    match u32::MAX.checked_shl(32 - bits as u32) {
        Some(mask) => mask,
        None => 0,
    }
}

impl FromStr for Cidr {
    type Err = String;

    /// Parses a range; bits of the address beyond its prefix are ignored.
    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || format!("{text:?} is no range of IPv4 addresses");
        let (ip, bits) = text.split_once('/').unwrap_or((text, "32"));
        let ip: Ipv4Addr = ip.trim().parse().map_err(|_| invalid())?;
        let bits: u8 = bits.trim().parse().map_err(|_| invalid())?;
        Self::new(ip, bits).ok_or_else(invalid)
    }
}

impl TryFrom<String> for Cidr {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Cidr> for String {
    fn from(range: Cidr) -> Self {
        range.to_string()
    }
}

/// As [`Display`](fmt::Display), since plans are printed for users.
impl fmt::Debug for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bits {
            32 => write!(f, "{}", self.first),
            bits => write!(f, "{}/{bits}", self.first),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_are_of_ipv4() {
        for (text, expected) in [
            ("10.96.1.2/16", "10.96.0.0/16"),
            ("10.96.1.2", "10.96.1.2"),
            ("10.96.1.2/0", "0.0.0.0/0"),
        ] {
            assert_eq!(text.parse::<Cidr>().unwrap().to_string(), expected);
        }
        for wrong in [
            "",
            "10.96.0.0/33",
            "10.96.0/16",
            "fd00::/64",
            "10.96.0.0/-1",
        ] {
            let expected = format!("{wrong:?} is no range of IPv4 addresses");
            assert_eq!(wrong.parse::<Cidr>(), Err(expected));
        }
        let host = Cidr::host(Ipv4Addr::LOCALHOST);
        assert_eq!(host.prefixed(), "127.0.0.1/32");
        assert_eq!(
            (host.first(), host.last()),
            (Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST)
        );
    }

    fn ranges() -> impl Strategy<Value = Cidr> {
        (any::<u32>(), 0_u8..=32)
            .prop_map(|(ip, bits)| Cidr::new(Ipv4Addr::from_bits(ip), bits).unwrap())
    }

    proptest! {
        #[test]
        fn a_range_overlaps_another_if_they_share_an_address(
            one in ranges(), bits in 0_u8..=32, flip in 0_u32..64,
        ) {
            let ip = one.first().to_bits() ^ 1_u32.checked_shl(flip).unwrap_or(0);
            let other = Cidr::new(Ipv4Addr::from_bits(ip), bits).unwrap();
            let shared = one.first() <= other.last() && other.first() <= one.last();
            prop_assert_eq!(one.overlaps(other), shared);
            prop_assert_eq!(other.overlaps(one), shared);
            let within = other.first() <= one.first() && one.last() <= other.last();
            prop_assert_eq!(one.is_within(other), within);
            prop_assert!(one.contains(one.first()) && one.contains(one.last()));
            prop_assert_eq!(one.to_string().parse(), Ok(one));
        }
    }
}
