//! The keys that sign and verify tokens of ServiceAccounts.
//!
//! They are in etcd, beside the registry: all gateways of a cluster share them, and whoever can read them can read all
//! Secrets, too. They are encrypted as Secrets are. One key signs; it is at a key of the store of its own, and is read
//! for each token that is issued. The others verify: the list of all keys, with their times, is read when a token has
//! no known key, at most once a second.
//!
//! ```text
//!                   first token            lifetime is over             lifetime is over
//! /setpoint/token-key     A ───────────────────▶ B ─────────────────────────▶ C
//! /setpoint/token-keys    ─   A (first seen) ──▶ B, A ──────────────────────▶ C, B, A
//! ```
//! A key is replaced in one transaction, by whichever gateway is asked for a token first. It still verifies then, until
//! [`MAX_KEYS`] others have followed it. The key that signs may also be replaced when etcd is restored: tokens of all
//! keys that this process has seen are valid.

mod stored;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use setpoint_proto::{ApiError, Reason};
use setpoint_store::{self as store, Entry, Form, Store, Write, keys};
use tokio::time::Instant;

use super::jwt::{self, SigningKey};
use stored::KeyList;

/// The least time between two reads of the keys for tokens that no known key has signed: anybody may send those.
const REREAD: Duration = Duration::from_secs(1);
/// The number of keys that are kept.
const MAX_KEYS: usize = 16;

/// The keys that a process has seen, and the store that has them.
pub(crate) struct TokenKeys {
    store: Arc<dyn Store>,
    /// The time for which a key signs; `None` for ever.
    lifetime: Option<Duration>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The current key is the last one.
    keys: Vec<Key>,
    reread: Option<Instant>,
    /// The error of the last read for a token, if it has failed.
    failure: Option<ApiError>,
}

#[derive(Clone)]
struct Key {
    stored: Bytes,
    key: Arc<SigningKey>,
    /// The time at which it began to sign, if that is known.
    since: Option<Timestamp>,
}

impl Known {
    /// Makes a key the current one.
    fn add(&mut self, stored: Bytes, since: Option<Timestamp>) -> Result<Key, ApiError> {
        let found = self.keys.iter().position(|key| key.stored == stored);
        let mut added = match found {
            Some(at) => self.keys.remove(at),
            None => Key {
                key: Arc::new(SigningKey::read(&stored).map_err(internal)?),
                stored,
                since: None,
            },
        };
        added.since = since.or(added.since);
        if self.keys.len() == MAX_KEYS {
            self.keys.remove(0);
        }
        self.keys.push(added.clone());
        Ok(added)
    }
}

impl TokenKeys {
    /// Returns the keys of a store. Each signs for `lifetime`.
    pub(super) fn new(store: Arc<dyn Store>, lifetime: Option<Duration>) -> Self {
        Self {
            store,
            lifetime,
            known: Mutex::default(),
        }
    }

    fn current(&self) -> Option<Bytes> {
        let known = self.known.lock();
        known.keys.last().map(|key| key.stored.clone())
    }

    fn verify<T: DeserializeOwned>(&self, token: &str) -> Option<T> {
        let keys = self.known.lock().keys.clone();
        keys.iter().rev().find_map(|key| key.key.verify(token))
    }

    /// Returns whether the keys may be read again now, and counts that as done.
    fn may_reread(&self) -> bool {
        let (mut known, now) = (self.known.lock(), Instant::now());
        let has_none = known.keys.is_empty() && known.failure.is_none();
        let may = has_none || known.reread.is_none_or(|last| now - last >= REREAD);
        if may {
            known.reread = Some(now);
        }
        may
    }

    /// Returns the key that signs. If there is none in the store, it becomes the one that this process knows, or a new
    /// one; if its time is over, the next one takes its place.
    ///
    /// # Errors
    /// Those of the store; `InternalError` if a key cannot be used.
    pub(crate) async fn signing_key(&self) -> Result<Arc<SigningKey>, ApiError> {
        let Some(stored) = self.store.get(keys::TOKEN_KEY).await? else {
            let created = self.create_key().await?;
            return Ok(self.known.lock().add(created, None)?.key);
        };
        let current = self.known.lock().add(stored.transformed()?.clone(), None)?;
        let Some(lifetime) = self.lifetime else {
            return Ok(current.key);
        };
        match current.since {
            Some(since) if !is_over(since, lifetime) => Ok(current.key),
            _ => self.renew(stored, lifetime).await,
        }
    }

