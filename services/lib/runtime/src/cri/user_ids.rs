//! The ids of users and groups of Pods with user namespaces of their own: each has a range of the node's, which no
//! other Pod has as long as the first one is known. The annotation of a sandbox keeps its range for an agent that
//! starts again. Pure.

use std::collections::{HashMap, HashSet};

/// The number of ids of a Pod, which is the kubelet's `userNamespaces.idsPerPod`.
pub const LENGTH: u32 = 65_536;
/// The ranges, counted from id 0: the first one has the ids of the node, the last one has the id -1 that means none.
const RANGES: std::ops::Range<u32> = 1..65_535;

/// The first ids of the ranges, by the uids of Pods.
#[derive(Default)]
pub struct UserIds(HashMap<String, u32>);

impl UserIds {
    /// Returns the first id of a Pod, and gives it a range if it has none; `None` if all ranges are taken.
    pub fn of(&mut self, uid: &str) -> Option<u32> {
        if let Some(known) = self.0.get(uid) {
            return Some(*known);
        }
        let taken: HashSet<_> = self.0.values().copied().collect();
        let mut all = RANGES.map(|range| range.saturating_mul(LENGTH));
        let free = all.find(|first| !taken.contains(first))?;
        self.0.insert(uid.to_owned(), free);
        Some(free)
    }

    /// Keeps the range that the sandbox of a Pod has.
    pub fn adopt(&mut self, uid: &str, first: u32) {
        self.0.insert(uid.to_owned(), first);
    }

    /// Takes back the range of a Pod.
    pub fn release(&mut self, uid: &str) {
        self.0.remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_pods_have_the_same_ids_as_long_as_both_are_there() {
        let mut ids = UserIds::default();
        ids.adopt("left", 2 * LENGTH);
        assert_eq!(ids.of("a"), Some(LENGTH));
        assert_eq!(ids.of("a"), Some(LENGTH), "it has the same in each sandbox");
        assert_eq!(ids.of("left"), Some(2 * LENGTH));
        assert_eq!(ids.of("b"), Some(3 * LENGTH));
        ids.release("left");
        assert_eq!(ids.of("c"), Some(2 * LENGTH));
    }

    #[test]
    fn a_pod_for_which_no_ids_are_left_has_none() {
        let mut ids = UserIds::default();
        for range in RANGES {
            ids.adopt(&range.to_string(), range * LENGTH);
        }
        assert_eq!(ids.of("one more"), None);
        ids.release("65534");
        let last = ids.of("one more").unwrap();
        assert!(last.checked_add(LENGTH).is_some(), "-1 is no id");
    }
}
