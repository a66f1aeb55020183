//! From a message that arrived to the bytes of its answer.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::rdata::CNAME;
use hickory_proto::rr::{Name, RData, RecordType};
use parking_lot::RwLock;
use tokio::sync::watch;
use tokio::time::Instant;

use super::message::{Question, Received, encode};
use crate::answer::{Answer, Records, Zone, answer, expand};
use crate::forward::{Error, Forwarder};
use crate::metrics::{self, Transport};
use crate::records::Index;

/// The longest message by TCP.
const MAX_MESSAGE: usize = u16::MAX as usize;

/// Answers messages, from the objects of the cluster and by upstream servers.
pub struct Responder {
    /// The domain of the cluster.
    pub zone: Zone,
    /// The objects of the cluster.
    pub index: Arc<RwLock<Index>>,
    /// Whether the index is complete.
    pub synced: watch::Receiver<bool>,
    /// The time of the last change of the index, in seconds since 1970: the serial number of the zone.
    pub serial: Arc<AtomicU32>,
    /// Upstream servers for other names.
    pub forwarder: Forwarder,
    /// The search path after the domains of the cluster, with autopath.
    pub autopath: Option<Vec<Name>>,
}

/// The state of a message after what needs no waiting.
pub enum Begun {
    /// It has no answer.
    Ignored,
    /// The answer.
    Done(Vec<u8>),
    /// A question that is forwarded.
    Waiting(Box<Waiting>),
}

/// A question that needs an upstream server.
pub struct Waiting {
    exchange: Exchange,
    /// The records before those of the forwarded name.
    records: Records,
    /// The names to ask for, until one exists.
    names: Vec<Name>,
}

/// A question with what its answer depends on beside the records.
struct Exchange {
    question: Box<Question>,
    size: usize,
    started: Instant,
    zone: &'static str,
}

impl Responder {
    /// Begins with a message from this address.
    pub fn begin(&self, packet: &[u8], from: IpAddr, transport: Transport) -> Begun {
        let started = Instant::now();
        let question = match Received::parse(packet) {
            Received::Ignored => return Begun::Ignored,
            Received::Invalid(answer) => {
                metrics::invalid(transport);
                return Begun::Done(answer);
            }
            Received::Question(question) => question,
        };
        metrics::request(transport, question.query.query_type());
        let size = match transport {
            Transport::Udp => question.payload(),
            Transport::Tcp => MAX_MESSAGE,
        };
        let own = self.zone.origin.zone_of(question.query.name());
        let exchange = Exchange {
            question,
            size,
            started,
            zone: if own {
                metrics::CLUSTER
            } else {
                metrics::OTHERS
            },
        };
        self.answer(exchange, from)
    }

    fn answer(&self, exchange: Exchange, from: IpAddr) -> Begun {
        let query = &exchange.question.query;
        // Without the objects, no name of the cluster is known not to exist.
        if exchange.zone == metrics::CLUSTER && !*self.synced.borrow() {
            return exchange.fail(ResponseCode::ServFail);
        }
        if self.forwarder.loops().arrived(query) {
            return exchange.fail(ResponseCode::NXDomain);
        }
        let index = self.index.read();
        match answer(&self.zone, &index, query) {
            Answer::NoName => match self.continued(&index, query, from) {
                Some((records, names)) => self.forward(exchange, records, names),
                None => self.negative(&exchange, ResponseCode::NXDomain),
            },
            Answer::Found(records) => self.found(&exchange, records),
            Answer::Alias { records, target } => self.forward(exchange, records, vec![target]),
            Answer::Elsewhere => {
                let name = query.name().clone();
                self.forward(exchange, Records::default(), vec![name])
            }
        }
    }

    /// Walks along the search path of a Pod. Returns the first records, and the names that are not of the cluster.
    fn continued(
        &self,
        index: &Index,
        query: &Query,
        from: IpAddr,
    ) -> Option<(Records, Vec<Name>)> {
        let search = self.autopath.as_ref()?;
        let (asked, of) = (query.name(), query.query_type());
        let names = expand(&self.zone, index, from, asked, of, search);
        let mut others = Vec::new();
        for name in names {
            match answer(&self.zone, index, &Query::query(name.clone(), of)) {
                Answer::NoName => {}
                Answer::Elsewhere => others.push(name),
                Answer::Found(records) if others.is_empty() => {
                    return Some((self.aliased(asked, name, records), Vec::new()));
                }
                Answer::Alias { records, target } if others.is_empty() => {
                    return Some((self.aliased(asked, name, records), vec![target]));
                }
                Answer::Found(_) | Answer::Alias { .. } => {}
            }
        }
        (!others.is_empty()).then(|| (Records::default(), others))
    }

    fn aliased(&self, asked: &Name, name: Name, mut records: Records) -> Records {
        let alias = self.zone.record(asked, RData::CNAME(CNAME(name)));
        records.answers.insert(0, alias);
        records
    }

