//! A store in which reads and writes of some keys panic: the way in which a bug in whatever is called shows itself.

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use parking_lot::Mutex;
use setpoint_gateway::store::{Batch, Entry, Error, Page, Range, Store, Write};
use setpoint_model::Revision;

/// Passes everything on, but panics at a deletion of a key that contains `word`.
pub struct Panicking {
    store: Arc<dyn Store>,
    word: Mutex<Option<&'static str>>,
}

impl Panicking {
    pub fn at(store: Arc<dyn Store>, word: &'static str) -> Arc<Self> {
        let word = Mutex::new(Some(word));
        Arc::new(Self { store, word })
    }

    /// Panics no more.
    pub fn mend(&self) {
        self.word.lock().take();
    }
}

impl Store for Panicking {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Entry>, Error>> {
        self.store.get(key)
    }

    fn get_at<'a>(
        &'a self,
        key: &'a str,
        at: Revision,
    ) -> BoxFuture<'a, Result<Option<Entry>, Error>> {
        self.store.get_at(key, at)
    }

    fn list(&self, range: Range) -> BoxFuture<'_, Result<Page, Error>> {
        self.store.list(range)
    }

    fn commit(&self, write: Write) -> BoxFuture<'_, Result<Revision, Error>> {
        let word = *self.word.lock();
        let hit = write.value.is_none() && word.is_some_and(|word| write.key.contains(word));
        assert!(!hit, "a bug at {}", write.key);
        self.store.commit(write)
    }

    fn revision(&self) -> BoxFuture<'_, Result<Revision, Error>> {
        self.store.revision()
    }

    fn watch(&self, after: Revision) -> BoxStream<'static, Result<Batch, Error>> {
        self.store.watch(after)
    }
}
