//! The remarks about nodes that were recorded, so that each is recorded once and not for each Pod.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The time that an Event is kept. After that, its remark may be recorded again.
const KEPT: Duration = Duration::from_secs(3600);
/// A bound on memory: names of capabilities are a user's words.
const MAX: usize = 4096;

/// The times at which something was said, by node and subject.
#[derive(Debug, Default)]
pub(super) struct Told(Mutex<HashMap<(String, String), Instant>>);

impl Told {
    /// Returns whether nothing was said of the subject yet, and takes it as said from now on.
    pub(super) fn is_new(&self, node: &str, subject: &str, now: Instant) -> bool {
        let mut told = self.0.lock();
        let is_kept = |at: &Instant| now.saturating_duration_since(*at) < KEPT;
        if told.len() >= MAX {
            told.retain(|_, at| is_kept(at));
        }
        let key = (node.to_owned(), subject.to_owned());
        let is_new = !told.get(&key).is_some_and(is_kept) && told.len() < MAX;
        if is_new {
            told.insert(key, now);
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_told_once_for_each_node_as_long_as_its_event_is_kept() {
        let (told, begin) = (Told::default(), Instant::now());
        let at = |node, subject, seconds| {
            told.is_new(node, subject, begin + Duration::from_secs(seconds))
        };
        assert!(at("node-0", "stdin", 0) && at("node-1", "stdin", 0) && at("node-0", "tty", 0));
        assert!(!at("node-0", "stdin", 3599) && at("node-0", "stdin", 3600));
        assert!(!at("node-0", "stdin", 3601));
    }

    #[test]
    fn subjects_are_bounded() {
        let (told, begin) = (Told::default(), Instant::now());
        let all = (0..2 * MAX).filter(|n| told.is_new("node-0", &n.to_string(), begin));
        assert_eq!(all.count(), MAX);
        assert!(told.is_new("node-0", "later", begin + KEPT));
    }
}
