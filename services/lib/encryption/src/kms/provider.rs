//! A provider: seals with its seed, opens what any of its seeds has sealed, and is asked for its status.

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use prost::Message as _;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::client::{CallError, Client};
use super::envelope;
use super::seeds::{Seeds, Source};
use super::state::{SEED_TTL, State, WriteSeed, hash, sealed};
use super::v2::{EncryptedDekSourceType, EncryptedObject, StatusResponse};
use crate::transformer::Opened;
use crate::{Error, metrics};

/// The time between two questions for the status of a provider that works, and of one that does not, as upstream.
const POSITIVE_INTERVAL: Duration = Duration::from_secs(60);
const NEGATIVE_INTERVAL: Duration = Duration::from_secs(10);

/// The listener to the changes of a provider.
pub(crate) trait Reports: Send + Sync {
    /// The health of any provider may have changed.
    fn health_changed(&self);
    /// Values may be readable that were not.
    fn may_be_readable(&self);
}

/// A provider, which is asked for its status until it is dropped.
pub(crate) struct Provider {
    name: String,
    /// The beginning of the values that it has sealed.
    pub(crate) prefix: String,
    client: Client,
    seeds: Seeds,
    state: Mutex<State>,
    /// Wakes the task that asks for the status.
    doubt: Arc<Notify>,
    reports: Weak<dyn Reports>,
}

