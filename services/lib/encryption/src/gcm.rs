//! AES-GCM with a random nonce: `nonce (12 bytes) ‖ ciphertext ‖ tag (16 bytes)`.
//!
//! The key of the value in the store is authenticated with it, so that a value that was copied to another key is
//! refused. A key must not seal more than 2³² values: the nonce of two of them would be likely to be the same.

use aes_gcm::aead::consts::U12;
use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::aes::Aes192;
use aes_gcm::{Aes128Gcm, Aes256Gcm, AesGcm};

use crate::Error;

const NONCE: usize = 12;

/// AES-GCM with a key of 16, 24 or 32 bytes.
pub(crate) enum Gcm {
    Aes128(Box<Aes128Gcm>),
    Aes192(Box<AesGcm<Aes192, U12>>),
    Aes256(Box<Aes256Gcm>),
}

impl Gcm {
    /// Returns the cipher of a key; `None` if its length is none of AES.
    pub(crate) fn new(key: &[u8]) -> Option<Self> {
        Some(match key.len() {
            16 => Self::Aes128(Box::new(KeyInit::new_from_slice(key).ok()?)),
            24 => Self::Aes192(Box::new(KeyInit::new_from_slice(key).ok()?)),
            32 => Self::Aes256(Box::new(KeyInit::new_from_slice(key).ok()?)),
            _ => return None,
        })
    }

    /// Appends the encrypted value to `out`.
    pub(crate) fn seal(&self, value: &[u8], context: &[u8], out: &mut Vec<u8>) {
        let nonce: [u8; NONCE] = rand::random();
        let payload = Payload {
            msg: value,
            aad: context,
        };
        let sealed = match self {
            Self::Aes128(cipher) => cipher.encrypt(&nonce.into(), payload),
            Self::Aes192(cipher) => cipher.encrypt(&nonce.into(), payload),
            Self::Aes256(cipher) => cipher.encrypt(&nonce.into(), payload),
        };
        out.extend_from_slice(&nonce);
        out.extend(sealed.expect("a value is shorter than 64 GiB"));
    }

    /// Returns the value.
    pub(crate) fn open(&self, sealed: &[u8], context: &[u8]) -> Result<Vec<u8>, Error> {
        let (nonce, msg) = sealed.split_first_chunk::<NONCE>().ok_or(Error::TooShort)?;
        let payload = Payload { msg, aad: context };
        let nonce = &(*nonce).into();
        let opened = match self {
            Self::Aes128(cipher) => cipher.decrypt(nonce, payload),
            Self::Aes192(cipher) => cipher.decrypt(nonce, payload),
            Self::Aes256(cipher) => cipher.decrypt(nonce, payload),
        };
        opened.map_err(|_| Error::Authentication)
    }
}
