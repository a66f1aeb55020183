//! The ordered log of changes, and the topics that index it for watchers.
//!
//! ```text
//! records      31  32  33  34  35  36  37  38 ← next
//! topic pods       32      34  35          38    wakes the watchers of Pods
//! topic node-1             34                    wakes the watchers of Pods of node-1 only
//! ```
//! A watcher is a cursor: the number of the next record to read. It gets `Expired` exactly if a record of its topic
//! with that number or a later one has been dropped. A watcher of a topic without changes therefore never expires.
//!
//! 2026-11: we chose cursors into one log over a queue for each watcher (kube-apiserver's channels), because an event
//! is then kept once for all watchers, and no watcher can make the writer wait. Wrong if most watchers select little of
//! a topic: each of them reads the records that its filter drops.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use setpoint_model::Revision;
use tokio::sync::Notify;

use super::record::Record;
use super::{Filter, Settings};
use crate::Error;

/// The number of topics beyond which those without records and watchers are removed.
const MANY_TOPICS: usize = 16_384;

/// A part of the log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Topic {
    /// The objects of a kind, by its folder in the store.
    Kind(&'static str),
    /// The objects of all custom kinds.
    Custom,
    /// The objects of a kind whose indexed field has this value.
    Indexed(&'static str, Arc<str>),
}

impl Topic {
    /// Returns the smallest topic that includes all objects that the filter selects.
    pub fn of(filter: &Filter) -> Self {
        let kind = &filter.kind().stored_as;
        match filter.indexed() {
            Some(value) if can_be_name(value) => Self::Indexed(kind, value.into()),
            _ => Self::Kind(kind),
        }
    }
}

/// Returns whether a text can be the name of an object. An empty or overlong one gets no topic.
fn can_be_name(text: &str) -> bool {
    (1..=253).contains(&text.len())
}

pub(super) struct Log {
    records: VecDeque<(Arc<Record>, Vec<Topic>)>,
    /// The number of the first record.
    first: u64,
    bytes: usize,
    topics: HashMap<Topic, Channel>,
    /// The channel of those that follow the whole log: where they have expired last. It has no numbers, since those of
    /// all records follow each other.
    whole: Channel,
    /// The records that were dropped so far, which a topic that is not in the table may have had.
    dropped: Dropped,
    /// The watchers to wake, each topic once a round.
    touched: Vec<Arc<Notify>>,
    round: u64,
    max_records: usize,
    max_bytes: usize,
}

/// The records of one topic.
struct Channel {
    numbers: VecDeque<u64>,
    dropped: Dropped,
    wake: Arc<Notify>,
    /// The round in which it was last added to those to wake.
    round: u64,
    /// The number after its last record, once its kind is no longer served.
    end: Option<u64>,
}

impl Channel {
    fn new(dropped: Dropped) -> Self {
        Self {
            numbers: VecDeque::new(),
            dropped,
            wake: Arc::default(),
            round: 0,
            end: None,
        }
    }

    fn touch(&mut self, round: u64, touched: &mut Vec<Arc<Notify>>) {
        if self.round != round {
            self.round = round;
            touched.push(self.wake.clone());
        }
    }
}

/// The records that were dropped.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Dropped {
    /// The number of the first record that was not dropped.
    before: u64,
    /// The first revision after which a watcher can resume.
    revision: Revision,
    /// The revision of the last record.
    last: Revision,
}

impl Dropped {
    /// Adds a record. After the first one of a revision, a watcher that has seen it can still resume; after a further
    /// one it may have missed that.
    fn and(self, record: &Record, before: u64) -> Self {
        let further = u64::from(self.last == record.revision);
        Self {
            before,
            revision: Revision::from_raw(record.revision.raw() + further),
            last: record.revision,
        }
    }
}

impl Log {
    pub fn new(settings: &Settings) -> Self {
        Self {
            records: VecDeque::new(),
            first: 0,
            bytes: 0,
            topics: HashMap::new(),
            whole: Channel::new(Dropped::default()),
            dropped: Dropped::default(),
            touched: Vec::new(),
            round: 1,
            max_records: settings.log_records,
            max_bytes: settings.log_bytes,
        }
    }

    /// Returns the number of the next record.
    pub fn next(&self) -> u64 {
        self.first + self.records.len() as u64
    }

