//! What the cache knows: every object as it now is, and the log of how it came to be so.

use std::collections::HashMap;
use std::sync::Arc;

use setpoint_codec::{Kind, kinds};
use setpoint_model::Revision;
use tokio::sync::Notify;

use super::load::{Decoded, Loaded, Stored};
use super::log::{Log, Topic};
use super::record::Record;
use super::shelf::Shelf;
use super::{Filter, Settings, Snapshot};

/// By the kind's type.
pub(super) type Shelves = HashMap<&'static str, Shelf>;

/// State and log, always at the same revision.
pub(super) struct State {
    pub revision: Revision,
    pub log: Log,
    /// When a new leader was last elected, of whatever.
    pub elected: Revision,
    shelves: Shelves,
    closed: bool,
}

pub(super) fn empty_shelves() -> Shelves {
    kinds()
        .iter()
        .map(|kind| (kind.type_url.as_str(), Shelf::new(kind)))
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
            shelves: empty_shelves(),
            closed: false,
        }
    }

    pub fn shelf(&self, kind: &Kind) -> &Shelf {
        self.shelves
            .get(kind.type_url.as_str())
            .expect("there is a shelf for every stored kind")
    }

    pub fn snapshot(&self, filter: &Filter) -> Snapshot {
        Snapshot {
            revision: self.revision,
            items: self.shelf(filter.kind()).select(filter),
        }
    }

    /// Takes what was read anew in place of everything. All watchers start again.
    pub fn replace(&mut self, loaded: Loaded) -> Vec<Arc<Notify>> {
        self.revision = loaded.revision;
        self.shelves = loaded.shelves;
        self.log.restart(loaded.revision);
        self.log.take_touched()
    }

    /// Takes in revisions, each whole.
    pub fn apply(&mut self, batches: Vec<Decoded>) -> Vec<Arc<Notify>> {
        for batch in batches {
            for change in batch.changes {
                let Some(shelf) = self.shelves.get_mut(change.kind.type_url.as_str()) else {
                    continue;
                };
                let stored = match change.new {
                    Stored::Object(object) => Stored::Object(Arc::new(object)),
                    Stored::Nothing => Stored::Nothing,
                    Stored::Unreadable(revision) => Stored::Unreadable(revision),
                };
                let new = stored.object().cloned();
                let old = shelf.put(&change.key, stored);
                if old.is_none() && new.is_none() {
                    continue;
                }
                let nodes = [&old, &new].map(|object| shelf.node_of(object.as_deref()?));
                shelf.dispatched();
                let record = Record::new(batch.revision, old, new, change.cause);
                if record.begins_term() {
                    self.elected = batch.revision;
                    self.log.touch_all();
                }
                self.log.push(record, topics(change.kind, nodes));
            }
            // Last, so that what a panic leaves half done does not pass for this revision.
            self.revision = batch.revision;
        }
        self.log.take_touched()
    }

    /// No watch goes on from here.
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

/// The kind's topic, and those of the nodes that lose and get the Pod.
fn topics(kind: &'static Kind, nodes: [Option<Arc<str>>; 2]) -> Vec<Topic> {
    let mut topics = vec![Topic::Kind(&kind.type_url)];
    for node in nodes.into_iter().flatten().map(Topic::Node) {
        if !topics.contains(&node) {
            topics.push(node);
        }
    }
    topics
}
