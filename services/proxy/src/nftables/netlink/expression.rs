//! Statements of rules as the kernel's expressions, which pass values through registers. Pure.

use std::net::SocketAddrV4;

use setpoint_model::Cidr;

use super::message::Writer;
use crate::nftables::rule::{Draw, Field, MASQUERADE, Statement, Verdict};

/// Attributes of expressions (`NFTA_LIST_ELEM`, `NFTA_EXPR_…`), and of the values in them (`NFTA_DATA_…`).
const LIST_ELEMENT: u16 = 1;
const NAME: u16 = 1;
const DATA: u16 = 2;
const DATA_VALUE: u16 = 1;
const DATA_VERDICT: u16 = 2;
const VERDICT_CODE: u16 = 1;
const VERDICT_CHAIN: u16 = 2;
/// Verdicts (`NF_DROP`, `NF_ACCEPT`, `NFT_JUMP`, `NFT_GOTO`, `NFT_RETURN`).
const DROP: i32 = 0;
const ACCEPT: i32 = 1;
const JUMP: i32 = -3;
const GOTO: i32 = -4;
const RETURN: i32 = -5;

/// Registers: that of the verdict, the first two of 16 bytes, and the first of four bytes, which is the start of
/// [`FIRST`].
const END: u32 = 0;
const FIRST: u32 = 1;
const SECOND: u32 = 2;
const WORDS: u32 = 8;

/// Keys of `meta` and `ct` (`NFT_META_…`, `NFT_CT_…`).
const META_MARK: u32 = 3;
const META_PROTOCOL: u32 = 16;
const CT_STATE: u32 = 0;
const CT_STATUS: u32 = 2;
/// The bits of connections that stand and of what is related to them (`NF_CT_STATE_BIT`).
const STANDING: u32 = 0b110;
/// The bit of connections whose destination was changed (`IPS_DST_NAT`).
const DESTINATION_CHANGED: u32 = 1 << 5;
/// Where a payload is counted from (`NFT_PAYLOAD_…_HEADER`).
const NETWORK: u32 = 1;
const TRANSPORT: u32 = 2;
/// Comparisons (`NFT_CMP_…`).
const EQUAL: u32 = 0;
const UNEQUAL: u32 = 1;
const AT_MOST: u32 = 3;
const AT_LEAST: u32 = 5;
/// The flag of a lookup that matches what is not in the set (`NFT_LOOKUP_F_INV`).
const INVERTED: u32 = 1;
/// The type of addresses of this machine in its routes (`RTN_LOCAL`).
const LOCAL: u32 = 2;

/// Writes the expressions of a statement.
pub fn write(writer: &mut Writer, statement: &Statement) {
    match statement {
        Statement::From(range) => from(writer, *range),
        Statement::FromMachine => {
            numbers(writer, "fib", &[(1, FIRST), (2, 3), (3, 1)]);
            compare(writer, EQUAL, &LOCAL.to_ne_bytes());
        }
        Statement::Protocol(protocol) => {
            load(writer, Field::Protocol, FIRST);
            compare(writer, EQUAL, &[protocol.number()]);
        }
        Statement::Ports(first, last) => ports(writer, *first, *last),
        Statement::Established => connection(writer, CT_STATE, STANDING),
        Statement::Translated => connection(writer, CT_STATUS, DESTINATION_CHANGED),
        Statement::Marked => {
            numbers(writer, "meta", &[(1, FIRST), (2, META_MARK)]);
            change(writer, MASQUERADE, 0);
            compare(writer, EQUAL, &MASQUERADE.to_ne_bytes());
        }
        Statement::Mark => mark(writer, !MASQUERADE),
        Statement::Unmark => mark(writer, u32::MAX),
        Statement::In(fields, set) => {
            load_all(writer, fields);
            lookup(writer, set, None, 0);
        }
        Statement::NotIn(fields, set) => {
            load_all(writer, fields);
            lookup(writer, set, None, INVERTED);
        }
        Statement::Vmap(fields, map) => {
            load_all(writer, fields);
            lookup(writer, map, Some(END), 0);
        }
        Statement::Verdict(of) => immediate(writer, END, |writer| verdict(writer, of)),
        Statement::Masquerade => numbers(writer, "masq", &[(1, 0x10)]),
        Statement::Reset => reject(writer, 1, 0),
        Statement::Reject => reject(writer, 0, 3),
        Statement::To(endpoint) => to(writer, *endpoint),
        Statement::ToDrawn(drawn, map) => {
            draw(writer, *drawn);
            lookup(writer, &map.to_string(), Some(FIRST), 0);
            change_destination(writer, WORDS + 1);
        }
        Statement::Choose(drawn, map) => {
            draw(writer, *drawn);
            lookup(writer, &map.to_string(), Some(END), 0);
        }
        Statement::Keep(set) => {
            load(writer, Field::Source, FIRST);
            expression(writer, "dynset", |writer| {
                writer.text(1, set);
                writer.number(3, 1);
                writer.number(4, FIRST);
            });
        }
    }
}

fn expression(writer: &mut Writer, name: &str, content: impl FnOnce(&mut Writer)) {
    writer.nested(LIST_ELEMENT, |writer| {
        writer.text(NAME, name);
        writer.nested(DATA, content);
    });
}

/// Writes an expression whose attributes are numbers.
fn numbers(writer: &mut Writer, name: &str, attributes: &[(u16, u32)]) {
    expression(writer, name, |writer| {
        for (kind, number) in attributes {
            writer.number(*kind, *number);
        }
    });
}

