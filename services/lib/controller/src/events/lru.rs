//! A table of bounded size that forgets what was not asked for in a long while.

use std::collections::HashMap;
use std::hash::Hash;

/// At most so many entries: when the young half is full it becomes the old one, and what was old is forgotten, unless it
/// was asked for meanwhile.
pub(super) struct Lru<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    half: usize,
}

impl<K: Eq + Hash + Clone, V: Default> Lru<K, V> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            half: most / 2,
        }
    }

    /// The entry, which is new if it was not there.
    pub(super) fn entry(&mut self, key: K) -> &mut V {
        if !self.young.contains_key(&key) {
            if self.young.len() >= self.half {
                self.old = std::mem::take(&mut self.young);
            }
            let value = self.old.remove(&key).unwrap_or_default();
            self.young.insert(key.clone(), value);
        }
        self.young.entry(key).or_default()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }
}
