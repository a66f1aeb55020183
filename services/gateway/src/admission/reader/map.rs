//! A reader of objects in a map, for tests of plugins.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::ready;
use setpoint_codec::{Kind, Object, envelope};
use setpoint_model::{Key, Revision};
use setpoint_store::cache::{AtLeast, Cached, Filter, Snapshot};
use setpoint_store::{Entry, Form, keys};

use super::{Reader, Reading};

/// Objects and entries by the keys of a store. It is never stale.
#[derive(Default)]
pub(crate) struct MapReader {
    entries: BTreeMap<String, Entry>,
    objects: BTreeMap<String, Arc<Cached>>,
}

impl MapReader {
    /// Adds an object, at a revision of its own.
    pub(crate) fn with(mut self, object: &dyn Object) -> Self {
        let (kind, key) = (object.kind(), Key::of(object.meta()));
        let value = envelope::write(&kind.api_version(), &kind.kind, &object.encode(), None);
        let path = keys::object(kind, &key);
        let revision = u64::try_from(self.entries.len()).unwrap() + 1;
        let entry = Entry {
            key: path.clone(),
            value,
            revision: Revision::from_raw(revision),
            form: Form::default(),
        };
        let cached = Cached::read(kind, key, &entry).unwrap();
        self.objects.insert(path.clone(), Arc::new(cached));
        self.entries.insert(path, entry);
        self
    }
}

impl Reader for MapReader {
    fn get<'a>(
        &'a self,
        kind: &'static Kind,
        key: &'a Key,
        _at: AtLeast,
    ) -> Reading<'a, Option<Arc<Cached>>> {
        let found = self.objects.get(&keys::object(kind, key)).cloned();
        ready(Ok(found)).boxed()
    }

    fn list<'a>(&'a self, filter: &'a Filter, _at: AtLeast) -> Reading<'a, Snapshot> {
        let of_kind = |object: &&Arc<Cached>| object.kind == filter.kind();
        let all = self.objects.values().filter(of_kind);
        let items = all.filter(|object| filter.matches(object)).cloned();
        let snapshot = Snapshot {
            revision: Revision::default(),
            items: items.collect(),
            unreadable: Vec::new(),
        };
        ready(Ok(snapshot)).boxed()
    }

    fn newest<'a>(&'a self, key: &'a str) -> Reading<'a, Option<Entry>> {
        ready(Ok(self.entries.get(key).cloned())).boxed()
    }
}