    fn found(&self, exchange: &Exchange, mut records: Records) -> Begun {
        if records.answers.is_empty() {
            return self.negative(exchange, ResponseCode::NoError);
        }
        if exchange.question.query.query_type() == RecordType::SOA {
            records.answers = vec![self.soa()];
        }
        exchange.done(exchange.message(records, true))
    }

    fn negative(&self, exchange: &Exchange, code: ResponseCode) -> Begun {
        let mut message = exchange.message(Records::default(), true);
        message.metadata.response_code = code;
        message.add_authority(self.soa());
        exchange.done(message)
    }

    fn soa(&self) -> hickory_proto::rr::Record {
        self.zone.soa(self.serial.load(Ordering::Relaxed))
    }

    /// Answers from the cache, or leaves the question to [`Self::finish`].
    fn forward(&self, exchange: Exchange, records: Records, names: Vec<Name>) -> Begun {
        if names.is_empty() {
            return self.found(&exchange, records);
        }
        let waiting = Waiting {
            exchange,
            records,
            names,
        };
        // A walk ends at the first name that exists, which the cache alone does not know.
        if let [name] = &*waiting.names {
            let query = waiting.query(name);
            let dnssec = waiting.exchange.question.wants_dnssec();
            if let Some(kept) = self.forwarder.cached(&query, dnssec) {
                return Begun::Done(waiting.complete(self, name, kept));
            }
        }
        Begun::Waiting(Box::new(waiting))
    }

    /// Answers a question that is forwarded.
    pub async fn finish(&self, waiting: Waiting) -> Vec<u8> {
        let dnssec = waiting.exchange.question.wants_dnssec();
        let (mut last, mut exists) = (None, false);
        for name in &waiting.names {
            let query = waiting.query(name);
            let answer = match self.forwarder.cached(&query, dnssec) {
                Some(kept) => Ok(kept),
                None => self.forwarder.ask(&query, dnssec).await,
            };
            exists = matches!(&answer, Ok(found) if found.metadata.response_code != ResponseCode::NXDomain);
            last = Some((name, answer));
            if exists {
                break;
            }
        }
        match last {
            // A walk that ends nowhere: the name that was asked for does not exist.
            Some((name, Ok(_))) if !exists && waiting.is_walk(name) => {
                match self.negative(&waiting.exchange, ResponseCode::NXDomain) {
                    Begun::Done(answer) => answer,
                    _ => waiting.exchange.error(ResponseCode::NXDomain),
                }
            }
            Some((name, Ok(answer))) => waiting.complete(self, name, answer),
            Some((_, Err(Error::Busy))) => waiting.exchange.error(ResponseCode::Refused),
            _ => waiting.exchange.error(ResponseCode::ServFail),
        }
    }
}

impl Waiting {
    fn query(&self, name: &Name) -> Query {
        let asked = &self.exchange.question.query;
        let mut query = Query::query(name.clone(), asked.query_type());
        query.set_query_class(asked.query_class());
        query
    }

    /// Returns whether `name` is a step of a walk along a search path.
    fn is_walk(&self, name: &Name) -> bool {
        self.records.answers.is_empty() && self.exchange.question.query.name() != name
    }

    /// Returns the answer of the upstream server after the records so far.
    fn complete(&self, responder: &Responder, name: &Name, found: Message) -> Vec<u8> {
        let mut records = self.records.clone();
        let asked = self.exchange.question.query.name();
        if self.is_walk(name) {
            records = responder.aliased(asked, name.clone(), records);
        }
        let has_own = !records.answers.is_empty();
        records.answers.extend(found.answers);
        records.additionals.extend(found.additionals);
        let mut message = self.exchange.message(records, false);
        message.authorities = found.authorities;
        // An alias of ours exists, whatever its target does.
        if !has_own {
            message.metadata.response_code = found.metadata.response_code;
            message.metadata.authentic_data = found.metadata.authentic_data;
        }
        self.exchange.bytes(message)
    }
}

impl Exchange {
    fn message(&self, mut records: Records, authoritative: bool) -> Message {
        turn(&mut records, self.question.turn());
        let mut message = self.question.reply();
        message.metadata.authoritative = authoritative;
        message.answers = records.answers;
        message.additionals = records.additionals;
        message
    }

    fn done(&self, message: Message) -> Begun {
        Begun::Done(self.bytes(message))
    }

    fn bytes(&self, message: Message) -> Vec<u8> {
        metrics::response(self.zone, message.metadata.response_code, self.started);
        encode(message, self.size)
    }

    fn fail(&self, code: ResponseCode) -> Begun {
        Begun::Done(self.error(code))
    }

    fn error(&self, code: ResponseCode) -> Vec<u8> {
        metrics::response(self.zone, code, self.started);
        self.question.error(code)
    }
}

/// Turns the order of equal records, so that clients that take the first one spread over all. Aliases stay in front.
fn turn(records: &mut Records, by: usize) {
    let answers = &mut records.answers;
    let aliases = answers.iter();
    let aliases = aliases.take_while(|one| one.record_type() == RecordType::CNAME);
    let first = aliases.count();
    let rest = &mut answers[first..];
    if !rest.is_empty() {
        rest.rotate_left(by % rest.len());
    }
}
