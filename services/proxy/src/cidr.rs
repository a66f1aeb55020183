//! Ranges of IPv4 addresses.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A range of IPv4 addresses: those with the same first bits. Its text is `10.96.0.0/16`, or one address.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
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
}

impl FromStr for Cidr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || format!("{text:?} is no range of IPv4 addresses");
        let (ip, bits) = text.split_once('/').unwrap_or((text, "32"));
        let ip: Ipv4Addr = ip.trim().parse().map_err(|_| invalid())?;
        let bits: u8 = bits.trim().parse().map_err(|_| invalid())?;
        let host_bits = 32_u32.checked_sub(bits.into()).ok_or_else(invalid)?;
        let mask = u32::MAX.checked_shl(host_bits).unwrap_or(0);
        Ok(Self {
            first: Ipv4Addr::from_bits(ip.to_bits() & mask),
            bits,
        })
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

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bits {
            32 => write!(f, "{}", self.first),
            bits => write!(f, "{}/{bits}", self.first),
        }
    }
}
