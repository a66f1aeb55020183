//! Sets and maps, and their elements, as `nft` writes them. Pure.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};

use setpoint_model::Cidr;

use super::content::{Map, MapKind};
use super::rule::Verdict;
use crate::service::Protocol;

/// The kind of the elements of a set or map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetKind {
    /// Addresses.
    Addresses,
    /// Verdicts by address.
    AddressVerdicts,
    /// Addresses with a protocol and a port.
    Fronts,
    /// Ranges of addresses.
    Ranges,
    /// Verdicts by ranges of addresses.
    RangeVerdicts,
    /// Pairs of addresses.
    Pairs,
    /// Verdicts by address, protocol and port.
    FrontVerdicts,
    /// Verdicts by protocol and port.
    PortVerdicts,
    /// Endpoints or verdicts by number.
    Numbered(MapKind),
    /// Addresses, each for this number of seconds.
    Clients(u32),
}

/// The key of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// An address.
    Address(Ipv4Addr),
    /// An address of a range.
    Range(Cidr),
    /// An address, and the same once more.
    Pair(Ipv4Addr),
    /// An address, a protocol and a port.
    Front(SocketAddrV4, Protocol),
    /// A protocol and a port.
    Port(Protocol, u16),
    /// A number.
    Number(u32),
}

/// The value of a map for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A verdict.
    Verdict(Verdict),
    /// An endpoint.
    Endpoint(SocketAddrV4),
}

/// An element of a set, or of a map if it has a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// The key.
    pub key: Key,
    /// The value, if it is one of a map.
    pub value: Option<Value>,
}

impl Element {
    /// Returns an element of a set.
    pub const fn of(key: Key) -> Self {
        Self { key, value: None }
    }

    /// Returns an element of a map to verdicts.
    pub const fn verdict(key: Key, verdict: Verdict) -> Self {
        let value = Some(Value::Verdict(verdict));
        Self { key, value }
    }
}

impl SetKind {
    /// Returns whether it is a map.
    pub const fn is_map(self) -> bool {
        !matches!(
            self,
            Self::Addresses | Self::Fronts | Self::Ranges | Self::Pairs | Self::Clients(_)
        )
    }
}

impl From<Map> for SetKind {
    fn from(map: Map) -> Self {
        Self::Numbered(map.kind())
    }
}

impl fmt::Display for SetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Addresses => f.write_str("type ipv4_addr"),
            Self::AddressVerdicts => f.write_str("type ipv4_addr : verdict"),
            Self::Fronts => f.write_str("type ipv4_addr . inet_proto . inet_service"),
            Self::Ranges => f.write_str("type ipv4_addr ; flags interval"),
            Self::RangeVerdicts => f.write_str("type ipv4_addr : verdict ; flags interval"),
            Self::Pairs => f.write_str("type ipv4_addr . ipv4_addr"),
            Self::FrontVerdicts => {
                f.write_str("type ipv4_addr . inet_proto . inet_service : verdict")
            }
            Self::PortVerdicts => f.write_str("type inet_proto . inet_service : verdict"),
            Self::Numbered(kind) => write!(f, "typeof numgen random mod 2 : {kind}"),
            Self::Clients(seconds) => write!(
                f,
                "type ipv4_addr ; flags dynamic, timeout ; timeout {seconds}s"
            ),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(ip) => ip.fmt(f),
            Self::Range(range) => range.fmt(f),
            Self::Pair(ip) => write!(f, "{ip} . {ip}"),
            Self::Front(at, protocol) => {
                write!(f, "{} . {} . {}", at.ip(), protocol.name(), at.port())
            }
            Self::Port(protocol, port) => write!(f, "{} . {port}", protocol.name()),
            Self::Number(number) => number.fmt(f),
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            None => self.key.fmt(f),
            Some(Value::Verdict(verdict)) => write!(f, "{} : {verdict}", self.key),
            Some(Value::Endpoint(at)) => write!(f, "{} : {} . {}", self.key, at.ip(), at.port()),
        }
    }
}
