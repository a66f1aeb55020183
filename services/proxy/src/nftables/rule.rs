//! Rules of chains, as `nft` writes them. Pure.

use std::fmt;
use std::net::SocketAddrV4;

use setpoint_model::Cidr;

use super::content::Map;
use crate::service::Protocol;

/// The mark of packets whose source address is to be that of the machine, as in upstream.
pub const MASQUERADE: u32 = 0x4000;

/// A rule: its statements in their order. The first one that does not match ends it.
pub type Rule = Vec<Statement>;

/// A field of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// The address that it comes from.
    Source,
    /// The address that it goes to.
    Destination,
    /// The transport protocol.
    Protocol,
    /// The port that it goes to.
    Port,
}

/// The end of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The packet passes.
    Accept,
    /// The packet is dropped.
    Drop,
    /// It goes on behind the jump to this chain.
    Return,
    /// It goes on in a chain, and then in this one.
    Jump(String),
    /// It goes on in a chain.
    Goto(String),
}

/// A random number below `modulus`, and `offset` more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Draw {
    /// The number of possible numbers.
    pub modulus: u32,
    /// The first of them.
    pub offset: u32,
}

/// A part of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Statement {
    /// Matches packets from a range.
    From(Cidr),
    /// Matches packets from this machine.
    FromMachine,
    /// Matches packets of a protocol.
    Protocol(Protocol),
    /// Matches packets to ports from the first one to the last.
    Ports(u16, u16),
    /// Matches packets of connections that stand, and errors about them.
    Established,
    /// Matches packets of connections whose destination was changed.
    Translated,
    /// Matches packets with the mark [`MASQUERADE`].
    Marked,
    /// Sets the mark.
    Mark,
    /// Takes the mark away, from packets that have it.
    Unmark,
    /// Matches packets with these fields in a set.
    In(&'static [Field], String),
    /// Matches packets with these fields if they are not in a set.
    NotIn(&'static [Field], String),
    /// Applies the verdict that a map has for these fields, if any.
    Vmap(&'static [Field], String),
    /// Applies a verdict.
    Verdict(Verdict),
    /// Changes the source address to that of the machine.
    Masquerade,
    /// Refuses a connection of TCP.
    Reset,
    /// Refuses a packet.
    Reject,
    /// Changes the destination.
    To(SocketAddrV4),
    /// Changes the destination to that of a number in a map.
    ToDrawn(Draw, Map),
    /// Applies the verdict of a number in a map.
    Choose(Draw, Map),
    /// Adds the source address to a set, or begins its timeout again.
    Keep(String),
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Source => "ip saddr",
            Self::Destination => "ip daddr",
            Self::Protocol => "meta l4proto",
            Self::Port => "th dport",
        })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accept => f.write_str("accept"),
            Self::Drop => f.write_str("drop"),
            Self::Return => f.write_str("return"),
            Self::Jump(chain) => write!(f, "jump {chain}"),
            Self::Goto(chain) => write!(f, "goto {chain}"),
        }
    }
}

impl fmt::Display for Draw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { modulus, offset } = self;
        write!(f, "numgen random mod {modulus} offset {offset}")
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::From(range) => write!(f, "ip saddr {range}"),
            Self::FromMachine => f.write_str("fib saddr type local"),
            Self::Protocol(protocol) => write!(f, "meta l4proto {}", protocol.name()),
            Self::Ports(first, last) if first == last => write!(f, "th dport {first}"),
            Self::Ports(first, last) => write!(f, "th dport {first}-{last}"),
            Self::Established => f.write_str("ct state established,related"),
            Self::Translated => f.write_str("ct status dnat"),
            Self::Marked => write!(f, "meta mark & {MASQUERADE:#x} == {MASQUERADE:#x}"),
            Self::Mark => write!(f, "meta mark set meta mark | {MASQUERADE:#x}"),
            Self::Unmark => write!(f, "meta mark set meta mark ^ {MASQUERADE:#x}"),
            Self::In(fields, set) => write!(f, "{} @{set}", joined(fields, " . ")),
            Self::NotIn(fields, set) => write!(f, "{} != @{set}", joined(fields, " . ")),
            Self::Vmap(fields, map) => write!(f, "{} vmap @{map}", joined(fields, " . ")),
            Self::Verdict(verdict) => verdict.fmt(f),
            Self::Masquerade => f.write_str("masquerade fully-random"),
            Self::Reset => f.write_str("reject with tcp reset"),
            Self::Reject => f.write_str("reject"),
            Self::To(endpoint) => write!(f, "dnat to {endpoint}"),
            Self::ToDrawn(draw, map) => write!(f, "dnat ip to {draw} map @{map}"),
            Self::Choose(draw, map) => write!(f, "{draw} vmap @{map}"),
            Self::Keep(set) => write!(f, "update @{set} {{ ip saddr }}"),
        }
    }
}

/// Returns the text of items with something between them.
pub fn joined<T: ToString>(items: &[T], between: &str) -> String {
    let items: Vec<_> = items.iter().map(T::to_string).collect();
    items.join(between)
}