impl Provider {
    /// Returns a provider behind a socket. It is asked when [`Self::start`] is called.
    pub(crate) fn new(
        name: &str,
        socket: PathBuf,
        timeout: Duration,
        reports: Weak<dyn Reports>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            prefix: format!("k8s:enc:kms:v2:{name}:"),
            client: Client::new(socket, timeout),
            seeds: Seeds::default(),
            state: Mutex::new(State::new()),
            doubt: Arc::default(),
            reports,
        }
    }

    /// Asks for the status once, and then at intervals.
    pub(crate) async fn start(self: &Arc<Self>) {
        self.ask().await;
        tokio::spawn(poll(Arc::downgrade(self), self.doubt.clone()));
    }

    /// Returns whether the provider works.
    fn health(&self) -> Result<(), Arc<str>> {
        self.state.lock().health.clone()
    }

    /// Returns why the provider does not work, in upstream's words; `None` if it does.
    pub(crate) fn problem(&self) -> Option<String> {
        let why = self.health().err()?;
        Some(self.unhealthy(&why).to_string())
    }

    /// Returns what to store for a value.
    pub(crate) fn seal(&self, value: &Bytes, context: &str) -> Result<Bytes, Error> {
        let seed = self.state.lock().write_seed();
        let seed = seed.map_err(|why| self.unhealthy(&why))?;
        let data = Source::seal(&seed.seed, value, context.as_bytes());
        let object = sealed(&seed.encrypted, data);
        let mut out = Vec::with_capacity(self.prefix.len() + object.encoded_len());
        out.extend_from_slice(self.prefix.as_bytes());
        object.encode_raw(&mut out);
        Ok(out.into())
    }

    /// Returns the value of what follows the prefix.
    pub(crate) async fn open(&self, stored: Bytes, context: &str) -> Result<Opened, Error> {
        let object = envelope::decode(stored).map_err(|why| Error::Kms(why.into()))?;
        let source = match self.seeds.get(&object) {
            Some(source) => source,
            None => self.decrypt(&object).await?,
        };
        let value = source.open(&object.encrypted_data, context.as_bytes())?;
        let state = self.state.lock();
        let is_seed = EncryptedDekSourceType::HkdfSha256XnonceAesGcmSeed as i32
            == object.encrypted_dek_source_type;
        Ok(Opened {
            value: value.into(),
            stale: !is_seed || state.key_id().is_some_and(|id| id != object.key_id),
        })
    }

    /// Asks for the source of the key of an object; not a provider that does not answer.
    async fn decrypt(&self, object: &EncryptedObject) -> Result<Arc<Source>, Error> {
        metrics::cache_missed();
        let unhealthy = self.state.lock().health.clone().err();
        let answer = match unhealthy {
            Some(why) => Err(why.to_string()),
            None => match self.client.decrypt(object).await {
                Ok(plain) => Ok(plain),
                Err(error) => Err(self.doubted(error)),
            },
        };
        let plain = answer.map_err(|why| {
            self.state.lock().has_refused = true;
            Error::Kms(format!("failed to decrypt DEK, error: {why}").into())
        })?;
        let kind = object.encrypted_dek_source_type();
        Ok(self.seeds.put(object, Source::new(kind, &plain)?))
    }

    /// Notes that a call failed. After one without an answer, calls fail at once until the next good status.
    fn doubted(&self, error: CallError) -> String {
        if error.is_unavailable {
            self.set_health(Err(error.why.as_str().into()));
            self.doubt.notify_one();
        }
        error.why
    }

    fn set_health(&self, health: Result<(), Arc<str>>) {
        let changed = {
            let mut state = self.state.lock();
            let changed = state.health != health;
            state.health = health;
            changed
        };
        if let Some(reports) = self.reports.upgrade().filter(|_| changed) {
            reports.health_changed();
        }
    }

    /// Lets values be read again that could not be opened, if the provider works.
    fn retry(&self) {
        let may = self.state.lock().may_retry(Instant::now());
        if let Some(reports) = self.reports.upgrade().filter(|_| may) {
            reports.may_be_readable();
        }
    }

    /// Asks for the status, and for another seed if the provider has another key.
    async fn ask(&self) {
        // From before the question, so that it is an upper bound.
        let asked = Instant::now();
        let answer = match self.client.status().await {
            Ok(answer) => self.take(&answer, asked).await,
            Err(error) => Err(error.why),
        };
        if let Err(why) = &answer {
            tracing::warn!(
                provider = self.name,
                why,
                "a provider of keys does not work"
            );
        }
        self.set_health(answer.map_err(Into::into));
        self.retry();
    }

    async fn take(&self, answer: &StatusResponse, asked: Instant) -> Result<(), String> {
        let is_same = {
            let mut state = self.state.lock();
            state.check(answer)?;
            let is_same = state.key_id() == Some(&answer.key_id);
            if is_same {
                state.expires = asked + SEED_TTL;
            }
            is_same
        };
        if is_same {
            return Ok(());
        }
        let seed = self.new_seed(&answer.key_id).await;
        let seed = seed.map_err(|why| format!("failed to rotate DEK: {why}"))?;
        tracing::info!(
            provider = self.name,
            key = hash(&answer.key_id),
            "another key encrypts"
        );
        let mut state = self.state.lock();
        state.seed = Some(Arc::new(seed));
        state.expires = asked + SEED_TTL;
        // What it could not decrypt before it may with that key.
        state.retry.0 = asked;
        Ok(())
    }

    /// Makes a seed, and lets the provider encrypt it by the key that its status names.
    async fn new_seed(&self, key_id: &str) -> Result<WriteSeed, String> {
        let seed: [u8; super::seeds::SIZE] = rand::random();
        let answer = self.client.encrypt(seed.to_vec()).await;
        let answer =
            answer.map_err(|error| format!("failed to encrypt DEK, error: {}", error.why))?;
        let kind = EncryptedDekSourceType::HkdfSha256XnonceAesGcmSeed;
        let encrypted = EncryptedObject {
            encrypted_data: Bytes::new(),
            key_id: answer.key_id,
            encrypted_dek_source: answer.ciphertext,
            annotations: answer.annotations,
            encrypted_dek_source_type: kind.into(),
        };
        envelope::validate(&encrypted)?;
        if encrypted.key_id != key_id {
            return Err(format!(
                "statusKeyIDHash={:?}, encryptKeyIDHash={:?}",
                hash(key_id),
                hash(&encrypted.key_id)
            ));
        }
        self.seeds.put(&encrypted, Source::Seed(seed));
        Ok(WriteSeed { seed, encrypted })
    }

    fn unhealthy(&self, why: &str) -> Error {
        let name = &self.name;
        Error::Kms(format!("kmsv2 Provider {name} is not healthy, error: {why}").into())
    }
}

/// Asks a provider for its status at intervals, and at once after a call failed, until it is dropped.
async fn poll(provider: Weak<Provider>, doubt: Arc<Notify>) {
    while let Some(health) = provider.upgrade().map(|provider| provider.health()) {
        let interval = match health {
            Ok(()) => POSITIVE_INTERVAL,
            Err(_) => NEGATIVE_INTERVAL,
        };
        let _ = timeout(interval, doubt.notified()).await;
        if let Some(provider) = provider.upgrade() {
            provider.ask().await;
        }
    }
}
