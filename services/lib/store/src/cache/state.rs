//! The state of the cache: the current objects, and the log of changes that led to them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use setpoint_codec::{CustomKinds, Kind, KindTable, kinds};
use setpoint_model::Revision;
use setpoint_proto::{ApiError, Reason};
use tokio::sync::Notify;

use super::decode::{DecodedBatch, Stored};
use super::kind_store::KindStore;
use super::log::{Log, Topic};
use super::record::Record;
use super::reflector::Relist;
use super::{Cached, Filter, Settings, Snapshot, metrics};

/// The objects of each kind, by the type URL of the kind.
pub(super) type KindStores = HashMap<&'static str, KindStore>;

/// Objects and log, always at the same revision.
pub(super) struct State {
    pub revision: Revision,
    pub log: Log,
    /// The revision at which the holder of any Lease last changed.
    pub elected: Revision,
    kind_stores: KindStores,
    table: Arc<KindTable>,
    closed: bool,
}

pub(super) fn empty_kind_stores() -> KindStores {
    kinds()
        .iter()
        .map(|kind| (kind.stored_as.as_str(), KindStore::new(kind)))
        .collect()
}

impl State {
    pub fn new(settings: &Settings, table: Arc<KindTable>) -> Self {
        let mut log = Log::new(settings);
        for kind in kinds().iter() {
            log.subscribe(&Topic::Kind(&kind.stored_as));
        }
        Self {
            revision: Revision::default(),
            log,
            elected: Revision::default(),
            kind_stores: empty_kind_stores(),
            table,
            closed: false,
        }
    }

    /// Returns the objects of a stored kind.
    ///
    /// # Errors
    /// `NotFound` if it is a custom kind whose definition has been deleted.
    pub fn kind_store(&self, kind: &Kind) -> Result<&KindStore, ApiError> {
        let found = self.kind_stores.get(kind.stored_as.as_str());
        found.ok_or_else(|| {
            let message = "the server could not find the requested resource";
            ApiError::new(Reason::NotFound, message)
        })
    }

    /// Returns the objects that a filter selects, and their revision.
    ///
    /// # Errors
    /// As [`Self::kind_store`].
    pub fn snapshot(&self, filter: &Filter) -> Result<Snapshot, ApiError> {
        let kind_store = self.kind_store(filter.kind())?;
        Ok(Snapshot {
            revision: self.revision,
            items: kind_store.select(filter),
            unreadable: kind_store.unreadable_in(filter.namespace()),
        })
    }

    /// Returns the objects of all kinds.
    pub fn all(&self) -> Vec<Arc<Cached>> {
        let objects = self.kind_stores.values().flat_map(KindStore::all);
        objects.cloned().collect()
    }

    /// Replaces all objects by those of a relist. All watches expire. Returns the watchers to wake.
    pub fn replace(&mut self, relist: Relist) -> Vec<Arc<Notify>> {
        self.revision = relist.revision;
        self.kind_stores = relist.kind_stores;
        self.redefine(relist.custom, Vec::new(), relist.revision);
        self.log.restart(relist.revision);
        self.log.take_touched()
    }

    /// Applies batches, each as a whole. Returns the watchers to wake.
    pub fn apply(&mut self, batches: Vec<DecodedBatch>) -> Vec<Arc<Notify>> {
        for batch in batches {
            for change in batch.changes {
                let Some(kind_store) = self.kind_stores.get_mut(change.kind.stored_as.as_str())
                else {
                    continue;
                };
                let new = match &change.new {
                    Stored::Object(object) => Some(object.clone()),
                    Stored::Nothing => None,
                    Stored::Unreadable(_) => {
                        kind_store.put(&change.key, change.new);
                        // It is not deleted, and what it has become cannot be told.
                        self.log.expire(&change.kind.stored_as, batch.revision);
                        continue;
                    }
                };
                let was_unreadable = kind_store.unreadable(&change.key).is_some();
                let old = kind_store.put(&change.key, change.new);
                if old.is_none() && new.is_none() {
                    if was_unreadable {
                        // Those that follow all kinds may still have the object as it was before.
                        self.log.expire_whole(batch.revision);
                    }
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
            if let Some(custom) = batch.custom {
                self.redefine(custom, batch.added, batch.revision);
            }
            // Set last: after a panic, a half-applied batch must not pass for this revision.
            self.revision = batch.revision;
        }
        self.log.take_touched()
    }

    /// Serves these custom kinds from now on, of which `added` are new. The watches of kinds that are gone end with
    /// `Expired` after their last event.
    fn redefine(
        &mut self,
        custom: Arc<CustomKinds>,
        added: Vec<(&'static Kind, KindStore)>,
        revision: Revision,
    ) {
        for (kind, kind_store) in added {
            self.add(kind, kind_store, revision);
        }
        let stored: Vec<_> = custom.resources().filter_map(|of| of.stored()).collect();
        for kind in &stored {
            let kind_store = self.kind_stores.entry(&kind.stored_as);
            kind_store.or_insert_with(|| KindStore::new(kind));
            self.log.begin(&Topic::Kind(&kind.stored_as));
        }
        let present: HashSet<&str> = stored.iter().map(|kind| kind.stored_as.as_str()).collect();
        let before = self.table.custom();
        let before = before.resources().filter_map(|of| of.stored());
        for kind in before.filter(|kind| !present.contains(kind.stored_as.as_str())) {
            self.kind_stores.remove(kind.stored_as.as_str());
            self.log.end(&Topic::Kind(&kind.stored_as));
            metrics::forget(kind);
        }
        self.table.publish(custom);
    }

    /// Adds a kind with its objects. Watches from before its former definition was deleted expire, and those of all
    /// kinds if it has objects.
    fn add(&mut self, kind: &'static Kind, kind_store: KindStore, revision: Revision) {
        self.log.expire(&kind.stored_as, revision);
        if kind_store.all().next().is_some() {
            self.log.expire_whole(revision);
        }
        self.kind_stores.insert(&kind.stored_as, kind_store);
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

/// Returns the topics of a change: that of the kind, that of custom kinds if it is one, and those of the old and new
/// value of its indexed field.
fn topics(kind: &'static Kind, values: [Option<Arc<str>>; 2]) -> Vec<Topic> {
    let mut topics = vec![Topic::Kind(&kind.stored_as)];
    topics.extend(kind.is_custom().then_some(Topic::Custom));
    for value in values.into_iter().flatten() {
        let topic = Topic::Indexed(&kind.stored_as, value);
        if !topics.contains(&topic) {
            topics.push(topic);
        }
    }
    topics
}