/// Loads fields into words that follow each other.
fn load_all(writer: &mut Writer, fields: &[Field]) {
    for (word, field) in (WORDS..).zip(fields) {
        load(writer, *field, if word == WORDS { FIRST } else { word });
    }
}

fn load(writer: &mut Writer, field: Field, register: u32) {
    let (base, offset, length) = match field {
        Field::Source => (NETWORK, 12, 4),
        Field::Destination => (NETWORK, 16, 4),
        Field::Port => (TRANSPORT, 2, 2),
        Field::Protocol => return numbers(writer, "meta", &[(1, register), (2, META_PROTOCOL)]),
    };
    let attributes = [(1, register), (2, base), (3, offset), (4, length)];
    numbers(writer, "payload", &attributes);
}

fn from(writer: &mut Writer, range: Cidr) {
    load(writer, Field::Source, FIRST);
    let mask = !(range.first().to_bits() ^ range.last().to_bits());
    bits(writer, &mask.to_be_bytes(), &[0; 4]);
    compare(writer, EQUAL, &range.first().octets());
}

/// Matches ports from the first one to the last.
fn ports(writer: &mut Writer, first: u16, last: u16) {
    load(writer, Field::Port, FIRST);
    match first == last {
        true => compare(writer, EQUAL, &first.to_be_bytes()),
        false => {
            compare(writer, AT_LEAST, &first.to_be_bytes());
            compare(writer, AT_MOST, &last.to_be_bytes());
        }
    }
}

/// Matches packets of connections of which a number has one of some bits.
fn connection(writer: &mut Writer, key: u32, mask: u32) {
    numbers(writer, "ct", &[(1, FIRST), (2, key)]);
    change(writer, mask, 0);
    compare(writer, UNEQUAL, &[0; 4]);
}

fn compare(writer: &mut Writer, operation: u32, value: &[u8]) {
    expression(writer, "cmp", |writer| {
        writer.number(1, FIRST);
        writer.number(2, operation);
        writer.nested(3, |writer| writer.bytes(DATA_VALUE, value));
    });
}

/// Keeps the bits of a mask, and changes others, of a number in the order of the processor's bytes.
fn change(writer: &mut Writer, mask: u32, xor: u32) {
    bits(writer, &mask.to_ne_bytes(), &xor.to_ne_bytes());
}

fn bits(writer: &mut Writer, mask: &[u8], xor: &[u8]) {
    expression(writer, "bitwise", |writer| {
        writer.number(1, FIRST);
        writer.number(2, FIRST);
        writer.number(3, 4);
        writer.nested(4, |writer| writer.bytes(DATA_VALUE, mask));
        writer.nested(5, |writer| writer.bytes(DATA_VALUE, xor));
    });
}

/// Changes the bit of the mark, of which the bits of a mask stay.
fn mark(writer: &mut Writer, mask: u32) {
    numbers(writer, "meta", &[(1, FIRST), (2, META_MARK)]);
    change(writer, mask, MASQUERADE);
    numbers(writer, "meta", &[(2, META_MARK), (3, FIRST)]);
}

/// Looks for the first register in a set; what a map has goes to a register.
fn lookup(writer: &mut Writer, set: &str, value: Option<u32>, flags: u32) {
    expression(writer, "lookup", |writer| {
        writer.text(1, set);
        writer.number(2, FIRST);
        if let Some(register) = value {
            writer.number(3, register);
        }
        if flags != 0 {
            writer.number(5, flags);
        }
    });
}

fn immediate(writer: &mut Writer, register: u32, value: impl FnOnce(&mut Writer)) {
    expression(writer, "immediate", |writer| {
        writer.number(1, register);
        writer.nested(2, value);
    });
}

/// Writes the value of a verdict.
pub fn verdict(writer: &mut Writer, verdict: &Verdict) {
    let (code, chain) = match verdict {
        Verdict::Accept => (ACCEPT, None),
        Verdict::Drop => (DROP, None),
        Verdict::Return => (RETURN, None),
        Verdict::Jump(chain) => (JUMP, Some(chain)),
        Verdict::Goto(chain) => (GOTO, Some(chain)),
    };
    writer.nested(DATA_VERDICT, |writer| {
        writer.number(VERDICT_CODE, code.cast_unsigned());
        if let Some(chain) = chain {
            writer.text(VERDICT_CHAIN, chain);
        }
    });
}

fn reject(writer: &mut Writer, kind: u32, code: u8) {
    expression(writer, "reject", |writer| {
        writer.number(1, kind);
        writer.bytes(2, &[code]);
    });
}

fn to(writer: &mut Writer, endpoint: SocketAddrV4) {
    let octets = endpoint.ip().octets();
    immediate(writer, FIRST, |writer| writer.bytes(DATA_VALUE, &octets));
    let port = endpoint.port().to_be_bytes();
    immediate(writer, SECOND, |writer| writer.bytes(DATA_VALUE, &port));
    change_destination(writer, SECOND);
}

/// Changes the destination to the address in the first register and the port in another one.
fn change_destination(writer: &mut Writer, port: u32) {
    let attributes = [(1, 1), (2, 2), (3, FIRST), (5, port)];
    numbers(writer, "nat", &attributes);
}

fn draw(writer: &mut Writer, Draw { modulus, offset }: Draw) {
    let attributes = [(1, FIRST), (2, modulus), (3, 1), (4, offset)];
    numbers(writer, "numgen", &attributes);
}