    /// Drops all records. `revision` is that of the new state; all watchers expire.
    pub fn restart(&mut self, revision: Revision) {
        // Skips one number, so that watchers that had read the whole log expire too.
        self.first = self.next() + 1;
        self.records.clear();
        self.bytes = 0;
        self.dropped = Dropped {
            before: self.first,
            revision,
            last: revision,
        };
        for channel in self.topics.values_mut() {
            channel.numbers.clear();
            channel.dropped = self.dropped;
            channel.touch(self.round, &mut self.touched);
        }
        self.whole.touch(self.round, &mut self.touched);
    }

    pub fn push(&mut self, record: Record, topics: Vec<Topic>) {
        let number = self.next();
        for topic in &topics {
            let channel = channel(&mut self.topics, topic, self.dropped);
            channel.numbers.push_back(number);
            channel.touch(self.round, &mut self.touched);
        }
        self.whole.touch(self.round, &mut self.touched);
        self.bytes += record.size();
        self.records.push_back((Arc::new(record), topics));
        while self.records.len() > self.max_records || self.bytes > self.max_bytes {
            self.drop_first();
        }
    }

    /// Marks all watchers to be woken, whether there are records for them or not.
    pub fn touch_all(&mut self) {
        for channel in self.topics.values_mut() {
            channel.touch(self.round, &mut self.touched);
        }
    }

    fn drop_first(&mut self) {
        let Some((record, topics)) = self.records.pop_front() else {
            return;
        };
        self.first += 1;
        self.bytes -= record.size();
        self.dropped = self.dropped.and(&record, self.first);
        for topic in topics {
            if let Some(channel) = self.topics.get_mut(&topic) {
                channel.numbers.pop_front();
                // It may have expired at a later record.
                let dropped = channel.dropped.and(&record, self.first);
                channel.dropped = channel.dropped.max(dropped);
            }
        }
    }

    /// Returns the notification that a topic has new records.
    pub fn subscribe(&mut self, topic: &Topic) -> Arc<Notify> {
        if self.topics.len() > MANY_TOPICS {
            let in_use = |channel: &Channel| Arc::strong_count(&channel.wake) > 1;
            self.topics
                .retain(|_, channel| !channel.numbers.is_empty() || in_use(channel));
        }
        channel(&mut self.topics, topic, self.dropped).wake.clone()
    }

    /// Begins a topic, or continues one that has ended.
    pub fn begin(&mut self, topic: &Topic) {
        channel(&mut self.topics, topic, self.dropped).end = None;
    }

    /// Ends a topic: its watchers expire when they have read its last record.
    pub fn end(&mut self, topic: &Topic) {
        let end = self.next();
        if let Some(channel) = self.topics.get_mut(topic) {
            channel.end = Some(end);
            channel.touch(self.round, &mut self.touched);
        }
    }

    /// Expires the watchers of a kind, by its folder in the store: its objects have changed other than by records.
    pub fn expire(&mut self, folder: &str, revision: Revision) {
        let is_of = |topic: &Topic| match topic {
            Topic::Kind(kind) | Topic::Indexed(kind, _) => *kind == folder,
            Topic::Custom => false,
        };
        if !self.topics.keys().any(is_of) {
            return;
        }
        // A record of no topic, so that watchers that had read the whole log expire too.
        self.push(Record::new(revision, None, None, None), Vec::new());
        let dropped = Dropped {
            before: self.next(),
            revision,
            last: revision,
        };
        let topics = self.topics.iter_mut().filter(|(topic, _)| is_of(topic));
        for (_, channel) in topics {
            channel.dropped = dropped;
            channel.touch(self.round, &mut self.touched);
        }
    }

    /// Expires those that follow the whole log, as [`Self::expire`].
    pub fn expire_whole(&mut self, revision: Revision) {
        self.push(Record::new(revision, None, None, None), Vec::new());
        self.whole.dropped = Dropped {
            before: self.next(),
            revision,
            last: revision,
        };
    }

