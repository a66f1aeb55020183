//! The key that encrypts the CAs of a cluster on their way to a machine that joins, as kubeadm's certificate key. It is
//! in the command that joins and nowhere else: a reader of Secrets has the token, but not the key.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context as _, anyhow};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};

/// The length in bytes, that of AES-256.
const LENGTH: usize = 32;

/// A key for one content.
#[derive(Clone, PartialEq, Eq)]
pub struct CertificateKey([u8; LENGTH]);

impl CertificateKey {
    /// Returns a new key from the randomness of the system.
    ///
    /// # Errors
    /// If there is none.
    pub fn random() -> anyhow::Result<Self> {
        let mut key = [0; LENGTH];
        fill(&mut key)?;
        Ok(Self(key))
    }

    /// Returns the key in hexadecimal digits.
    pub fn text(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Encrypts a content (AES-256-GCM), which can be decrypted for the same purpose only. The nonce is before it.
    ///
    /// # Errors
    /// If there is no randomness.
    pub fn seal(&self, purpose: &str, content: &[u8]) -> anyhow::Result<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        fill(&mut nonce)?;
        let mut sealed = content.to_owned();
        let (key, aad) = (self.cipher()?, Aad::from(purpose));
        let unique = Nonce::assume_unique_for_key(nonce);
        key.seal_in_place_append_tag(unique, aad, &mut sealed)
            .map_err(|_| anyhow!("the content is too long"))?;
        Ok([nonce.as_slice(), &sealed].concat())
    }

    /// Decrypts what was encrypted by this key for this purpose.
    ///
    /// # Errors
    /// If it was encrypted by another key, for another purpose, or was changed.
    pub fn open(&self, purpose: &str, sealed: &[u8]) -> anyhow::Result<Vec<u8>> {
        let (nonce, sealed) = sealed
            .split_first_chunk::<NONCE_LEN>()
            .context("it is too short")?;
        let mut content = sealed.to_owned();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self
            .cipher()?
            .open_in_place(nonce, Aad::from(purpose), &mut content);
        let opened = opened.map_err(|_| anyhow!("it was encrypted by another key, or changed"))?;
        Ok(opened.to_owned())
    }

    fn cipher(&self) -> anyhow::Result<LessSafeKey> {
        let key = UnboundKey::new(&AES_256_GCM, &self.0);
        key.map(LessSafeKey::new)
            .map_err(|_| anyhow!("AES-256-GCM is not available"))
    }
}

impl FromStr for CertificateKey {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_hex = text.len() == 2 * LENGTH && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut key = [0; LENGTH];
        let mut digits = text.as_bytes().chunks_exact(2).filter(|_| is_hex);
        for byte in &mut key {
            let pair = digits.next().and_then(|pair| str::from_utf8(pair).ok());
            let value = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok());
            // Not the text: it may be a key with one digit too many.
            *byte = value.context("a certificate key is 64 hexadecimal digits")?;
        }
        Ok(Self(key))
    }
}

/// Without the key.
impl fmt::Debug for CertificateKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CertificateKey")
    }
}

fn fill(bytes: &mut [u8]) -> anyhow::Result<()> {
    let filled = SystemRandom::new().fill(bytes);
    filled.map_err(|_| anyhow!("this machine has no randomness"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_is_read_by_its_key_and_for_its_purpose_only() {
        let key = CertificateKey::random().unwrap();
        let sealed = key.seal("a", b"content").unwrap();
        assert_ne!(sealed, key.seal("a", b"content").unwrap(), "nonces differ");
        assert!(!sealed.windows(7).any(|window| window == b"content"));
        assert_eq!(key.open("a", &sealed).unwrap(), b"content");
        assert!(key.open("b", &sealed).is_err());
        let other = CertificateKey::random().unwrap();
        assert!(other.open("a", &sealed).is_err());
        let mut changed = sealed.clone();
        changed[NONCE_LEN] ^= 1;
        assert!(key.open("a", &changed).is_err());
        assert!(key.open("a", &sealed[..NONCE_LEN - 1]).is_err());
    }

    #[test]
    fn a_key_is_64_hexadecimal_digits_and_not_shown_by_accident() {
        let text = "00ff".repeat(16);
        let key: CertificateKey = text.parse().unwrap();
        assert_eq!(key.text(), text);
        assert_eq!(format!("{key:?}"), "CertificateKey");
        let wrong = ["", "00", &"0".repeat(63), &"0".repeat(66), &"+f".repeat(32)];
        for wrong in wrong {
            let error = wrong.parse::<CertificateKey>().unwrap_err().to_string();
            assert!(error.starts_with("a certificate key is 64"), "{error}");
        }
    }
}
