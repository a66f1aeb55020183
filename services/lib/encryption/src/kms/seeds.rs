//! The sources of keys that were decrypted: seeds, and keys of older versions of Kubernetes.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use prost::Message as _;
use ring::digest::{SHA256, digest};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk};

use super::v2::{EncryptedDekSourceType, EncryptedObject};
use crate::Error;
use crate::gcm::Gcm;

/// The size of a seed, of the info of a key and of a key, in bytes.
pub(super) const SIZE: usize = 32;
/// The largest number of sources that are kept: each process of each cluster that has written has one for each start,
/// as long as values of it are left. Beyond it the oldest are asked for again.
const MOST: usize = 1000;

/// The source of the keys of values.
pub(super) enum Source {
    Key(Gcm),
    Seed([u8; SIZE]),
}

impl Source {
    /// Reads a source that was decrypted.
    pub(super) fn new(kind: EncryptedDekSourceType, plain: &[u8]) -> Result<Self, Error> {
        let invalid = || {
            let why = format!(
                "invalid seed length {} used for key generation",
                plain.len()
            );
            Error::Kms(why.into())
        };
        match kind {
            EncryptedDekSourceType::AesGcmKey => Gcm::new(plain).map(Self::Key).ok_or_else(invalid),
            EncryptedDekSourceType::HkdfSha256XnonceAesGcmSeed => {
                plain.try_into().map(Self::Seed).map_err(|_| invalid())
            }
        }
    }

    /// Returns an encrypted value; only a seed seals.
    pub(super) fn seal(seed: &[u8; SIZE], value: &[u8], context: &[u8]) -> Vec<u8> {
        let info: [u8; SIZE] = rand::random();
        let mut out = Vec::with_capacity(SIZE + value.len() + 64);
        out.extend_from_slice(&info);
        derive(seed, &info).seal(value, context, &mut out);
        out
    }

    pub(super) fn open(&self, sealed: &[u8], context: &[u8]) -> Result<Vec<u8>, Error> {
        match self {
            Self::Key(key) => key.open(sealed, context),
            Self::Seed(seed) => {
                let (info, sealed) = sealed.split_first_chunk::<SIZE>().ok_or(Error::TooShort)?;
                derive(seed, info).open(sealed, context)
            }
        }
    }
}

/// The length of a key.
struct Length;

impl KeyType for Length {
    fn len(&self) -> usize {
        SIZE
    }
}

/// Returns the key that a seed has for an info.
fn derive(seed: &[u8; SIZE], info: &[u8; SIZE]) -> Gcm {
    let mut key = [0; SIZE];
    let seed = Prk::new_less_safe(HKDF_SHA256, seed);
    let info = [info.as_slice()];
    let expanded = seed.expand(&info, Length);
    let filled = expanded.and_then(|expanded| expanded.fill(&mut key));
    filled.expect("a key is shorter than 255 digests");
    Gcm::new(&key).expect("AES has keys of 32 bytes")
}

/// The sources that are known, by the digest of their encrypted form.
#[derive(Default)]
pub(super) struct Seeds {
    known: Mutex<Known>,
}

type Id = [u8; SIZE];

#[derive(Default)]
struct Known {
    sources: HashMap<Id, Arc<Source>>,
    /// The oldest first.
    order: VecDeque<Id>,
}

impl Seeds {
    /// Returns the source of the key of an object, if it is known.
    pub(super) fn get(&self, object: &EncryptedObject) -> Option<Arc<Source>> {
        self.known.lock().sources.get(&id(object)).cloned()
    }

    /// Keeps the source of the key of an object.
    pub(super) fn put(&self, object: &EncryptedObject, source: Source) -> Arc<Source> {
        let (id, source) = (id(object), Arc::new(source));
        let mut known = self.known.lock();
        if known.sources.insert(id, source.clone()).is_none() {
            known.order.push_back(id);
        }
        if known.order.len() > MOST
            && let Some(oldest) = known.order.pop_front()
        {
            known.sources.remove(&oldest);
        }
        source
    }
}

/// Returns a digest of the encrypted source of an object, with all that it is decrypted by.
fn id(object: &EncryptedObject) -> Id {
    let source = EncryptedObject {
        encrypted_data: Default::default(),
        ..object.clone()
    };
    let mut id = [0; SIZE];
    id.copy_from_slice(digest(&SHA256, &source.encode_to_vec()).as_ref());
    id
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;

    use super::*;

    /// A value as another implementation has sealed it, with the seed 0, 1, 2 … 31.
    const SEALED: &str = "ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoMAAQIDBAUGBwgJCgvHS6bag22lFSbqclY1fbGUniEN+wEPkFRcHRtn46Bbs6k=";

    fn seed() -> [u8; SIZE] {
        std::array::from_fn(|at| u8::try_from(at).unwrap())
    }

    #[test]
    fn a_value_of_another_implementation_can_be_opened() {
        let sealed = BASE64_STANDARD.decode(SEALED).unwrap();
        let at = b"/registry/secrets/default/web";
        let value = Source::Seed(seed()).open(&sealed, at).unwrap();
        assert_eq!(value, b"k8s\0 the password");
        let own = Source::seal(&seed(), &value, at);
        assert_eq!(Source::Seed(seed()).open(&own, at).unwrap(), value);
        assert_eq!(
            Source::Seed(seed()).open(&own, b"/other"),
            Err(Error::Authentication)
        );
    }

    #[test]
    fn the_number_of_sources_is_bounded() {
        let seeds = Seeds::default();
        let object = |n: usize| EncryptedObject {
            encrypted_dek_source: n.to_string().into(),
            ..Default::default()
        };
        (0..=MOST).for_each(|n| drop(seeds.put(&object(n), Source::Seed(seed()))));
        assert!(seeds.get(&object(0)).is_none());
        assert!(seeds.get(&object(1)).is_some() && seeds.get(&object(MOST)).is_some());
        assert_eq!(seeds.known.lock().sources.len(), MOST);
    }
}
