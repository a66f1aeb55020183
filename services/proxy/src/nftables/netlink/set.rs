//! Sets, maps and their elements as attributes. Pure.
//!
//! The kernel has a range as two elements: its first address, and the one after its last, which ends it.

use std::net::{Ipv4Addr, SocketAddrV4};

use super::expression::verdict;
use super::message::Writer;
use crate::nftables::content::MapKind;
use crate::nftables::set::{Element, Key, SetKind, Value};
use crate::service::Protocol;

/// Attributes of sets (`NFTA_SET_…`).
const FLAGS: u16 = 3;
const KEY_TYPE: u16 = 4;
const KEY_LENGTH: u16 = 5;
const DATA_TYPE: u16 = 6;
const DATA_LENGTH: u16 = 7;
const ID: u16 = 10;
const TIMEOUT: u16 = 11;
const USER_DATA: u16 = 13;
/// Flags of sets (`NFT_SET_…`).
const INTERVAL: u32 = 4;
const MAP: u32 = 8;
const HAS_TIMEOUT: u32 = 0x10;
const DYNAMIC: u32 = 0x20;

/// The numbers of types, by which `nft` shows sets. That of a concatenation has six bits for each of its parts.
const INTEGER: u32 = 4;
const ADDRESS: u32 = 7;
const PROTOCOL: u32 = 12;
const PORT: u32 = 13;
/// The type of verdicts (`NFT_DATA_VERDICT`).
const VERDICT: u32 = 0xffff_ff00;

/// Attributes of elements (`NFTA_SET_ELEM_…`, `NFTA_SET_ELEM_LIST_…`, `NFTA_LIST_ELEM`, `NFTA_DATA_VALUE`).
const LIST_SET: u16 = 2;
const LIST_ELEMENTS: u16 = 3;
const LIST_ELEMENT: u16 = 1;
const ELEMENT_KEY: u16 = 1;
const ELEMENT_DATA: u16 = 2;
const ELEMENT_FLAGS: u16 = 3;
const DATA_VALUE: u16 = 1;
/// The flag of an element that ends a range (`NFT_SET_ELEM_INTERVAL_END`).
const RANGE_END: u32 = 1;
/// The number of elements of a message. An attribute has 64 KiB at most, and an element some hundred bytes.
const PART: usize = 100;

/// Writes what a set has. `id` tells it from others of its transaction.
pub fn write(writer: &mut Writer, kind: SetKind, id: u32) {
    let concat = |parts: &[u32]| parts.iter().fold(0, |all, part| all << 6 | part);
    let front = (concat(&[ADDRESS, PROTOCOL, PORT]), 12);
    let (flags, key, data) = match kind {
        SetKind::Addresses => (0, (ADDRESS, 4), None),
        SetKind::AddressVerdicts => (MAP, (ADDRESS, 4), Some((VERDICT, 0))),
        SetKind::Fronts => (0, front, None),
        SetKind::Ranges => (INTERVAL, (ADDRESS, 4), None),
        SetKind::RangeVerdicts => (INTERVAL | MAP, (ADDRESS, 4), Some((VERDICT, 0))),
        SetKind::Pairs => (0, (concat(&[ADDRESS, ADDRESS]), 8), None),
        SetKind::FrontVerdicts => (MAP, front, Some((VERDICT, 0))),
        SetKind::PortVerdicts => (MAP, (concat(&[PROTOCOL, PORT]), 8), Some((VERDICT, 0))),
        SetKind::Numbered(MapKind::Choices) => (MAP, (INTEGER, 4), Some((VERDICT, 0))),
        SetKind::Numbered(MapKind::Endpoints(_)) => {
            let data = (concat(&[ADDRESS, PORT]), 8);
            (MAP, (INTEGER, 4), Some(data))
        }
        SetKind::Clients(_) => (HAS_TIMEOUT | DYNAMIC, (ADDRESS, 4), None),
    };
    writer.number(FLAGS, flags);
    writer.number(KEY_TYPE, key.0);
    writer.number(KEY_LENGTH, key.1);
    if let Some((kind, length)) = data {
        writer.number(DATA_TYPE, kind);
        writer.number(DATA_LENGTH, length);
    }
    writer.number(ID, id);
    if let SetKind::Clients(seconds) = kind {
        let milliseconds = u64::from(seconds).saturating_mul(1000);
        writer.bytes(TIMEOUT, &milliseconds.to_be_bytes());
    }
    if let SetKind::Numbered(kind) = kind {
        writer.bytes(USER_DATA, &shown(kind));
    }
}

