//! The state of a provider, as a process knows it: the seed that it seals with, and whether the provider works.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ring::digest::{SHA256, digest};
use tokio::time::Instant;

use super::envelope::validate_key_id;
use super::seeds::SIZE;
use super::v2::{EncryptedObject, StatusResponse};

/// The time for which a seed is used after a good answer, as upstream.
pub(super) const SEED_TTL: Duration = Duration::from_secs(3 * 60);

/// The time between the first two attempts to read values that could not be opened, and the longest one.
const FIRST_RETRY: Duration = Duration::from_secs(10);
const LONGEST_RETRY: Duration = Duration::from_secs(30 * 60);

/// The seed that seals, and its encrypted form: an object without data.
pub(super) struct WriteSeed {
    pub seed: [u8; SIZE],
    pub encrypted: EncryptedObject,
}

/// The state of a provider.
pub(super) struct State {
    pub seed: Option<Arc<WriteSeed>>,
    /// The time from which on the seed is not used.
    pub expires: Instant,
    /// Whether the provider works; at first it was not asked yet.
    pub health: Result<(), Arc<str>>,
    /// The version of its first answer, which may not change.
    pub version: Option<String>,
    /// Whether values could not be opened since they were tried last.
    pub has_refused: bool,
    /// The time before which they are not tried again, and the wait after that.
    pub retry: (Instant, Duration),
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            seed: None,
            expires: Instant::now(),
            health: Err("it has not answered yet".into()),
            version: None,
            has_refused: false,
            retry: (Instant::now(), FIRST_RETRY),
        }
    }

    /// Returns whether values that could not be opened may be tried again now, since the provider works. Reading
    /// everything anew is expensive, so each time the wait doubles while there are such values.
    pub(super) fn may_retry(&mut self, now: Instant) -> bool {
        if self.health.is_err() {
            return false;
        }
        if !self.has_refused {
            self.retry = (now, FIRST_RETRY);
            return false;
        }
        let (at, wait) = self.retry;
        if now < at {
            return false;
        }
        self.has_refused = false;
        self.retry = (now + wait, (wait * 2).min(LONGEST_RETRY));
        true
    }

    /// Returns the seed to seal with.
    pub(super) fn write_seed(&self) -> Result<Arc<WriteSeed>, String> {
        let unhealthy = || match &self.health {
            Ok(()) => "it has no seed".to_owned(),
            Err(why) => why.to_string(),
        };
        let Some(seed) = &self.seed else {
            return Err(unhealthy());
        };
        match Instant::now() > self.expires {
            false => Ok(seed.clone()),
            true => Err(format!(
                "encryptedDEKSource with keyID hash {:?} expired: {}",
                hash(&seed.encrypted.key_id),
                unhealthy()
            )),
        }
    }

    /// Returns the id of the key that has encrypted the seed.
    pub(super) fn key_id(&self) -> Option<&str> {
        Some(&self.seed.as_ref()?.encrypted.key_id)
    }

    /// Checks an answer about the status.
    pub(super) fn check(&mut self, answer: &StatusResponse) -> Result<(), String> {
        if answer.healthz != "ok" {
            return Err(format!("got unexpected healthz status: {}", answer.healthz));
        }
        let version = answer.version.as_str();
        if !["v2", "v2beta1"].contains(&version) {
            return Err(format!("expected KMSv2 API version v2, got {version}"));
        }
        let first = self.version.get_or_insert_with(|| version.to_owned());
        if first != version {
            return Err(format!(
                "KMSv2 API version should not change after the initial status response version {first}, got {version}"
            ));
        }
        validate_key_id(&answer.key_id).map_err(|error| {
            let hash = hash(&answer.key_id);
            format!("got invalid KMSv2 KeyID hash {hash:?}: {error}")
        })
    }
}

/// Returns the object that a seal begins with, with its data.
pub(super) fn sealed(encrypted: &EncryptedObject, data: Vec<u8>) -> EncryptedObject {
    EncryptedObject {
        encrypted_data: Bytes::from(data),
        ..encrypted.clone()
    }
}

/// Returns the hash that stands for the id of a key in messages, as upstream.
pub(super) fn hash(id: &str) -> String {
    if id.is_empty() {
        return String::new();
    }
    let digest = digest(&SHA256, id.as_bytes());
    let digits = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
    format!("sha256:{}", digits.collect::<String>())
}
