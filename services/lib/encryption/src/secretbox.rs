//! The secretbox of NaCl, which is XSalsa20 and Poly1305: `nonce (24 bytes) ‖ tag (16 bytes) ‖ ciphertext`.
//!
//! The value is authenticated, but not the key at which it is in the store, as upstream.

use poly1305::Poly1305;
use poly1305::universal_hash::KeyInit as _;
use salsa20::XSalsa20;
use salsa20::cipher::{KeyIvInit as _, StreamCipher as _};
use subtle::ConstantTimeEq as _;

use crate::Error;

const KEY: usize = 32;
const NONCE: usize = 24;
const TAG: usize = 16;

/// The secretbox of a key.
pub(crate) struct Secretbox([u8; KEY]);

impl Secretbox {
    /// Returns the secretbox of a key; `None` if it has not 32 bytes.
    pub(crate) fn new(key: &[u8]) -> Option<Self> {
        Some(Self(key.try_into().ok()?))
    }

    /// Appends the encrypted value to `out`.
    pub(crate) fn seal(&self, value: &[u8], out: &mut Vec<u8>) {
        let nonce: [u8; NONCE] = rand::random();
        let (mut stream, tag) = self.stream(&nonce);
        let mut sealed = value.to_vec();
        stream.apply_keystream(&mut sealed);
        out.extend_from_slice(&nonce);
        out.extend_from_slice(&tag.compute_unpadded(&sealed));
        out.extend(sealed);
    }

    /// Returns the value.
    pub(crate) fn open(&self, sealed: &[u8]) -> Result<Vec<u8>, Error> {
        let (nonce, rest) = sealed.split_first_chunk::<NONCE>().ok_or(Error::TooShort)?;
        let (tag, sealed) = rest.split_first_chunk::<TAG>().ok_or(Error::TooShort)?;
        let (mut stream, poly1305) = self.stream(nonce);
        let computed = poly1305.compute_unpadded(sealed);
        if !bool::from(computed.as_slice().ct_eq(tag)) {
            return Err(Error::Authentication);
        }
        let mut value = sealed.to_vec();
        stream.apply_keystream(&mut value);
        Ok(value)
    }

    /// Returns the keystream of a nonce, and the authenticator whose key is its beginning.
    fn stream(&self, nonce: &[u8; NONCE]) -> (XSalsa20, Poly1305) {
        let mut stream = XSalsa20::new(&self.0.into(), &(*nonce).into());
        let mut key = [0; 32];
        stream.apply_keystream(&mut key);
        (stream, Poly1305::new(&key.into()))
    }
}