    /// Returns the number of the topic's first record that a watcher may have missed whose last event had this
    /// revision.
    ///
    /// A transaction can change several objects of a kind in one revision. The connection may have ended between their
    /// events, so all but the first are sent again.
    ///
    /// # Errors
    /// `Expired` if such records may have been dropped.
    pub fn after(&self, topic: &Topic, revision: Revision) -> Result<u64, Error> {
        let Some(channel) = self.topics.get(topic) else {
            return Err(Error::Expired);
        };
        if revision < channel.dropped.revision {
            return Err(Error::Expired);
        }
        let old = |number: &u64| self.record(*number).revision < revision;
        let at = channel.numbers.partition_point(old);
        let is_first = |number: &u64| {
            self.record(*number).revision == revision && channel.dropped.last != revision
        };
        let first = channel.numbers.get(at).is_some_and(is_first);
        let next = channel.numbers.get(at + usize::from(first));
        let next = next.copied().unwrap_or(self.next());
        // The watchers of records before it have expired.
        Ok(next.max(channel.dropped.before))
    }

    /// Returns at most `limit` records of the topic from a number on, and the number from which to continue.
    ///
    /// # Errors
    /// `Expired` if one of them has been dropped, or the topic has ended before that number.
    pub fn read(
        &self,
        topic: &Topic,
        from: u64,
        limit: usize,
    ) -> Result<(Vec<Arc<Record>>, u64), Error> {
        let Some(channel) = self.topics.get(topic) else {
            return Err(Error::Expired);
        };
        let has_ended = channel.end.is_some_and(|end| from >= end);
        if from < channel.dropped.before || has_ended {
            return Err(Error::Expired);
        }
        let at = channel.numbers.partition_point(|number| *number < from);
        let numbers = channel.numbers.range(at..);
        let records: Vec<_> = numbers
            .clone()
            .take(limit)
            .map(|number| self.record(*number).clone())
            .collect();
        let next = numbers.clone().nth(limit).copied().unwrap_or(self.next());
        Ok((records, next))
    }

    /// Returns the notification that the log has new records.
    pub fn subscribe_whole(&self) -> Arc<Notify> {
        self.whole.wake.clone()
    }

    /// As [`after`](Self::after), for those that follow the whole log.
    ///
    /// # Errors
    /// As [`after`](Self::after).
    pub fn after_whole(&self, revision: Revision) -> Result<u64, Error> {
        if revision < self.dropped.max(self.whole.dropped).revision {
            return Err(Error::Expired);
        }
        let old = |(record, _): &(Arc<Record>, Vec<Topic>)| record.revision < revision;
        let at = self.records.partition_point(old);
        let is_first = |(record, _): &(Arc<Record>, Vec<Topic>)| {
            record.revision == revision && self.dropped.last != revision
        };
        let first = self.records.get(at).is_some_and(is_first);
        let next = self.first + at as u64 + u64::from(first);
        Ok(next.max(self.whole.dropped.before))
    }

    /// Returns at most `limit` records from a number on.
    ///
    /// # Errors
    /// `Expired` if one of them has been dropped.
    pub fn read_whole(&self, from: u64, limit: usize) -> Result<Vec<Arc<Record>>, Error> {
        if from < self.whole.dropped.before {
            return Err(Error::Expired);
        }
        let at = from.checked_sub(self.first).ok_or(Error::Expired)?;
        let at = usize::try_from(at).expect("the log fits in memory");
        let records = self.records.iter().skip(at).take(limit);
        Ok(records.map(|(record, _)| record.clone()).collect())
    }

    /// Returns the newest record of the topic for which `matches` holds.
    pub fn newest(&self, topic: &Topic, matches: impl Fn(&Record) -> bool) -> Option<Arc<Record>> {
        let mut numbers = self.topics.get(topic)?.numbers.iter().rev();
        let found = numbers.find(|number| matches(self.record(**number)))?;
        Some(self.record(*found).clone())
    }

    fn record(&self, number: u64) -> &Arc<Record> {
        &self.records[usize::try_from(number - self.first).expect("the log fits in memory")].0
    }

    /// Returns the watchers to wake since the last call.
    pub fn take_touched(&mut self) -> Vec<Arc<Notify>> {
        self.round += 1;
        std::mem::take(&mut self.touched)
    }
}

fn channel<'a>(
    topics: &'a mut HashMap<Topic, Channel>,
    topic: &Topic,
    dropped: Dropped,
) -> &'a mut Channel {
    topics
        .entry(topic.clone())
        .or_insert_with(|| Channel::new(dropped))
}
