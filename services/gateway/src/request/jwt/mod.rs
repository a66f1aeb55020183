//! Signed tokens (RFC 7519): those of this cluster ([`SigningKey`]), and those of other issuers ([`WebKey`]).
//!
//! No header of a token chooses how it is verified, which is where libraries of JWT have failed: a key of this cluster
//! has one algorithm, and one of an issuer those of its type.
//!
//! 2026-11: we chose two hundred lines on `ring` over the crate `jsonwebtoken`, because that brings a second
//! implementation of signatures (`aws-lc-rs`, or RSA that is not in constant time), and what is left beside signatures
//! is splitting at dots. Wrong if tokens are to be encrypted, or keys of P-521 (ES512) are in use, which `ring` lacks.

mod signing_key;
mod web_key;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

pub(crate) use signing_key::{SigningKey, is_token};
pub(crate) use web_key::WebKey;

/// A key that cannot be used, or a signature that could not be made.
#[derive(Debug, thiserror::Error)]
#[error("the key that signs tokens is unusable: {0}")]
pub(crate) struct Error(String);

#[derive(Serialize, Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: String,
    /// Extensions that must be understood; none is.
    #[serde(default, skip_serializing)]
    crit: Option<IgnoredAny>,
}

/// The parts of a token, whose signature was not verified.
pub(crate) struct Token<'t> {
    header: Header,
    /// The text that is signed.
    signed: &'t str,
    claims: &'t str,
    signature: Vec<u8>,
}

impl<'t> Token<'t> {
    /// Splits a token; `None` if the text has another form.
    pub(crate) fn parse(text: &'t str) -> Option<Self> {
        let (signed, signature) = text.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let header: Header = parsed(header)?;
        if header.crit.is_some() {
            return None;
        }
        Some(Self {
            header,
            signed,
            claims,
            signature: BASE64.decode(signature).ok()?,
        })
    }

    /// Returns the claims, which are to be believed if the signature was verified only.
    pub(crate) fn claims<T: DeserializeOwned>(&self) -> Option<T> {
        parsed(self.claims)
    }
}

fn parsed<T: DeserializeOwned>(part: &str) -> Option<T> {
    serde_json::from_slice(&BASE64.decode(part).ok()?).ok()
}
