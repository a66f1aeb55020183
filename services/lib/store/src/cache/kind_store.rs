//! The current objects of one kind.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use prometheus::{IntCounter, IntGauge};
use setpoint_codec::Kind;
use setpoint_model::{Key, Revision};

use super::check::Digest;
use super::decode::Stored;
use super::fields::Field;
use super::{Cached, Filter, metrics};

type Objects = BTreeMap<Key, Arc<Cached>>;

/// The objects of one kind in key order, and an index of Pods by node.
pub(super) struct KindStore {
    objects: Objects,
    /// Keys whose values cannot be decoded, with the revisions of their last writes.
    unreadable: BTreeMap<Key, Revision>,
    index: Option<Index>,
    count: IntGauge,
    dispatched: IntCounter,
}

/// The bound Pods by node.
struct Index {
    field: Field,
    nodes: HashMap<Arc<str>, Objects>,
}

impl KindStore {
    pub fn new(kind: &Kind) -> Self {
        let is_pods = kind.group.is_empty() && kind.plural == "pods";
        let field = is_pods
            .then(|| Field::resolve(kind, "spec.nodeName"))
            .flatten();
        Self {
            objects: Objects::new(),
            unreadable: BTreeMap::new(),
            count: metrics::objects(kind),
            dispatched: metrics::dispatched(kind),
            index: field.map(|field| Index {
                field,
                nodes: HashMap::new(),
            }),
        }
    }

    pub fn get(&self, key: &Key) -> Option<&Arc<Cached>> {
        self.objects.get(key)
    }

    /// Returns whether the value of the key cannot be decoded.
    pub fn is_unreadable(&self, key: &Key) -> bool {
        self.unreadable.contains_key(key)
    }

    /// Returns the digest of all keys of the kind, including those with unreadable values.
    pub fn digest(&self) -> Digest {
        let mut digest = Digest::default();
        for (key, object) in &self.objects {
            digest.add(key, object.revision);
        }
        for (key, revision) in &self.unreadable {
            digest.add(key, *revision);
        }
        digest
    }

    /// Replaces the state of a key; returns the object that it had.
    pub fn put(&mut self, key: &Key, stored: Stored) -> Option<Arc<Cached>> {
        let new = match stored {
            Stored::Unreadable(revision) => {
                self.unreadable.insert(key.clone(), revision);
                None
            }
            Stored::Object(object) => {
                self.unreadable.remove(key);
                Some(object)
            }
            Stored::Nothing => {
                self.unreadable.remove(key);
                None
            }
        };
        if let Some(index) = &mut self.index {
            index.put(self.objects.get(key), new.as_ref());
        }
        let old = match new {
            Some(new) => self.objects.insert(key.clone(), new),
            None => self.objects.remove(key),
        };
        self.count
            .set(self.objects.len().try_into().unwrap_or(i64::MAX));
        old
    }

    /// Counts a change that is dispatched to watchers.
    pub fn dispatched(&self) {
        self.dispatched.inc();
    }

    /// Returns the node of an object, if the kind is indexed by node and the object is bound.
    pub fn node_of(&self, object: &Cached) -> Option<Arc<str>> {
        self.index.as_ref()?.node_of(object)
    }

    /// Returns the objects that the filter selects, in key order.
    pub fn select(&self, filter: &Filter) -> Vec<Arc<Cached>> {
        let candidates = match (&self.index, filter.node()) {
            (Some(index), Some(node)) if !node.is_empty() => match index.nodes.get(node) {
                Some(objects) => objects,
                None => return Vec::new(),
            },
            _ => &self.objects,
        };
        let from = Key::new(filter.namespace(), "");
        let in_namespace =
            |key: &Key| filter.namespace().is_empty() || key.namespace == filter.namespace();
        let candidates = candidates
            .range(from..)
            .take_while(|(key, _)| in_namespace(key));
        let selected = candidates.filter(|(_, object)| filter.matches(object));
        selected.map(|(_, object)| object.clone()).collect()
    }
}

impl Index {
    fn node_of(&self, object: &Cached) -> Option<Arc<str>> {
        let node = self.field.read(&object.raw);
        (!node.is_empty()).then(|| node.into())
    }

    fn put(&mut self, old: Option<&Arc<Cached>>, new: Option<&Arc<Cached>>) {
        if let Some(old) = old
            && let Some(node) = self.node_of(old)
            && let Some(objects) = self.nodes.get_mut(&node)
        {
            objects.remove(&old.key);
            if objects.is_empty() {
                self.nodes.remove(&node);
            }
        }
        if let Some(new) = new
            && let Some(node) = self.node_of(new)
        {
            self.nodes
                .entry(node)
                .or_default()
                .insert(new.key.clone(), new.clone());
        }
    }
}