/// Returns what `nft` shows the type of a numbered map by: `typeof numgen random mod 2 : …`, in its own format of a
/// byte for the kind, one for the length, and the value. The kernel keeps it and does not read it.
fn shown(kind: MapKind) -> Vec<u8> {
    let value = |kind: u8, value: u32| [&[kind, 4][..], &value.to_ne_bytes()].concat();
    let nested = |kind: u8, content: Vec<u8>| {
        let length = u8::try_from(content.len()).unwrap_or(u8::MAX);
        [vec![kind, length], content].concat()
    };
    // An expression: its kind, and what it has.
    let expression = |kind, content: Vec<u8>| [value(0, kind), nested(1, content)].concat();
    let field = |header, number| expression(7, [value(0, header), value(1, number)].concat());
    let number = expression(23, [value(0, 1), value(1, 2), value(2, 0)].concat());
    let mut all = [value(0, 1), value(1, 0), nested(3, number)].concat();
    let data = match kind {
        MapKind::Choices => expression(1, Vec::new()),
        MapKind::Endpoints(protocol) => {
            let header = match protocol {
                Protocol::Tcp => 8,
                Protocol::Udp => 6,
                Protocol::Sctp => 10,
            };
            let (address, port) = (field(12, 12), field(header, 2));
            expression(13, [nested(0, address), nested(1, port)].concat())
        }
    };
    all.extend(nested(4, data));
    all.extend(value(6, 0));
    all
}

/// Calls a function with parts of elements, each for one message.
pub fn parts(elements: &[Element], each: &mut dyn FnMut(&[Entry<'_>])) {
    let entries = match elements.first() {
        Some(first) if matches!(first.key, Key::Range(_)) => ranges(elements),
        _ => elements.iter().map(Entry::of).collect(),
    };
    entries.chunks(PART).for_each(each);
}

/// An element as the kernel has it.
pub struct Entry<'e> {
    key: Vec<u8>,
    value: Option<&'e Value>,
    ends: bool,
}

impl<'e> Entry<'e> {
    fn of(element: &'e Element) -> Self {
        Self {
            key: key(element.key),
            value: element.value.as_ref(),
            ends: false,
        }
    }
}

/// Returns the elements for ranges, of which none overlaps another one that has a value. Those without are joined.
fn ranges(elements: &[Element]) -> Vec<Entry<'_>> {
    let span = |element: &Element| match element.key {
        Key::Range(range) => Some((range.first().to_bits(), range.last().to_bits())),
        _ => None,
    };
    let spans = elements.iter().filter_map(|one| Some((span(one)?, one)));
    let mut sorted: Vec<_> = spans.collect();
    sorted.sort_by_key(|(span, _)| *span);
    let mut joined: Vec<((u32, u32), &Element)> = Vec::new();
    for ((first, last), element) in sorted {
        match joined.last_mut() {
            Some(((_, end), _)) if element.value.is_none() && first <= *end => {
                *end = last.max(*end);
            }
            _ => joined.push(((first, last), element)),
        }
    }
    let entries = joined.into_iter().flat_map(|((first, last), element)| {
        let first = Entry {
            key: first.to_be_bytes().into(),
            ..Entry::of(element)
        };
        // The last address of all needs no end.
        let end = last.checked_add(1).map(|end| Entry {
            key: end.to_be_bytes().into(),
            value: None,
            ends: true,
        });
        [first].into_iter().chain(end)
    });
    entries.collect()
}

/// Writes a part of the elements of a set.
pub fn elements(writer: &mut Writer, set: &str, part: &[Entry<'_>]) {
    writer.text(LIST_SET, set);
    writer.nested(LIST_ELEMENTS, |writer| {
        for entry in part {
            writer.nested(LIST_ELEMENT, |writer| element(writer, entry));
        }
    });
}

fn element(writer: &mut Writer, entry: &Entry<'_>) {
    writer.nested(ELEMENT_KEY, |writer| writer.bytes(DATA_VALUE, &entry.key));
    match entry.value {
        Some(Value::Verdict(of)) => writer.nested(ELEMENT_DATA, |writer| verdict(writer, of)),
        Some(Value::Endpoint(at)) => writer.nested(ELEMENT_DATA, |writer| {
            writer.bytes(DATA_VALUE, &endpoint(*at));
        }),
        None => {}
    }
    if entry.ends {
        writer.number(ELEMENT_FLAGS, RANGE_END);
    }
}

/// Returns the bytes of a key: each of its fields is filled up to four bytes.
fn key(key: Key) -> Vec<u8> {
    let port = |port: u16| pad(&port.to_be_bytes());
    let protocol = |protocol: Protocol| pad(&[protocol.number()]);
    let address = |ip: &Ipv4Addr| ip.octets();
    match key {
        Key::Address(ip) => address(&ip).into(),
        Key::Range(range) => address(&range.first()).into(),
        Key::Pair(ip) => [address(&ip), address(&ip)].concat(),
        Key::Front(at, of) => [address(at.ip()), protocol(of), port(at.port())].concat(),
        Key::Port(of, number) => [protocol(of), port(number)].concat(),
        Key::Number(number) => number.to_ne_bytes().into(),
    }
}

fn endpoint(at: SocketAddrV4) -> Vec<u8> {
    [at.ip().octets(), pad(&at.port().to_be_bytes())].concat()
}

fn pad(bytes: &[u8]) -> [u8; 4] {
    let mut padded = [0; 4];
    padded
        .iter_mut()
        .zip(bytes)
        .for_each(|(place, byte)| *place = *byte);
    padded
}