    async fn create_key(&self) -> Result<Bytes, ApiError> {
        let key = match self.current() {
            Some(known) => known,
            None => SigningKey::generate().map_err(internal)?.into(),
        };
        let write = Write::create(keys::TOKEN_KEY, key.clone());
        match self.store.commit(write).await {
            Ok(_) => Ok(key),
            // Another gateway was first.
            Err(store::Error::Conflict {
                current: Some(entry),
            }) => Ok(entry.transformed()?.clone()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the key that signs from now on: the current one, which is listed with the time if it is not yet, or, if
    /// its time is over, a new one.
    async fn renew(&self, current: Entry, lifetime: Duration) -> Result<Arc<SigningKey>, ApiError> {
        let mut list = self.read_list().await?;
        let since = list.since(&current.value);
        let write = match since {
            Some(since) if is_over(since, lifetime) => {
                tracing::info!("the key that signs tokens of ServiceAccounts is replaced");
                let next: Bytes = SigningKey::generate().map_err(internal)?.into();
                list.add(next.clone());
                Write::update(keys::TOKEN_KEY, current.revision, next)
                    .with_preconditions([list.precondition()?])
            }
            Some(_) => return Ok(self.known.lock().add(current.value, since)?.key),
            None => {
                list.add(current.value);
                list.write()?
            }
        };
        match self.store.commit(write).await {
            // With an error, another gateway was first.
            Ok(_) | Err(store::Error::Conflict { .. } | store::Error::PreconditionFailed) => {
                self.reread().await
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Writes those of the keys again that are stored in another form than they would be now.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn store_anew(&self) -> Result<(), ApiError> {
        for key in [keys::TOKEN_KEY, keys::TOKEN_KEYS] {
            let stored = self.store.get(key).await?;
            let Some(entry) = stored.filter(|entry| entry.form == Form::Stale) else {
                continue;
            };
            let write = Write::update(key, entry.revision, entry.value);
            match self.store.commit(write).await {
                // With a conflict, another gateway was first.
                Ok(_) | Err(store::Error::Conflict { .. }) => {
                    tracing::info!(key, "a key that signs tokens is stored anew");
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn read_list(&self) -> Result<KeyList, ApiError> {
        KeyList::read(self.store.get(keys::TOKEN_KEYS).await?)
    }

    /// Reads all keys. Returns the current one, as the store has it.
    async fn reread(&self) -> Result<Arc<SigningKey>, ApiError> {
        let list = self.read_list().await?;
        let current = match self.store.get(keys::TOKEN_KEY).await? {
            Some(entry) => entry.transformed()?.clone(),
            None => self.create_key().await?,
        };
        let mut known = self.known.lock();
        for (key, since) in list.oldest_first() {
            if let Err(error) = known.add(key, Some(since)) {
                tracing::warn!(
                    error = error.message,
                    "a key that verified tokens is left out"
                );
            }
        }
        Ok(known.add(current, None)?.key)
    }

    /// Returns the claims of a token; `None` if no key of this cluster has signed it.
    ///
    /// # Errors
    /// As [`Self::signing_key`].
    pub(super) async fn claims_of<T: DeserializeOwned>(
        &self,
        token: &str,
    ) -> Result<Option<T>, ApiError> {
        let known = self.verify(token);
        if known.is_some() || !jwt::is_token(token) {
            return Ok(known);
        }
        if self.may_reread() {
            let failure = self.reread().await.err();
            self.known.lock().failure.clone_from(&failure);
            return failure.map_or_else(|| Ok(self.verify(token)), Err);
        }
        // Without any key, nothing is known about the token.
        let known = self.known.lock();
        let failure = known.failure.clone().filter(|_| known.keys.is_empty());
        failure.map_or(Ok(None), Err)
    }

    /// Returns the public keys that verify tokens, as a JSON Web Key Set, the current one first.
    ///
    /// # Errors
    /// As [`Self::signing_key`].
    pub(crate) async fn key_set(&self) -> Result<Value, ApiError> {
        if self.may_reread() {
            self.reread().await?;
        }
        let known = self.known.lock();
        let keys = known.keys.iter().rev().map(|key| key.key.web_key());
        Ok(json!({ "keys": keys.collect::<Vec<_>>() }))
    }
}

/// Returns whether a key has signed for its lifetime.
fn is_over(since: Timestamp, lifetime: Duration) -> bool {
    let age = Timestamp::now().duration_since(since);
    Duration::try_from(age).is_ok_and(|age| age >= lifetime)
}

pub(crate) fn internal(error: jwt::Error) -> ApiError {
    ApiError::new(Reason::InternalError, error.to_string())
}
