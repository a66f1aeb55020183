//! A store that encrypts the values of another one.
//!
//! The value is encrypted as a whole: the envelope, with the cause and the identity of the write, is a part of it. The
//! store below tells its own writes by their bytes, of which no two are the same, since each has another nonce.
//!
//! A value that cannot be decrypted is returned as it is stored, as [`Form::Untransformable`]. It is never left out:
//! nobody may take it for one that does not exist.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{self, BoxStream, StreamExt as _};
use parking_lot::Mutex;
use setpoint_encryption::{Encryption, Opened};
use setpoint_model::Revision;
use tokio::sync::watch;

use crate::{Batch, Change, Entry, Error, Form, KeyChange, Page, Range, Store, Write, keys};

/// A store with encryption.
pub struct Encrypted {
    inner: Arc<dyn Store>,
    encryption: Arc<Encryption>,
    /// The changes of the encryption that watches have not ended for yet. One between a list and the watch that follows
    /// it ends that watch.
    changes: Arc<Mutex<watch::Receiver<u64>>>,
}

impl Encrypted {
    /// Returns a store that encrypts the values of `inner`.
    pub fn new(inner: Arc<dyn Store>, encryption: Arc<Encryption>) -> Self {
        Self {
            inner,
            changes: Arc::new(Mutex::new(encryption.changes())),
            encryption,
        }
    }

    /// Encrypts the values of a write.
    fn seal(&self, mut write: Write) -> Result<Write, Error> {
        let puts = write.preconditions.iter_mut();
        let puts = puts.filter_map(|one| Some((one.key.as_str(), one.put.as_mut()?)));
        let value = write.value.as_mut();
        let value = value.map(|value| (write.key.as_str(), value));
        for (key, value) in value.into_iter().chain(puts) {
            if let Some(resource) = keys::resource(key) {
                let sealed = self.encryption.seal(resource, key, value);
                *value = sealed.map_err(Error::Encryption)?;
            }
        }
        Ok(write)
    }
}

/// Decrypts an entry.
async fn open(encryption: &Encryption, entry: Entry) -> Entry {
    let Entry { key, value, .. } = &entry;
    let Some(resource) = keys::resource(key) else {
        return entry;
    };
    match encryption.open(resource, key, value).await {
        Ok(Opened { value, stale }) => Entry {
            value,
            form: if stale { Form::Stale } else { Form::Current },
            ..entry
        },
        Err(why) => Entry {
            form: Form::Untransformable(why.to_string().into()),
            ..entry
        },
    }
}

async fn open_batch(encryption: &Encryption, mut batch: Batch) -> Batch {
    for change in &mut batch.changes {
        if let Some(value) = change.value.take() {
            let opened = Entry {
                key: std::mem::take(&mut change.key),
                value,
                revision: batch.revision,
                form: Form::default(),
            };
            let Entry {
                key, value, form, ..
            } = open(encryption, opened).await;
            *change = Change {
                key,
                value: Some(value),
                form,
                cause: change.cause.take(),
            };
        }
    }
    batch
}

impl Store for Encrypted {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Entry>, Error>> {
        async move {
            match self.inner.get(key).await? {
                Some(entry) => Ok(Some(open(&self.encryption, entry).await)),
                None => Ok(None),
            }
        }
        .boxed()
    }

    fn get_at<'a>(
        &'a self,
        key: &'a str,
        at: Revision,
    ) -> BoxFuture<'a, Result<Option<Entry>, Error>> {
        async move {
            match self.inner.get_at(key, at).await? {
                Some(entry) => Ok(Some(open(&self.encryption, entry).await)),
                None => Ok(None),
            }
        }
        .boxed()
    }

    fn list(&self, range: Range) -> BoxFuture<'_, Result<Page, Error>> {
        async move {
            let keys_only = range.keys_only;
            let mut page = self.inner.list(range).await?;
            if !keys_only {
                let mut entries = Vec::with_capacity(page.entries.len());
                for entry in page.entries {
                    entries.push(open(&self.encryption, entry).await);
                }
                page.entries = entries;
            }
            Ok(page)
        }
        .boxed()
    }

    fn commit(&self, write: Write) -> BoxFuture<'_, Result<Revision, Error>> {
        async move {
            match self.inner.commit(self.seal(write.clone())?).await {
                Err(Error::Conflict {
                    current: Some(entry),
                }) => {
                    let current = open(&self.encryption, entry).await;
                    match write.has_put(&current.value) {
                        // It was committed before, with another nonce, by which the store below does not know it.
                        true => Ok(current.revision),
                        false => Err(Error::Conflict {
                            current: Some(current),
                        }),
                    }
                }
                outcome => outcome,
            }
        }
        .boxed()
    }

    fn revision(&self) -> BoxFuture<'_, Result<Revision, Error>> {
        self.inner.revision()
    }

    /// As the port says. It also ends with [`Error::Expired`] when values may have become readable that were not: what
    /// a reader has then must be read again.
    fn watch(&self, after: Revision) -> BoxStream<'static, Result<Batch, Error>> {
        let batches = self.inner.watch(after);
        let ends = self.changes.clone();
        let changes = ends.lock().clone();
        let start = Some((batches, changes, self.encryption.clone()));
        stream::unfold(start, move |state| {
            let ends = ends.clone();
            async move {
                let (mut batches, mut changes, encryption) = state?;
                tokio::select! {
                    biased;
                    changed = changes.changed() => {
                        // Cannot fail: `encryption` has the sender.
                        let _ = changed;
                        ends.lock().borrow_and_update();
                        Some((Err(Error::Expired), None))
                    }
                    batch = batches.next() => match batch? {
                        Ok(batch) => {
                            let batch = open_batch(&encryption, batch).await;
                            Some((Ok(batch), Some((batches, changes, encryption))))
                        }
                        Err(error) => Some((Err(error), None)),
                    },
                }
            }
        })
        .boxed()
    }

    fn watch_key(
        &self,
        key: &str,
        after: Revision,
    ) -> BoxStream<'static, Result<KeyChange, Error>> {
        let changes = self.inner.watch_key(key, after);
        let (encryption, key) = (self.encryption.clone(), key.to_owned());
        let opened = changes.then(move |change| {
            let (encryption, key) = (encryption.clone(), key.clone());
            async move {
                let mut change = change?;
                if let Some(value) = change.value.take() {
                    let entry = Entry {
                        key,
                        value,
                        revision: change.revision,
                        form: Form::default(),
                    };
                    change.value = Some(open(&encryption, entry).await.value);
                }
                Ok(change)
            }
        });
        opened.boxed()
    }
}
