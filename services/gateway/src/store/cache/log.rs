//! The ordered log of changes, and the topics by which watchers find their part of it.
//!
//! ```text
//! records      31  32  33  34  35  36  37  38 ← next
//! topic pods       32      34  35          38    wakes whoever watches Pods
//! topic node-1             34                    wakes node-1's agent, and nobody else's
//! ```
//! A watcher is a number: the next record to look at. It has lost something, and is told `Expired`, exactly when
//! a record of its topic with that number or a later one has been dropped. So silence never expires a watcher.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use setpoint_model::Revision;
use tokio::sync::Notify;

use super::record::Record;
use super::{Filter, Settings};
use crate::store::Error;

/// Topics without records or watchers are forgotten when there are more than this.
const MANY_TOPICS: usize = 16_384;

/// A part of the log that has watchers of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Topic {
    /// Of one kind, by its type.
    Kind(&'static str),
    /// The Pods of one node.
    Node(Arc<str>),
}

impl Topic {
    /// The narrowest that has all that the filter lets through.
    pub fn of(filter: &Filter) -> Self {
        match filter.node() {
            Some(node) if is_node_name(node) => Self::Node(node.into()),
            _ => Self::Kind(&filter.kind().type_url),
        }
    }
}

/// Pods without a node have no topic of their own, and what cannot name a node gets none.
fn is_node_name(text: &str) -> bool {
    (1..=253).contains(&text.len())
}

pub(super) struct Log {
    records: VecDeque<(Arc<Record>, Vec<Topic>)>,
    /// The number of the first record.
    first: u64,
    bytes: usize,
    topics: HashMap<Topic, Channel>,
    /// Topics that are not in the table have lost what was dropped up to here.
    dropped: Dropped,
    /// Who is to be woken, each once a round.
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
    /// The last round in which it was touched.
    round: u64,
}

impl Channel {
    fn touch(&mut self, round: u64, touched: &mut Vec<Arc<Notify>>) {
        if self.round != round {
            self.round = round;
            touched.push(self.wake.clone());
        }
    }
}

/// How far back something no longer reaches.
#[derive(Clone, Copy, Default)]
struct Dropped {
    /// All records before this number.
    before: u64,
    /// The revision of the last of them.
    revision: Revision,
}

impl Log {
    pub fn new(settings: &Settings) -> Self {
        Self {
            records: VecDeque::new(),
            first: 0,
            bytes: 0,
            topics: HashMap::new(),
            dropped: Dropped::default(),
            touched: Vec::new(),
            round: 1,
            max_records: settings.log_records,
            max_bytes: settings.log_bytes,
        }
    }

    /// The number of the record to come.
    pub fn next(&self) -> u64 {
        self.first + self.records.len() as u64
    }

    /// Forgets everything up to this revision. Whoever is in the middle of it has lost the thread.
    pub fn restart(&mut self, revision: Revision) {
        // One number is left out, so that those who had read all of it notice too.
        self.first = self.next() + 1;
        self.records.clear();
        self.bytes = 0;
        self.dropped = Dropped {
            before: self.first,
            revision,
        };
        for channel in self.topics.values_mut() {
            channel.numbers.clear();
            channel.dropped = self.dropped;
            channel.touch(self.round, &mut self.touched);
        }
    }

    pub fn push(&mut self, record: Record, topics: Vec<Topic>) {
        let number = self.next();
        for topic in &topics {
            let channel = channel(&mut self.topics, topic, self.dropped);
            channel.numbers.push_back(number);
            channel.touch(self.round, &mut self.touched);
        }
        self.bytes += record.size();
        self.records.push_back((Arc::new(record), topics));
        while self.records.len() > self.max_records || self.bytes > self.max_bytes {
            self.drop_first();
        }
    }

    /// Wakes everybody, though there may be nothing for them.
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
        self.dropped = Dropped {
            before: self.first,
            revision: record.revision,
        };
        for topic in topics {
            if let Some(channel) = self.topics.get_mut(&topic) {
                channel.numbers.pop_front();
                channel.dropped = self.dropped;
            }
        }
    }

    /// What is notified when the topic grows.
    pub fn subscribe(&mut self, topic: &Topic) -> Arc<Notify> {
        if self.topics.len() > MANY_TOPICS {
            let in_use = |channel: &Channel| Arc::strong_count(&channel.wake) > 1;
            self.topics
                .retain(|_, channel| !channel.numbers.is_empty() || in_use(channel));
        }
        channel(&mut self.topics, topic, self.dropped).wake.clone()
    }

    /// The number of the topic's first record after a revision.
    ///
    /// # Errors
    /// `Expired` when a later one may have been dropped.
    pub fn after(&self, topic: &Topic, revision: Revision) -> Result<u64, Error> {
        let Some(channel) = self.topics.get(topic) else {
            return Err(Error::Expired);
        };
        if revision < channel.dropped.revision {
            return Err(Error::Expired);
        }
        let old = |number: &u64| self.record(*number).revision <= revision;
        let at = channel.numbers.partition_point(old);
        Ok(channel.numbers.get(at).copied().unwrap_or(self.next()))
    }

    /// At most `limit` of the topic's records from this number on, and the number to go on from.
    ///
    /// # Errors
    /// `Expired` when one of them has been dropped.
    pub fn read(
        &self,
        topic: &Topic,
        from: u64,
        limit: usize,
    ) -> Result<(Vec<Arc<Record>>, u64), Error> {
        let Some(channel) = self.topics.get(topic) else {
            return Err(Error::Expired);
        };
        if from < channel.dropped.before {
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

    /// The newest of the topic's records that `is` what is looked for.
    pub fn newest(&self, topic: &Topic, is: impl Fn(&Record) -> bool) -> Option<Arc<Record>> {
        let mut numbers = self.topics.get(topic)?.numbers.iter().rev();
        let found = numbers.find(|number| is(self.record(**number)))?;
        Some(self.record(*found).clone())
    }

    fn record(&self, number: u64) -> &Arc<Record> {
        &self.records[usize::try_from(number - self.first).expect("the log fits in memory")].0
    }

    /// Who is to be woken since this was last asked.
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
    topics.entry(topic.clone()).or_insert_with(|| Channel {
        numbers: VecDeque::new(),
        dropped,
        wake: Arc::default(),
        round: 0,
    })
}
