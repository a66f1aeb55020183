//! The keys that sign and verify tokens of ServiceAccounts.
//!
//! The key that signs is in etcd, beside the registry: all gateways of a cluster share it, and whoever can read it can
//! read all Secrets, too. It is not rotated, but may be replaced when etcd is restored. It is therefore read for each
//! token that is issued, and again, at most once a second, when a token has no known key. Tokens of all keys that this
//! process has seen are valid.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use setpoint_proto::{ApiError, Reason};
use setpoint_store::{self as store, Store, Write, keys};
use tokio::time::Instant;

use super::jwt::{self, SigningKey};

/// The least time between two reads of the key for tokens that no known key has signed: anybody may send those.
const REREAD: Duration = Duration::from_secs(1);
/// The number of keys that are kept.
const MAX_KEYS: usize = 16;

/// The keys that a process has seen, and the store that has the current one.
pub(crate) struct TokenKeys {
    store: Arc<dyn Store>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The current key is the last one.
    keys: Vec<Key>,
    reread: Option<Instant>,
}

#[derive(Clone)]
struct Key {
    stored: Bytes,
    key: Arc<SigningKey>,
}

impl TokenKeys {
    /// Returns the keys of a store.
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            known: Mutex::default(),
        }
    }

    /// Makes a key the current one.
    fn add(&self, stored: Bytes) -> Result<Arc<SigningKey>, ApiError> {
        let mut known = self.known.lock();
        let found = known.keys.iter().position(|key| key.stored == stored);
        let added = match found {
            Some(at) => known.keys.remove(at),
            None => Key {
                key: Arc::new(SigningKey::read(&stored).map_err(internal)?),
                stored,
            },
        };
        if known.keys.len() == MAX_KEYS {
            known.keys.remove(0);
        }
        let key = added.key.clone();
        known.keys.push(added);
        Ok(key)
    }

    fn current(&self) -> Option<Bytes> {
        let known = self.known.lock();
        known.keys.last().map(|key| key.stored.clone())
    }

    fn verify<T: DeserializeOwned>(&self, token: &str) -> Option<T> {
        let keys = self.known.lock().keys.clone();
        keys.iter().rev().find_map(|key| key.key.verify(token))
    }

    /// Returns whether the key may be read again now, and counts that as done.
    fn may_reread(&self) -> bool {
        let (mut known, now) = (self.known.lock(), Instant::now());
        let may = known.keys.is_empty() || known.reread.is_none_or(|last| now - last >= REREAD);
        if may {
            known.reread = Some(now);
        }
        may
    }

    /// Returns the key in the store. If there is none, it becomes the one that this process knows, or a new one.
    ///
    /// # Errors
    /// Those of the store; `InternalError` if the key cannot be used.
    pub(crate) async fn signing_key(&self) -> Result<Arc<SigningKey>, ApiError> {
        let stored = match self.store.get(keys::TOKEN_KEY).await? {
            Some(entry) => entry.value,
            None => self.create_key().await?,
        };
        self.add(stored)
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
            }) => Ok(entry.value),
            Err(error) => Err(error.into()),
        }
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
        if known.is_some() || !self.may_reread() {
            return Ok(known);
        }
        Ok(self.signing_key().await?.verify(token))
    }

    /// Returns the public keys that verify tokens, as a JSON Web Key Set, the current one first.
    ///
    /// # Errors
    /// As [`Self::signing_key`].
    pub(crate) async fn key_set(&self) -> Result<Value, ApiError> {
        if self.may_reread() {
            self.signing_key().await?;
        }
        let known = self.known.lock();
        let keys = known.keys.iter().rev().map(|key| key.key.web_key());
        Ok(json!({ "keys": keys.collect::<Vec<_>>() }))
    }
}

pub(crate) fn internal(error: jwt::Error) -> ApiError {
    ApiError::new(Reason::InternalError, error.to_string())
}
