//! The cache of upstream answers.
//!
//! An answer is kept for the shortest TTL of its records, a negative one as RFC 2308 says: for the shorter one of the
//! SOA record's TTL and its minimum, and not at all without that record. Both are bounded by a setting. If the cache is
//! full, the entry goes that was not read since the last one that went (the clock algorithm).

use std::collections::HashMap;
use std::time::Duration;

use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_host::DurationText;
use tokio::time::Instant;

/// The largest answer that is kept, in records: with the entries, a bound of the memory.
const MAX_RECORDS: usize = 64;

/// Settings of the cache.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Maximum number of answers; 0 for no cache.
    pub entries: usize,
    /// Maximum time that an answer is kept; shorter if its TTL is.
    #[serde(with = "DurationText")]
    pub max_ttl: Duration,
    /// Maximum time that a name is known not to exist, or to have no records of a type.
    #[serde(with = "DurationText")]
    pub max_negative_ttl: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            entries: 9984,
            max_ttl: Duration::from_secs(30),
            max_negative_ttl: Duration::from_secs(30),
        }
    }
}

/// A question in lower case, and whether it is for records of DNSSEC, too.
type Key = (Name, RecordType, DNSClass, bool);

struct Entry {
    key: Key,
    answer: Message,
    kept: Instant,
    expires: Instant,
    /// Whether it was read since the hand last passed.
    used: bool,
}

/// Answers by question.
pub struct Cache {
    settings: Settings,
    places: HashMap<Key, usize>,
    entries: Vec<Entry>,
    /// The entry that is looked at next when one has to go.
    hand: usize,
}

