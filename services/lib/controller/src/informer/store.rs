//! The objects of a cache: views in the order of their keys, with indexes that are updated with each change.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use setpoint_model::{Key, Revision};
use setpoint_proto::Cause;

use super::Delta;
use crate::View;

/// An object, ordered and found by the key inside its view, so that the key is stored once.
pub(super) struct Cached<V> {
    pub(super) view: Arc<V>,
    pub(super) cause: Option<Box<Cause>>,
}

impl<V: View> Cached<V> {
    pub(super) fn new(view: V, cause: Option<Cause>) -> Self {
        Self {
            view: Arc::new(view),
            cause: cause.map(Box::new),
        }
    }

    fn key(&self) -> &Key {
        &self.view.meta().key
    }
}

impl<V: View> Borrow<Key> for Cached<V> {
    fn borrow(&self) -> &Key {
        self.key()
    }
}

impl<V: View> Ord for Cached<V> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(other.key())
    }
}

impl<V: View> PartialOrd for Cached<V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<V: View> PartialEq for Cached<V> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<V: View> Eq for Cached<V> {}

/// An index from values to objects.
type Index<V> = HashMap<String, BTreeSet<Cached<V>>>;

/// The objects of a kind, indexed by owner and by tag.
pub(super) struct Store<V> {
    objects: BTreeSet<Cached<V>>,
    by_owner: Index<V>,
    by_tag: Index<V>,
}

impl<V> Default for Store<V> {
    fn default() -> Self {
        Self {
            objects: BTreeSet::new(),
            by_owner: HashMap::new(),
            by_tag: HashMap::new(),
        }
    }
}

impl<V: View> Store<V> {
    /// Inserts an object, or replaces the one of its key. Returns the changes that readers observe.
    pub(super) fn put(&mut self, cached: Cached<V>) -> Vec<Delta<V>> {
        let old = self.take(cached.key());
        let deltas = changes(old.as_ref(), Some(&cached));
        self.insert(cached);
        deltas
    }

    /// Removes a deleted object.
    pub(super) fn remove(
        &mut self,
        key: &Key,
        cause: Option<Cause>,
        revision: Revision,
    ) -> Option<Delta<V>> {
        self.take(key).map(|old| Delta {
            old: Some(old.view),
            new: None,
            cause,
            revision,
        })
    }

    /// Returns the changes from this store to `next`.
    pub(super) fn difference(&self, next: &Self, revision: Revision) -> Vec<Delta<V>> {
        let gone = self.objects.difference(&next.objects).map(|old| Delta {
            old: Some(old.view.clone()),
            new: None,
            cause: None,
            revision,
        });
        let still = next.objects.iter().flat_map(|new| {
            let old = self.objects.get(new.key());
            changes(old, Some(new))
        });
        gone.chain(still).collect()
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Cached<V>> {
        self.objects.get(key)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Cached<V>> {
        self.objects.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(super) fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = &Cached<V>> {
        let first = Key::new(namespace, "");
        self.objects
            .range::<Key, _>((Bound::Included(&first), Bound::Unbounded))
            .take_while(move |cached| cached.key().namespace == first.namespace)
    }

    pub(super) fn owned_by(&self, uid: &str) -> impl Iterator<Item = &Cached<V>> {
        self.by_owner.get(uid).into_iter().flatten()
    }

    pub(super) fn tagged(&self, tag: &str) -> impl Iterator<Item = &Cached<V>> {
        self.by_tag.get(tag).into_iter().flatten()
    }

    fn insert(&mut self, cached: Cached<V>) {
        let view = &cached.view;
        if let Some(owner) = &view.meta().owner {
            enter(&mut self.by_owner, &owner.uid, view);
        }
        if let Some(tag) = view.tag() {
            enter(&mut self.by_tag, tag, view);
        }
        self.objects.insert(cached);
    }

    fn take(&mut self, key: &Key) -> Option<Cached<V>> {
        let old = self.objects.take(key)?;
        if let Some(owner) = &old.view.meta().owner {
            leave(&mut self.by_owner, &owner.uid, key);
        }
        if let Some(tag) = old.view.tag() {
            leave(&mut self.by_tag, tag, key);
        }
        Some(old)
    }
}

/// A new uid under an old name is a deletion and an addition; the same revision is no change at all.
fn changes<V: View>(old: Option<&Cached<V>>, new: Option<&Cached<V>>) -> Vec<Delta<V>> {
    let delta = |old: Option<&Cached<V>>, new: Option<&Cached<V>>, latest: &Cached<V>| Delta {
        old: old.map(|cached| cached.view.clone()),
        new: new.map(|cached| cached.view.clone()),
        cause: latest.cause.as_deref().cloned(),
        revision: latest.view.meta().revision,
    };
    match (old, new) {
        (Some(was), Some(is)) => match (was.view.meta(), is.view.meta()) {
            (a, b) if a.uid != b.uid => vec![delta(old, None, is), delta(None, new, is)],
            (a, b) if a.revision == b.revision => Vec::new(),
            _ => vec![delta(old, new, is)],
        },
        (None, Some(is)) => vec![delta(None, new, is)],
        (_, None) => Vec::new(),
    }
}

fn enter<V: View>(index: &mut Index<V>, value: &str, view: &Arc<V>) {
    let cached = Cached {
        view: view.clone(),
        cause: None,
    };
    match index.get_mut(value) {
        Some(set) => _ = set.insert(cached),
        None => _ = index.insert(value.to_owned(), BTreeSet::from([cached])),
    }
}

fn leave<V: View>(index: &mut Index<V>, value: &str, key: &Key) {
    let Some(set) = index.get_mut(value) else {
        return;
    };
    set.remove(key);
    if set.is_empty() {
        index.remove(value);
    }
}
