//! The transformation of the values of a resource, by its providers in order (upstream: `prefixTransformers`).

use std::sync::{Arc, Weak};

use bytes::Bytes;

use crate::cbc::Cbc;
use crate::configuration::{Key, KmsProvider, Provider};
use crate::gcm::Gcm;
use crate::secretbox::Secretbox;
use crate::{Error, kms};

/// The beginning of every value that is encrypted.
pub const ENCRYPTED: &[u8] = b"k8s:enc:";

/// A value that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The value in plain text.
    pub value: Bytes,
    /// Whether it is stored in another way than it would be now.
    pub stale: bool,
}

/// The providers of a resource.
#[derive(Default)]
pub(crate) struct Transformer {
    providers: Vec<Arc<Sealer>>,
}

/// A provider, ready to seal.
pub(crate) enum Sealer {
    Identity,
    Kms(Arc<kms::Provider>),
    Keys {
        /// The beginning of the values that it has sealed.
        prefix: &'static str,
        /// The name in errors.
        name: &'static str,
        keys: Vec<NamedKey>,
    },
}

/// A key, and what follows the prefix of the provider: its name and a colon.
pub(crate) struct NamedKey {
    prefix: String,
    cipher: Cipher,
}

pub(crate) enum Cipher {
    Gcm(Gcm),
    Cbc(Cbc),
    Secretbox(Secretbox),
}

impl Transformer {
    /// Adds a provider behind the others.
    pub(crate) fn push(&mut self, provider: Arc<Sealer>) {
        self.providers.push(provider);
    }

    /// Returns what to store for a value. `context` is its key in the store.
    pub(crate) fn seal(&self, value: &Bytes, context: &str) -> Result<Bytes, Error> {
        match self.providers.first().map(Arc::as_ref) {
            None | Some(Sealer::Identity) => Ok(value.clone()),
            Some(Sealer::Kms(provider)) => provider.seal(value, context),
            Some(Sealer::Keys { prefix, keys, .. }) => {
                let key = keys.first().ok_or(Error::NoProvider)?;
                let mut out =
                    Vec::with_capacity(prefix.len() + key.prefix.len() + value.len() + 64);
                out.extend_from_slice(prefix.as_bytes());
                out.extend_from_slice(key.prefix.as_bytes());
                key.cipher.seal(value, context.as_bytes(), &mut out);
                Ok(out.into())
            }
        }
    }

    /// Returns the beginning of the values that the first provider seals.
    pub(crate) fn prefix(&self) -> &str {
        self.providers.first().map_or("", |first| first.prefix())
    }

    /// Returns the value of what was stored at a key, and the prefix of the provider that has sealed it.
    pub(crate) async fn open(
        &self,
        stored: &Bytes,
        context: &str,
    ) -> Result<(Opened, &str), Error> {
        let mut errors = Vec::new();
        for (place, provider) in self.providers.iter().enumerate() {
            match provider.open(stored, context).await {
                None => {}
                Some(Ok(opened)) => {
                    let stale = opened.stale || place > 0;
                    return Ok((Opened { stale, ..opened }, provider.prefix()));
                }
                // Several providers may have the same prefix while a key is replaced.
                Some(Err(error)) => errors.push(error),
            }
        }
        Err(Error::of_all(errors, Error::NoProvider))
    }
}

impl Sealer {
    /// Returns a provider of a configuration. One of KMS tells of its changes.
    pub(crate) fn new(provider: &Provider, reports: &Weak<dyn kms::Reports>) -> Self {
        let keys = |prefix, name, keys: &[Key], cipher: fn(&[u8]) -> Option<Cipher>| Self::Keys {
            prefix,
            name,
            keys: NamedKey::all(keys, cipher),
        };
        match provider {
            Provider::Identity => Self::Identity,
            Provider::AesGcm(list) => keys("k8s:enc:aesgcm:v1:", "AES", list, |key| {
                Gcm::new(key).map(Cipher::Gcm)
            }),
            Provider::AesCbc(list) => keys("k8s:enc:aescbc:v1:", "AES", list, |key| {
                Cbc::new(key).map(Cipher::Cbc)
            }),
            Provider::Secretbox(list) => keys("k8s:enc:secretbox:v1:", "Secretbox", list, |key| {
                Secretbox::new(key).map(Cipher::Secretbox)
            }),
            Provider::Kms(KmsProvider {
                name,
                socket,
                timeout,
            }) => {
                let reports = reports.clone();
                let provider = kms::Provider::new(name, socket.clone(), *timeout, reports);
                Self::Kms(Arc::new(provider))
            }
        }
    }

    /// Returns the provider, if it is one of KMS.
    pub(crate) fn kms(&self) -> Option<Arc<kms::Provider>> {
        match self {
            Self::Kms(provider) => Some(provider.clone()),
            Self::Identity | Self::Keys { .. } => None,
        }
    }

    fn prefix(&self) -> &str {
        match self {
            Self::Identity => "",
            Self::Keys { prefix, .. } => prefix,
            Self::Kms(provider) => &provider.prefix,
        }
    }

    /// Returns the value, if this provider has sealed it.
    async fn open(&self, stored: &Bytes, context: &str) -> Option<Result<Opened, Error>> {
        match self {
            Self::Identity => {
                let is_plain = !stored.starts_with(ENCRYPTED);
                is_plain.then(|| {
                    Ok(Opened {
                        value: stored.clone(),
                        stale: false,
                    })
                })
            }
            Self::Kms(provider) => {
                let is_own = stored.starts_with(provider.prefix.as_bytes());
                let sealed = is_own.then(|| stored.slice(provider.prefix.len()..))?;
                Some(provider.open(sealed, context).await)
            }
            Self::Keys { prefix, name, keys } => {
                let sealed = stored.strip_prefix(prefix.as_bytes())?;
                Some(open_with(keys, sealed, context, name))
            }
        }
    }
}

/// Opens a value by the key whose name it begins with.
fn open_with(
    keys: &[NamedKey],
    sealed: &[u8],
    context: &str,
    name: &'static str,
) -> Result<Opened, Error> {
    let mut errors = Vec::new();
    for (place, key) in keys.iter().enumerate() {
        let Some(sealed) = sealed.strip_prefix(key.prefix.as_bytes()) else {
            continue;
        };
        match key.cipher.open(sealed, context.as_bytes()) {
            Ok(value) => {
                return Ok(Opened {
                    value: value.into(),
                    stale: place > 0,
                });
            }
            Err(error) => errors.push(error),
        }
    }
    Err(Error::of_all(errors, Error::NoKey(name)))
}

impl NamedKey {
    /// Returns the keys of a configuration, whose lengths were validated.
    fn all(keys: &[Key], cipher: fn(&[u8]) -> Option<Cipher>) -> Vec<Self> {
        let named = keys.iter().filter_map(|key| {
            Some(Self {
                prefix: format!("{}:", key.name),
                cipher: cipher(&key.secret)?,
            })
        });
        named.collect()
    }
}

impl Cipher {
    fn seal(&self, value: &[u8], context: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Gcm(gcm) => gcm.seal(value, context, out),
            Self::Cbc(cbc) => cbc.seal(value, out),
            Self::Secretbox(secretbox) => secretbox.seal(value, out),
        }
    }

    fn open(&self, sealed: &[u8], context: &[u8]) -> Result<Vec<u8>, Error> {
        match self {
            Self::Gcm(gcm) => gcm.open(sealed, context),
            Self::Cbc(cbc) => cbc.open(sealed),
            Self::Secretbox(secretbox) => secretbox.open(sealed),
        }
    }
}
