//! The state of the cache: the current objects, and the log of changes that led to them.

use std::collections::HashMap;
use std::sync::Arc;

use setpoint_codec::{Kind, kinds};
use setpoint_model::Revision;
use tokio::sync::Notify;

use super::decode::{DecodedBatch, Stored};
use super::kind_store::KindStore;
use super::log::{Log, Topic};
use super::record::Record;
use super::reflector::Relist;
use super::{Filter, Settings, Snapshot};

/// The objects of each kind, by the type URL of the kind.
pub(super) type KindStores = HashMap<&'static str, KindStore>;

/// Objects and log, always at the same revision.
pub(super) struct State {
    pub revision: Revision,
    pub log: Log,
    /// The revision at which the holder of any Lease last changed.
    pub elected: Revision,
    kind_stores: KindStores,
    closed: bool,
}

pub(super) fn empty_kind_stores() -> KindStores {
    kinds()
        .iter()
        .map(|kind| (kind.type_url.as_str(), KindStore::new(kind)))
        .collect()
}

impl State {
    pub fn new(settings: &Settings) -> Self {
        let mut log = Log::new(settings);
        for kind in kinds().iter() {
            log.subscribe(&Topic::Kind(&kind.type_url));
        }
        Self {
            revision: Revision::default(),
            log,
            elected: Revision::default(),
            kind_stores: empty_kind_stores(),
            closed: false,
        }
    }

    pub fn kind_store(&self, kind: &Kind) -> &KindStore {
        self.kind_stores
            .get(kind.type_url.as_str())
            .expect("every stored kind has a store")
    }

    pub fn snapshot(&self, filter: &Filter) -> Snapshot {
        Snapshot {
            revision: self.revision,
            items: self.kind_store(filter.kind()).select(filter),
        }
    }

    /// Replaces all objects by those of a relist. All watches expire. Returns the watchers to wake.
    pub fn replace(&mut self, relist: Relist) -> Vec<Arc<Notify>> {
        self.revision = relist.revision;
        self.kind_stores = relist.kind_stores;
        self.log.restart(relist.revision);
        self.log.take_touched()
    }

    /// Applies batches, each as a whole. Returns the watchers to wake.
    pub fn apply(&mut self, batches: Vec<DecodedBatch>) -> Vec<Arc<Notify>> {
        for batch in batches {
            for change in batch.changes {
                let Some(kind_store) = self.kind_stores.get_mut(change.kind.type_url.as_str())
                else {
                    continue;
                };
                let new = match &change.new {
                    Stored::Object(object) => Some(object.clone()),
                    Stored::Nothing | Stored::Unreadable(_) => None,
                };
                let old = kind_store.put(&change.key, change.new);
                if old.is_none() && new.is_none() {
                    continue;
                }
                let values = [&old, &new].map(|object| kind_store.indexed(object.as_deref()?));
                let elects = kind_store.changes_holder(old.as_deref(), new.as_deref());
                kind_store.dispatched();
                let record = Record::new(batch.revision, old, new, change.cause);
                if elects {
                    self.elected = batch.revision;
                    self.log.touch_all();
                }
                self.log.push(record, topics(change.kind, values));
            }
            // Set last: after a panic, a half-applied batch must not pass for this revision.
            self.revision = batch.revision;
        }
        self.log.take_touched()
    }

    /// Ends all watches, also those that are started later.
    pub fn close(&mut self) {
        self.closed = true;
        self.log.restart(self.revision);
        for wake in self.log.take_touched() {
            wake.notify_waiters();
        }
    }

    pub fn is_closed(&self) -> bool {
        self.closed
    }
}

/// Returns the topics of a change: that of the kind, and those of the old and new value of its indexed field.
fn topics(kind: &'static Kind, values: [Option<Arc<str>>; 2]) -> Vec<Topic> {
    let mut topics = vec![Topic::Kind(&kind.type_url)];
    for value in values.into_iter().flatten() {
        let topic = Topic::Indexed(&kind.type_url, value);
        if !topics.contains(&topic) {
            topics.push(topic);
        }
    }
    topics
}
