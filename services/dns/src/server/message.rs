//! Messages on the wire: questions that can be answered, errors for those that cannot, and answers within a size.

use hickory_proto::op::{
    Edns, Header, Message, MessageType, Metadata, OpCode, Query, ResponseCode,
};
use hickory_proto::rr::{DNSClass, Record, RecordType};
use hickory_proto::serialize::binary::{BinDecodable as _, BinDecoder};

use super::{UDP_PAYLOAD, addresses};

/// The smallest size that every client takes.
const MIN_PAYLOAD: u16 = 512;

/// A question that can be answered.
pub struct Question {
    metadata: Metadata,
    /// The question.
    pub query: Query,
    /// `None` from a client without EDNS.
    edns: Option<Edns>,
}

/// A message that arrived.
pub enum Received {
    /// A question.
    Question(Box<Question>),
    /// One that is answered with this error.
    Invalid(Vec<u8>),
    /// One without an answer: no question, or no header of one.
    Ignored,
}

impl Received {
    /// Reads a message.
    pub fn parse(packet: &[u8]) -> Self {
        let Ok(header) = Header::read(&mut BinDecoder::new(packet)) else {
            return Self::Ignored;
        };
        let metadata = header.metadata;
        // An answer to an answer could go on for ever between two servers.
        if metadata.message_type != MessageType::Query {
            return Self::Ignored;
        }
        if metadata.op_code != OpCode::Query {
            return Self::refuse(&metadata, None, ResponseCode::NotImp);
        }
        let Ok(mut message) = Message::from_vec(packet) else {
            return Self::refuse(&metadata, None, ResponseCode::FormErr);
        };
        let (edns, query) = (message.edns.take(), message.queries.pop());
        let Some(query) = query.filter(|_| message.queries.is_empty()) else {
            return Self::refuse(&metadata, None, ResponseCode::FormErr);
        };
        let question = Question {
            metadata,
            query,
            edns,
        };
        match question.refusal() {
            None => Self::Question(Box::new(question)),
            Some(code) => Self::Invalid(question.error(code)),
        }
    }

    fn refuse(metadata: &Metadata, query: Option<&Query>, code: ResponseCode) -> Self {
        let mut message = reply(metadata);
        message.metadata.response_code = code;
        message.queries.extend(query.cloned());
        Self::Invalid(message.to_vec().unwrap_or_default())
    }
}

impl Question {
    fn refusal(&self) -> Option<ResponseCode> {
        let version = self.edns.as_ref().map_or(0, Edns::version);
        match (self.query.query_class(), self.query.query_type()) {
            _ if version > 0 => Some(ResponseCode::BADVERS),
            (DNSClass::IN | DNSClass::ANY, RecordType::AXFR | RecordType::IXFR) => {
                Some(ResponseCode::Refused)
            }
            (DNSClass::IN | DNSClass::ANY, _) => None,
            _ => Some(ResponseCode::Refused),
        }
    }

    /// Returns whether the client asks for records of DNSSEC.
    pub fn wants_dnssec(&self) -> bool {
        self.edns
            .as_ref()
            .is_some_and(|edns| edns.flags().dnssec_ok)
    }

    /// Returns the size of a datagram that the client takes, as far as it is sent here.
    pub fn payload(&self) -> usize {
        let asked = self.edns.as_ref().map_or(MIN_PAYLOAD, Edns::max_payload);
        asked.clamp(MIN_PAYLOAD, UDP_PAYLOAD).into()
    }

    /// Returns a number by which the order of equal records is turned: that of the question is random.
    pub fn turn(&self) -> usize {
        self.metadata.id.into()
    }

    /// Returns an answer without records.
    pub fn reply(&self) -> Message {
        let mut message = reply(&self.metadata);
        message.add_query(self.query.clone());
        if let Some(asked) = &self.edns {
            let mut edns = Edns::new();
            edns.set_max_payload(UDP_PAYLOAD);
            edns.set_dnssec_ok(asked.flags().dnssec_ok);
            message.set_edns(edns);
        }
        message
    }

    /// Returns the bytes of an answer without records.
    pub fn error(&self, code: ResponseCode) -> Vec<u8> {
        let mut message = self.reply();
        message.metadata.response_code = code;
        message.to_vec().unwrap_or_default()
    }
}

fn reply(metadata: &Metadata) -> Message {
    let mut message = Message::new(metadata.id, MessageType::Response, metadata.op_code);
    message.metadata.recursion_desired = metadata.recursion_desired;
    message.metadata.checking_disabled = metadata.checking_disabled;
    message.metadata.recursion_available = true;
    message
}

/// Returns the bytes of a message of this size at most: without additional records, then with the first answers only
/// and the bit that says so.
pub fn encode(mut message: Message, size: usize) -> Vec<u8> {
    if let Some(bytes) = addresses::encode(&message, size) {
        return bytes;
    }
    if let Some(bytes) = fitting(&message, size) {
        return bytes;
    }
    message.additionals.clear();
    if let Some(bytes) = fitting(&message, size) {
        return bytes;
    }
    message.metadata.truncation = true;
    message.authorities.clear();
    let all = std::mem::take(&mut message.answers);
    let (mut fits, mut too_many) = (0, all.len() + 1);
    while fits + 1 < too_many {
        let middle = usize::midpoint(fits, too_many);
        match fitting(&with(&message, &all[..middle]), size) {
            Some(_) => fits = middle,
            None => too_many = middle,
        }
    }
    fitting(&with(&message, &all[..fits]), size).unwrap_or_default()
}

fn with(message: &Message, answers: &[Record]) -> Message {
    let mut message = message.clone();
    message.answers = answers.to_vec();
    message
}

/// Returns the bytes of a whole message, if they are not too many.
fn fitting(message: &Message, size: usize) -> Option<Vec<u8>> {
    // A message that is longer than any may be is cut by the encoder, which sets this bit.
    const TRUNCATED: u8 = 0b10;
    let bytes = message.to_vec().ok()?;
    let is_cut = !message.metadata.truncation && bytes.get(2)? & TRUNCATED != 0;
    (!is_cut && bytes.len() <= size).then_some(bytes)
}
