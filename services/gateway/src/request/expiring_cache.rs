//! A cache of answers of other servers, bounded in their number and their age.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

/// The number of answers that are kept, as upstream.
const MOST: usize = 8192;

/// The most bytes of an answer that is kept.
const LARGEST: usize = 16 << 10;

/// The digest of a question, so that questions are not kept, which may be secret.
type Digest = [u8; 32];

/// Answers by their questions. If there are too many, those that were not used for the longest time are forgotten.
pub(super) struct ExpiringCache<T>(Mutex<Entries<T>>);

struct Entries<T> {
    by_question: HashMap<Digest, Entry<T>>,
    /// Questions in the order of their last use.
    used: BTreeMap<u64, Digest>,
    uses: u64,
}

struct Entry<T> {
    answer: T,
    expires: Instant,
    used: u64,
}

impl<T> Default for ExpiringCache<T> {
    fn default() -> Self {
        Self(Mutex::new(Entries {
            by_question: HashMap::new(),
            used: BTreeMap::new(),
            uses: 0,
        }))
    }
}

impl<T: Clone> ExpiringCache<T> {
    /// Returns the answer to a question, if it is known.
    pub(super) fn get(&self, question: &[u8]) -> Option<T> {
        let (digest, mut entries) = (Sha256::digest(question).into(), self.0.lock());
        let expires = entries.by_question.get(&digest)?.expires;
        if expires <= Instant::now() {
            entries.remove(&digest);
            return None;
        }
        entries.touch(digest)
    }

    /// Keeps the answer to a question for a time, which may be zero, unless it has too many bytes.
    pub(super) fn insert(&self, question: &[u8], answer: T, bytes: usize, ttl: Duration) {
        if ttl.is_zero() || bytes > LARGEST {
            return;
        }
        let (digest, mut entries) = (Sha256::digest(question).into(), self.0.lock());
        entries.remove(&digest);
        if entries.by_question.len() >= MOST
            && let Some((_, oldest)) = entries.used.pop_first()
        {
            entries.by_question.remove(&oldest);
        }
        let now = Instant::now();
        let entry = Entry {
            answer,
            expires: now.checked_add(ttl).unwrap_or(now),
            used: 0,
        };
        entries.by_question.insert(digest, entry);
        entries.touch(digest);
    }
}

impl<T: Clone> Entries<T> {
    fn remove(&mut self, digest: &Digest) {
        if let Some(entry) = self.by_question.remove(digest) {
            self.used.remove(&entry.used);
        }
    }

    /// Returns the answer, whose last use is now.
    fn touch(&mut self, digest: Digest) -> Option<T> {
        self.uses += 1;
        let entry = self.by_question.get_mut(&digest)?;
        self.used.remove(&entry.used);
        entry.used = self.uses;
        self.used.insert(self.uses, digest);
        Some(entry.answer.clone())
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const TTL: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_kept_for_its_time() {
        let cache = ExpiringCache::default();
        cache.insert(b"a", 1, 1, TTL);
        cache.insert(b"b", 2, 1, Duration::ZERO);
        cache.insert(b"b", 2, LARGEST + 1, TTL);
        assert_eq!((cache.get(b"a"), cache.get(b"b")), (Some(1), None));
        cache.insert(b"a", 3, 1, TTL);
        assert_eq!(cache.get(b"a"), Some(3));
        advance(TTL).await;
        assert_eq!(cache.get(b"a"), None);
        assert!(cache.0.lock().used.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn the_answer_that_was_not_used_for_the_longest_time_is_forgotten() {
        let cache = ExpiringCache::default();
        for question in 0..MOST {
            cache.insert(&question.to_be_bytes(), question, 1, TTL);
        }
        let get = |question: usize| cache.get(&question.to_be_bytes());
        assert_eq!(get(0), Some(0));
        cache.insert(&MOST.to_be_bytes(), MOST, 1, TTL);
        assert_eq!((get(0), get(1), get(2)), (Some(0), None, Some(2)));
        assert_eq!(get(MOST), Some(MOST));
        assert_eq!(cache.0.lock().by_question.len(), MOST);
    }
}
