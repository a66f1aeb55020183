//! The open watches, by what they watch: so many are told of a write.

use std::collections::HashMap;

/// The objects that a watch is about, or that a write is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Watched {
    /// Empty for the core group.
    pub group: String,
    /// The plural.
    pub resource: String,
    /// Empty for all.
    pub namespace: String,
    /// Empty for all.
    pub name: String,
}

/// The number of watches of each.
#[derive(Debug, Default)]
pub struct WatchCounts {
    counts: HashMap<Watched, usize>,
}

impl WatchCounts {
    /// Counts a watch that has begun.
    pub fn begin(&mut self, watched: Watched) {
        *self.counts.entry(watched).or_default() += 1;
    }

    /// Counts a watch that has ended.
    pub fn end(&mut self, watched: &Watched) {
        if let Some(count) = self.counts.get_mut(watched) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.counts.remove(watched);
            }
        }
    }

    /// Returns the number of watches that are told of a write: those of all namespaces, of all names in the namespace,
    /// and of the object.
    pub fn told(&self, mut written: Watched) -> usize {
        let (namespace, name) = (
            std::mem::take(&mut written.namespace),
            std::mem::take(&mut written.name),
        );
        let mut told = self.counts.get(&written).copied().unwrap_or_default();
        if !namespace.is_empty() {
            written.namespace = namespace;
            told += self.counts.get(&written).copied().unwrap_or_default();
        }
        if !name.is_empty() {
            written.name = name;
            told += self.counts.get(&written).copied().unwrap_or_default();
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods(namespace: &str, name: &str) -> Watched {
        Watched {
            group: String::new(),
            resource: "pods".into(),
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    #[test]
    fn a_write_is_told_to_watches_of_all_of_its_namespace_and_of_itself() {
        let mut counts = WatchCounts::default();
        for watched in [pods("", ""), pods("a", ""), pods("a", "x"), pods("b", "")] {
            counts.begin(watched);
        }
        counts.begin(pods("a", ""));
        assert_eq!(counts.told(pods("a", "x")), 4);
        assert_eq!(counts.told(pods("a", "")), 3);
        assert_eq!(counts.told(pods("c", "x")), 1);
        counts.end(&pods("a", "x"));
        counts.end(&pods("a", "x"));
        assert_eq!(counts.told(pods("a", "x")), 3);
        assert_eq!(counts.counts.len(), 3);
    }
}
