//! A bounded table, in the order of use. Pure.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use tokio::time::Instant;

/// Values by key, with the time at which each was last used. A full table gives up the one that was not used for
/// longest.
#[derive(Debug)]
pub struct Table<K, V> {
    max: usize,
    entries: HashMap<K, Entry<V>>,
    /// The keys by the turn of their last use.
    order: BTreeMap<u64, K>,
    turn: u64,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    used: Instant,
    turn: u64,
}

impl<K: Clone + Eq + Hash, V> Table<K, V> {
    /// Returns an empty table of at most `max` values, and at least one.
    pub fn new(max: usize) -> Self {
        Self {
            max: max.max(1),
            entries: HashMap::new(),
            order: BTreeMap::new(),
            turn: 0,
        }
    }

    /// Returns a value and the time of its last use, which stays.
    pub fn peek(&self, key: &K) -> Option<(&V, Instant)> {
        let entry = self.entries.get(key)?;
        Some((&entry.value, entry.used))
    }

    /// Notes that a value is used now.
    pub fn touch(&mut self, key: &K, now: Instant) {
        self.turn = self.turn.wrapping_add(1);
        if let Some(entry) = self.entries.get_mut(key) {
            self.order.remove(&entry.turn);
            (entry.used, entry.turn) = (now, self.turn);
            self.order.insert(self.turn, key.clone());
        }
    }

    /// Sets a value, which is used now. Returns those that it displaces.
    pub fn insert(&mut self, key: K, value: V, now: Instant) -> Vec<V> {
        let mut displaced: Vec<_> = self.remove(&key).into_iter().collect();
        while self.entries.len() >= self.max {
            displaced.extend(self.pop());
        }
        self.turn = self.turn.wrapping_add(1);
        let (used, turn) = (now, self.turn);
        self.order.insert(turn, key.clone());
        self.entries.insert(key, Entry { value, used, turn });
        displaced
    }

    /// Removes a value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let entry = self.entries.remove(key)?;
        self.order.remove(&entry.turn);
        Some(entry.value)
    }

    /// Returns the key and the time of the last use of the value that was not used for longest.
    pub fn oldest(&self) -> Option<(&K, Instant)> {
        let (_, key) = self.order.first_key_value()?;
        Some((key, self.entries.get(key)?.used))
    }

    /// Removes the values that are not wanted.
    pub fn retain(&mut self, mut wanted: impl FnMut(&V) -> bool) {
        let order = &mut self.order;
        self.entries.retain(|_, entry| {
            let stays = wanted(&entry.value);
            if !stays {
                order.remove(&entry.turn);
            }
            stays
        });
    }

    fn pop(&mut self) -> Option<V> {
        let (_, key) = self.order.pop_first()?;
        self.entries.remove(&key).map(|entry| entry.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_gives_up_what_was_not_used_for_longest() {
        let now = Instant::now();
        let mut table = Table::new(2);
        assert!(table.insert("a", 1, now).is_empty());
        assert!(table.insert("b", 2, now).is_empty());
        table.touch(&"a", now);
        assert_eq!(table.insert("c", 3, now), [2]);
        assert_eq!(table.oldest().map(|(key, _)| *key), Some("a"));
        assert_eq!(
            table.insert("a", 4, now),
            [1],
            "the same key is no further entry"
        );
        assert_eq!(table.oldest().map(|(key, _)| *key), Some("c"));
        table.retain(|value| *value == 4);
        assert_eq!(table.oldest().map(|(key, _)| *key), Some("a"));
        assert_eq!(table.remove(&"a"), Some(4));
        assert!(table.oldest().is_none() && table.peek(&"a").is_none());
    }
}