impl Cache {
    pub fn new(settings: &Settings) -> Self {
        Self {
            settings: settings.clone(),
            places: HashMap::new(),
            entries: Vec::new(),
            hand: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn get(&mut self, query: &Query, dnssec: bool, now: Instant) -> Option<Message> {
        let place = *self.places.get(&key(query, dnssec))?;
        let entry = &mut self.entries[place];
        if entry.expires <= now {
            return None;
        }
        entry.used = true;
        let age = now.saturating_duration_since(entry.kept).as_secs();
        let age = u32::try_from(age).unwrap_or(u32::MAX);
        let mut answer = entry.answer.clone();
        for record in sections(&mut answer) {
            record.ttl = record.ttl.saturating_sub(age);
        }
        Some(answer)
    }

    pub fn insert(&mut self, query: &Query, dnssec: bool, answer: &Message, now: Instant) {
        let records = answer.answers.len() + answer.authorities.len() + answer.additionals.len();
        let ttl = self.ttl(query, answer);
        if ttl.is_zero() || records > MAX_RECORDS || self.settings.entries == 0 {
            return;
        }
        let mut answer = answer.clone();
        let longest = u32::try_from(ttl.as_secs()).unwrap_or(u32::MAX);
        for record in sections(&mut answer) {
            record.ttl = record.ttl.min(longest);
        }
        let entry = Entry {
            key: key(query, dnssec),
            answer,
            kept: now,
            expires: now + ttl,
            used: false,
        };
        let place = self.place(&entry.key, now);
        self.places.insert(entry.key.clone(), place);
        match self.entries.get_mut(place) {
            Some(former) => *former = entry,
            None => self.entries.push(entry),
        }
    }

    /// Returns the place of a key: its own, a new one, or that of the entry that goes.
    fn place(&mut self, key: &Key, now: Instant) -> usize {
        if let Some(place) = self.places.get(key) {
            return *place;
        }
        if self.entries.len() < self.settings.entries {
            return self.entries.len();
        }
        loop {
            let place = self.hand;
            self.hand = (self.hand + 1) % self.entries.len();
            let entry = &mut self.entries[place];
            if !std::mem::take(&mut entry.used) || entry.expires <= now {
                self.places.remove(&self.entries[place].key);
                return place;
            }
        }
    }

    /// Returns the time that an answer may be kept.
    fn ttl(&self, query: &Query, answer: &Message) -> Duration {
        let seconds = |ttl: Option<u32>| Duration::from_secs(ttl.unwrap_or(0).into());
        let has_answer = answer
            .answers
            .iter()
            .any(|record| record.record_type() == query.query_type());
        match answer.metadata.response_code {
            ResponseCode::NoError if has_answer => {
                let ttls = answer.answers.iter().map(|record| record.ttl);
                seconds(ttls.min()).min(self.settings.max_ttl)
            }
            ResponseCode::NoError | ResponseCode::NXDomain => {
                let aliases = answer.answers.iter().map(|record| record.ttl);
                let absent = answer.authorities.iter().find_map(negative_ttl);
                let ttl = absent.map(|ttl| aliases.min().unwrap_or(ttl).min(ttl));
                seconds(ttl).min(self.settings.max_negative_ttl)
            }
            _ => Duration::ZERO,
        }
    }
}

/// Returns the time that a SOA record lets a negative answer be kept, in seconds.
fn negative_ttl(record: &Record) -> Option<u32> {
    match &record.data {
        RData::SOA(soa) => Some(record.ttl.min(soa.minimum)),
        _ => None,
    }
}

fn key(query: &Query, dnssec: bool) -> Key {
    let name = query.name().to_lowercase();
    (name, query.query_type(), query.query_class(), dnssec)
}

fn sections(message: &mut Message) -> impl Iterator<Item = &mut Record> {
    let answers = message.answers.iter_mut();
    answers
        .chain(&mut message.authorities)
        .chain(&mut message.additionals)
}

#[cfg(test)]
mod tests {
    use hickory_proto::op::{MessageType, OpCode};
    use hickory_proto::rr::rdata::{A, SOA};

    use super::*;

    fn query(name: &str) -> Query {
        Query::query(Name::from_ascii(name).unwrap(), RecordType::A)
    }

    fn answer(code: ResponseCode) -> Message {
        let mut message = Message::new(7, MessageType::Response, OpCode::Query);
        message.metadata.response_code = code;
        message
    }

    fn positive(name: &str, ttl: u32) -> Message {
        let mut message = answer(ResponseCode::NoError);
        let data = RData::A(A::new(10, 0, 0, 1));
        message.add_answer(Record::from_rdata(
            Name::from_ascii(name).unwrap(),
            ttl,
            data,
        ));
        message
    }

    fn negative(code: ResponseCode, ttl: u32, minimum: u32) -> Message {
        let mut message = answer(code);
        let soa = SOA::new(Name::root(), Name::root(), 1, 1, 1, 1, minimum);
        message.add_authority(Record::from_rdata(Name::root(), ttl, RData::SOA(soa)));
        message
    }

    fn cache(entries: usize) -> Cache {
        Cache::new(&Settings {
            entries,
            ..Settings::default()
        })
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn an_answer_is_kept_for_its_ttl_which_counts_down() {
        let (mut cache, now) = (cache(10), Instant::now());
        cache.insert(
            &query("a.example."),
            false,
            &positive("a.example.", 10),
            now,
        );
        let found = cache
            .get(&query("A.Example."), false, now + seconds(4))
            .unwrap();
        assert_eq!(found.answers[0].ttl, 6);
        assert!(
            cache.get(&query("a.example."), true, now).is_none(),
            "with DNSSEC"
        );
        assert!(
            cache
                .get(&query("a.example."), false, now + seconds(10))
                .is_none()
        );
    }

    #[test]
    fn no_answer_is_kept_for_longer_than_the_setting() {
        let (mut cache, now) = (cache(10), Instant::now());
        cache.insert(&query("a."), false, &positive("a.", 3600), now);
        let found = cache.get(&query("a."), false, now).unwrap();
        assert_eq!(found.answers[0].ttl, 30);
        assert!(cache.get(&query("a."), false, now + seconds(30)).is_none());
    }

    #[test]
    fn absence_is_kept_as_its_soa_record_says() {
        let now = Instant::now();
        let kept = |answer: Message| {
            let mut cache = cache(10);
            cache.insert(&query("a."), false, &answer, now);
            let at = |second| {
                cache
                    .get(&query("a."), false, now + seconds(second))
                    .is_some()
            };
            (0..100).map(at).take_while(|there| *there).count()
        };
        assert_eq!(kept(negative(ResponseCode::NXDomain, 60, 9)), 9);
        assert_eq!(kept(negative(ResponseCode::NoError, 8, 60)), 8);
        assert_eq!(kept(negative(ResponseCode::NXDomain, 60, 60)), 30);
        assert_eq!(
            kept(answer(ResponseCode::NXDomain)),
            0,
            "without the record"
        );
        assert_eq!(kept(negative(ResponseCode::ServFail, 60, 60)), 0);
    }

    #[test]
    fn a_full_cache_forgets_what_was_not_read() {
        let (mut cache, now) = (cache(2), Instant::now());
        for name in ["a.", "b."] {
            cache.insert(&query(name), false, &positive(name, 30), now);
        }
        assert!(cache.get(&query("a."), false, now).is_some());
        cache.insert(&query("c."), false, &positive("c.", 30), now);
        let has = |cache: &mut Cache, name| cache.get(&query(name), false, now).is_some();
        assert!(has(&mut cache, "a.") && has(&mut cache, "c."));
        assert!(!has(&mut cache, "b."));
        assert_eq!(cache.len(), 2);
    }
}
