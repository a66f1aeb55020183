//! The current objects of one kind.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use prometheus::{IntCounter, IntGauge};
use setpoint_codec::Kind;
use setpoint_model::Key;

use super::check::Digest;
use super::decode::Stored;
use super::fields::Field;
use super::unreadable::Unreadable;
use super::{Cached, Filter, metrics};

type Objects = BTreeMap<Key, Arc<Cached>>;

/// The objects of one kind in key order, and an index by a field if the kind's options name one.
pub(super) struct KindStore {
    objects: Objects,
    unreadable: BTreeMap<Key, Unreadable>,
    index: Option<Index>,
    /// The field that names the holder, for kinds that elect leaders.
    holder: Option<Field>,
    count: IntGauge,
    /// The size of the objects, encoded.
    bytes: usize,
    dispatched: IntCounter,
}

/// The objects by the value of a field; those in which it is empty are not in the index.
struct Index {
    field: Field,
    values: HashMap<Arc<str>, Objects>,
}

impl KindStore {
    pub fn new(kind: &Kind) -> Self {
        let field = |path: &Option<String>| Field::resolve(kind, path.as_ref()?);
        Self {
            objects: Objects::new(),
            unreadable: BTreeMap::new(),
            count: metrics::objects(kind),
            bytes: 0,
            dispatched: metrics::dispatched(kind),
            index: field(&kind.indexed).map(|field| Index {
                field,
                values: HashMap::new(),
            }),
            holder: field(&kind.holder),
        }
    }

    pub fn get(&self, key: &Key) -> Option<&Arc<Cached>> {
        self.objects.get(key)
    }

    /// Returns all objects, in key order.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Cached>> {
        self.objects.values()
    }

    /// Returns the number of the objects, and their size in bytes.
    pub fn size(&self) -> (usize, usize) {
        (self.objects.len(), self.bytes)
    }

    /// Returns the value of the key if it cannot be decoded.
    pub fn unreadable(&self, key: &Key) -> Option<&Unreadable> {
        self.unreadable.get(key)
    }

    /// Returns the values that cannot be decoded, of a namespace or, if that is empty, of all.
    pub fn unreadable_in(&self, namespace: &str) -> Vec<Unreadable> {
        let is_in = |key: &Key| namespace.is_empty() || key.namespace == namespace;
        let found = self.unreadable.values().filter(|one| is_in(&one.key));
        found.cloned().collect()
    }

    /// Returns the digest of all keys of the kind, including those with unreadable values.
    pub fn digest(&self) -> Digest {
        let mut digest = Digest::default();
        for (key, object) in &self.objects {
            digest.add(key, object.revision);
        }
        for (key, unreadable) in &self.unreadable {
            digest.add(key, unreadable.revision);
        }
        digest
    }

    /// Replaces the state of a key; returns the object that it had.
    pub fn put(&mut self, key: &Key, stored: Stored) -> Option<Arc<Cached>> {
        let new = match stored {
            Stored::Unreadable(unreadable) => {
                self.unreadable.insert(key.clone(), unreadable);
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
        self.bytes += new.as_ref().map_or(0, |new| new.raw.len());
        let old = match new {
            Some(new) => self.objects.insert(key.clone(), new),
            None => self.objects.remove(key),
        };
        self.bytes -= old.as_ref().map_or(0, |old| old.raw.len());
        self.count
            .set(self.objects.len().try_into().unwrap_or(i64::MAX));
        old
    }

    /// Counts a change that is dispatched to watchers.
    pub fn dispatched(&self) {
        self.dispatched.inc();
    }

    /// Returns the value of the indexed field, if the kind has an index and the value is not empty.
    pub fn indexed(&self, object: &Cached) -> Option<Arc<str>> {
        self.index.as_ref()?.value_of(object)
    }

    /// Returns whether a change sets a new holder.
    pub fn changes_holder(&self, old: Option<&Cached>, new: Option<&Cached>) -> bool {
        let (Some(field), Some(old), Some(new)) = (&self.holder, old, new) else {
            return false;
        };
        let holder = field.read(&new.raw);
        !holder.is_empty() && holder != field.read(&old.raw)
    }

    /// Returns the objects that the filter selects, in key order.
    pub fn select(&self, filter: &Filter) -> Vec<Arc<Cached>> {
        let candidates = match (&self.index, filter.indexed()) {
            (Some(index), Some(value)) if !value.is_empty() => match index.values.get(value) {
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
    fn value_of(&self, object: &Cached) -> Option<Arc<str>> {
        let value = self.field.read(&object.raw);
        (!value.is_empty()).then(|| value.into())
    }

    fn put(&mut self, old: Option<&Arc<Cached>>, new: Option<&Arc<Cached>>) {
        if let Some(old) = old
            && let Some(value) = self.value_of(old)
            && let Some(objects) = self.values.get_mut(&value)
        {
            objects.remove(&old.key);
            if objects.is_empty() {
                self.values.remove(&value);
            }
        }
        if let Some(new) = new
            && let Some(value) = self.value_of(new)
        {
            self.values
                .entry(value)
                .or_default()
                .insert(new.key.clone(), new.clone());
        }
    }
}
