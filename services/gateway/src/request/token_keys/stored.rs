//! The list of all keys in the store.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use setpoint_proto::{ApiError, Reason};
use setpoint_store::{Entry, Expect, Precondition, Write, keys};

use super::MAX_KEYS;

/// The keys with the times from which on they signed, as of a revision of the list.
pub(super) struct KeyList {
    revision: Expect,
    /// The newest first.
    keys: Vec<ListedKey>,
}

#[derive(Serialize, Deserialize)]
struct ListedKey {
    since: Timestamp,
    /// The key in PKCS #8, in base64.
    pkcs8: String,
}

impl KeyList {
    /// Reads the list from its entry; it is empty without one.
    ///
    /// # Errors
    /// `InternalError` if it is malformed.
    pub(super) fn read(entry: Option<Entry>) -> Result<Self, ApiError> {
        let Some(entry) = entry else {
            let (revision, keys) = (Expect::Absent, Vec::new());
            return Ok(Self { revision, keys });
        };
        let keys = serde_json::from_slice(entry.transformed()?).map_err(internal)?;
        let revision = Expect::At(entry.revision);
        Ok(Self { revision, keys })
    }

    /// Returns the time from which on a key signs; `None` if it is not listed.
    pub(super) fn since(&self, key: &[u8]) -> Option<Timestamp> {
        let key = BASE64_STANDARD.encode(key);
        let listed = self.keys.iter().find(|listed| listed.pkcs8 == key);
        listed.map(|listed| listed.since)
    }

    /// Adds a key that signs from now on. The oldest ones that are too many are left out.
    pub(super) fn add(&mut self, key: Bytes) {
        let listed = ListedKey {
            since: Timestamp::now(),
            pkcs8: BASE64_STANDARD.encode(key),
        };
        self.keys.insert(0, listed);
        self.keys.truncate(MAX_KEYS);
    }

    /// Returns the keys with their times. Those that are malformed are left out.
    pub(super) fn oldest_first(&self) -> impl Iterator<Item = (Bytes, Timestamp)> {
        self.keys.iter().rev().filter_map(|listed| {
            let key = BASE64_STANDARD.decode(&listed.pkcs8).ok()?;
            Some((key.into(), listed.since))
        })
    }

    /// Returns the part of another write that writes the list, if nobody else has changed it.
    ///
    /// # Errors
    /// `InternalError` if it cannot be encoded.
    pub(super) fn precondition(&self) -> Result<Precondition, ApiError> {
        Ok(Precondition {
            key: keys::TOKEN_KEYS.to_owned(),
            expect: self.revision,
            put: Some(self.encoded()?),
        })
    }

    /// Returns the write of the list, if nobody else has changed it.
    ///
    /// # Errors
    /// `InternalError` if it cannot be encoded.
    pub(super) fn write(&self) -> Result<Write, ApiError> {
        let value = self.encoded()?;
        Ok(match self.revision {
            Expect::Absent => Write::create(keys::TOKEN_KEYS, value),
            Expect::At(revision) => Write::update(keys::TOKEN_KEYS, revision, value),
        })
    }

    fn encoded(&self) -> Result<Bytes, ApiError> {
        Ok(serde_json::to_vec(&self.keys).map_err(internal)?.into())
    }
}

fn internal(error: serde_json::Error) -> ApiError {
    let message = format!("the list of keys that sign tokens is unusable: {error}");
    ApiError::new(Reason::InternalError, message)
}
