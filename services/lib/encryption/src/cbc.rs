//! AES-CBC with PKCS #7 padding: `initialization vector (16 bytes) ‖ ciphertext`. Nothing is authenticated.

use aes::cipher::block_padding::Pkcs7;
use aes::cipher::{BlockModeDecrypt as _, BlockModeEncrypt as _, KeyIvInit as _};
use aes::{Aes128, Aes192, Aes256};
use cbc::{Decryptor, Encryptor};

use crate::Error;

const BLOCK: usize = 16;

/// AES-CBC with a key of 16, 24 or 32 bytes.
pub(crate) enum Cbc {
    Aes128([u8; 16]),
    Aes192([u8; 24]),
    Aes256([u8; 32]),
}

impl Cbc {
    /// Returns the cipher of a key; `None` if its length is none of AES.
    pub(crate) fn new(key: &[u8]) -> Option<Self> {
        Some(match key.len() {
            16 => Self::Aes128(key.try_into().ok()?),
            24 => Self::Aes192(key.try_into().ok()?),
            32 => Self::Aes256(key.try_into().ok()?),
            _ => return None,
        })
    }

    /// Appends the encrypted value to `out`.
    pub(crate) fn seal(&self, value: &[u8], out: &mut Vec<u8>) {
        let iv: [u8; BLOCK] = rand::random();
        let iv = &iv.into();
        let sealed = match self {
            Self::Aes128(key) => {
                Encryptor::<Aes128>::new(&(*key).into(), iv).encrypt_padded_vec::<Pkcs7>(value)
            }
            Self::Aes192(key) => {
                Encryptor::<Aes192>::new(&(*key).into(), iv).encrypt_padded_vec::<Pkcs7>(value)
            }
            Self::Aes256(key) => {
                Encryptor::<Aes256>::new(&(*key).into(), iv).encrypt_padded_vec::<Pkcs7>(value)
            }
        };
        out.extend_from_slice(iv);
        out.extend(sealed);
    }

    /// Returns the value.
    pub(crate) fn open(&self, sealed: &[u8]) -> Result<Vec<u8>, Error> {
        let (iv, sealed) = sealed.split_first_chunk::<BLOCK>().ok_or(Error::TooShort)?;
        if sealed.len() % BLOCK != 0 {
            return Err(Error::BlockSize);
        }
        let iv = &(*iv).into();
        let opened = match self {
            Self::Aes128(key) => {
                Decryptor::<Aes128>::new(&(*key).into(), iv).decrypt_padded_vec::<Pkcs7>(sealed)
            }
            Self::Aes192(key) => {
                Decryptor::<Aes192>::new(&(*key).into(), iv).decrypt_padded_vec::<Pkcs7>(sealed)
            }
            Self::Aes256(key) => {
                Decryptor::<Aes256>::new(&(*key).into(), iv).decrypt_padded_vec::<Pkcs7>(sealed)
            }
        };
        opened.map_err(|_| Error::Padding)
    }
}
