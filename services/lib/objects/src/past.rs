//! [`Past`]: the verbs that read.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use setpoint_codec::{envelope, kind_of};
use setpoint_controller::View;
use setpoint_model::Revision;
use setpoint_proto::Resource;
use setpoint_store::{Entry, Range, Store as _, keys};

use crate::objects::{Objects, Stored, at_once};

/// The objects as of a revision.
#[derive(Clone, Copy)]
pub struct Past<'a> {
    objects: &'a Objects,
    at: Revision,
}

impl<'a> Past<'a> {
    pub(crate) const fn new(objects: &'a Objects, at: Revision) -> Self {
        Self { objects, at }
    }

    /// Returns an object.
    pub fn get<T: Stored>(self, name: &str) -> Option<T> {
        let key = self.objects.key(kind_of::<T>(), name);
        let entry = at_once(self.objects.store.get_at(&key, self.at)).unwrap();
        Some(T::clone(&self.decoded(&entry?)))
    }

    /// Returns the objects of a kind, by name.
    pub fn list<T: Stored>(self) -> Vec<Arc<T>> {
        let kind = kind_of::<T>();
        let range = Range {
            at: Some(self.at),
            ..Range::all(keys::prefix(kind, self.objects.namespace_of(kind)))
        };
        let page = at_once(self.objects.store.list(range)).unwrap();
        let entries = page.entries.iter();
        entries.map(|entry| self.decoded(entry)).collect()
    }

    /// Returns the views of the objects of a kind, by name.
    pub fn views<V: View>(self) -> Vec<Arc<V>>
    where
        V::Object: Stored,
    {
        let objects = self.list::<V::Object>().into_iter();
        let views = objects.map(|object| V::of(V::Object::clone(&object)));
        views.map(Arc::new).collect()
    }

    /// Returns the object of an entry. Each version is decoded once.
    fn decoded<T: Stored>(self, entry: &Entry) -> Arc<T> {
        let mut decoded = self.objects.decoded.borrow_mut();
        let object = decoded
            .entry(entry.revision)
            .or_insert_with(|| Arc::new(decode::<T>(&entry.value, entry.revision)));
        let object: Arc<dyn Any + Send + Sync> = object.clone();
        object.downcast().expect("a revision changes one object")
    }
}

fn decode<T: Stored>(value: &Bytes, revision: Revision) -> T {
    let raw = envelope::read(value).unwrap().raw;
    let mut object = T::decode(raw).unwrap();
    Resource::meta_mut(&mut object).resource_version = revision.to_string();
    object
}

/// Writes the newest keys, for failed tests.
impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let page = at_once(self.store.list(Range::all(keys::ROOT))).unwrap();
        let keys = page.entries.into_iter();
        f.debug_list()
            .entries(keys.map(|entry| (entry.key, entry.revision)))
            .finish()
    }
}
