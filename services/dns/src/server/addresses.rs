//! The usual answer: addresses of the name that was asked for.
//!
//! hickory-proto looks for a name to refer to before it writes each record, and stops doing so after some. Here each
//! record refers to the name in the question, so that as many addresses fit as the format allows.

use hickory_proto::op::Message;
use hickory_proto::rr::{Name, RData, Record};

/// The length of a header, and so the place of the name in the question.
const HEADER: usize = 12;
/// A reference to that place.
const POINTER: [u8; 2] = [0xc0, HEADER as u8];
/// The length of type and class after a name.
const TYPE_AND_CLASS: usize = 4;
/// The bit of the third byte that says that an answer is truncated.
const TRUNCATED: u8 = 0b10;

/// Returns the bytes of an answer that has addresses only, as many as fit into this size; `None` for others.
pub fn encode(message: &Message, size: usize) -> Option<Vec<u8>> {
    let name = message.queries.first()?.name();
    let rest = message.additionals.len() + message.authorities.len();
    if rest > 0 || message.answers.is_empty() {
        return None;
    }
    let mut records = Vec::new();
    let mut ends = Vec::with_capacity(message.answers.len());
    for record in &message.answers {
        push(record, name, &mut records)?;
        ends.push(records.len());
    }
    let mut bytes = without_answers(message)?;
    let room = size.saturating_sub(bytes.len());
    let count = ends.partition_point(|end| *end <= room);
    records.truncate(count.checked_sub(1).map_or(0, |last| ends[last]));
    if count < ends.len() {
        bytes[2] |= TRUNCATED;
    }
    bytes[6..8].copy_from_slice(&u16::try_from(count).ok()?.to_be_bytes());
    let place = end_of_question(&bytes)?;
    bytes.splice(place..place, records);
    Some(bytes)
}

/// Writes a record of an address of this name; `None` for another one.
fn push(record: &Record, name: &Name, bytes: &mut Vec<u8>) -> Option<()> {
    if record.name != *name {
        return None;
    }
    match &record.data {
        RData::A(ip) => write(record, &ip.octets(), bytes),
        RData::AAAA(ip) => write(record, &ip.octets(), bytes),
        _ => return None,
    }
    Some(())
}

fn write<const LENGTH: usize>(record: &Record, octets: &[u8; LENGTH], bytes: &mut Vec<u8>) {
    bytes.extend(POINTER);
    bytes.extend(u16::from(record.record_type()).to_be_bytes());
    bytes.extend(u16::from(record.dns_class).to_be_bytes());
    bytes.extend(record.ttl.to_be_bytes());
    // Four or sixteen.
    bytes.extend((LENGTH as u16).to_be_bytes());
    bytes.extend(octets);
}

fn without_answers(message: &Message) -> Option<Vec<u8>> {
    let metadata = message.metadata;
    let mut empty = Message::new(metadata.id, metadata.message_type, metadata.op_code);
    empty.metadata = metadata;
    empty.queries.clone_from(&message.queries);
    empty.edns.clone_from(&message.edns);
    empty.to_vec().ok()
}

/// Returns the place after the only question.
fn end_of_question(bytes: &[u8]) -> Option<usize> {
    let mut place = HEADER;
    loop {
        match bytes.get(place)? {
            0 => return Some(place + 1 + TYPE_AND_CLASS),
            length => place += 1 + usize::from(*length),
        }
    }
}
