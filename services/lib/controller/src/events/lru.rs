//! A bounded map that forgets the entries that were not used for the longest time.

use std::collections::HashMap;
use std::hash::Hash;

/// A cache of two generations: when the new one is full it replaces the old one, and a hit moves an entry to the new
/// one.
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

    /// Returns the entry, inserting a default one if there is none.
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
