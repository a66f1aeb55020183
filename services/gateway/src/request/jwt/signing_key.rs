//! The keys that sign tokens of this cluster, with the one algorithm ES256.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    UnparsedPublicKey,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Error, Header, Token};

const ALGORITHM: &str = "ES256";

/// The key pair that signs and verifies tokens.
pub(crate) struct SigningKey {
    pair: EcdsaKeyPair,
    id: String,
    random: SystemRandom,
}

impl SigningKey {
    /// Returns a new private key in PKCS #8.
    pub(crate) fn generate() -> Result<Vec<u8>, Error> {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
        let key = key.map_err(|error| Error(error.to_string()))?;
        Ok(key.as_ref().to_vec())
    }

    /// Reads a private key in PKCS #8.
    pub(crate) fn read(pkcs8: &[u8]) -> Result<Self, Error> {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8, &random);
        let pair = pair.map_err(|error| Error(error.to_string()))?;
        let id = BASE64.encode(digest(&SHA256, pair.public_key().as_ref()));
        Ok(Self { pair, id, random })
    }

    /// Returns a signed token with these claims.
    pub(crate) fn sign(&self, claims: &impl Serialize) -> Result<String, Error> {
        let header = Header {
            alg: ALGORITHM.into(),
            kid: self.id.clone(),
            crit: None,
        };
        let signed = format!("{}.{}", part(&header)?, part(claims)?);
        let signature = self.pair.sign(&self.random, signed.as_bytes());
        let signature = signature.map_err(|error| Error(error.to_string()))?;
        Ok(format!("{signed}.{}", BASE64.encode(signature)))
    }

    /// Returns the claims of a token; `None` if this key has not signed it.
    pub(crate) fn verify<T: DeserializeOwned>(&self, token: &str) -> Option<T> {
        let token = Token::parse(token)?;
        if token.header.alg != ALGORITHM || token.header.kid != self.id {
            return None;
        }
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key());
        key.verify(token.signed.as_bytes(), &token.signature).ok()?;
        token.claims()
    }

    /// Returns the public key as a JSON Web Key (RFC 7517).
    pub(crate) fn web_key(&self) -> Value {
        // The point is uncompressed: 4, x, y.
        let point = self.pair.public_key().as_ref();
        let (x, y) = point[1..].split_at(point.len() / 2);
        json!({
            "use": "sig",
            "kty": "EC",
            "kid": self.id,
            "crv": "P-256",
            "alg": ALGORITHM,
            "x": BASE64.encode(x),
            "y": BASE64.encode(y),
        })
    }
}

/// Returns whether a text has the form of a token that keys of this module sign.
pub(crate) fn is_token(text: &str) -> bool {
    Token::parse(text).is_some_and(|token| token.header.alg == ALGORITHM)
}

fn part(value: &impl Serialize) -> Result<String, Error> {
    let json = serde_json::to_vec(value).map_err(|error| Error(error.to_string()))?;
    Ok(BASE64.encode(json))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> SigningKey {
        SigningKey::read(&SigningKey::generate().unwrap()).unwrap()
    }

    #[test]
    fn only_tokens_of_the_same_key_and_algorithm_are_read() {
        let (ours, other) = (key(), key());
        let token = ours.sign(&json!({ "sub": "a" })).unwrap();
        assert_eq!(ours.verify(&token), Some(json!({ "sub": "a" })));
        assert_eq!(other.verify::<Value>(&token), None);
        assert!(is_token(&token));
        assert!(!is_token("abcdef.0123456789abcdef"));
        let (header, rest) = token.split_once('.').unwrap();
        let (claims, signature) = rest.split_once('.').unwrap();
        let changed = part(&json!({ "sub": "b" })).unwrap();
        let unsigned = part(&json!({ "alg": "none", "kid": ours.id })).unwrap();
        for forged in [
            format!("{header}.{changed}.{signature}"),
            format!("{unsigned}.{claims}."),
            format!("{unsigned}.{claims}.{signature}"),
            format!("{header}.{claims}"),
            "a.b.c".into(),
            String::new(),
        ] {
            assert_eq!(ours.verify::<Value>(&forged), None, "{forged}");
        }
    }

    #[test]
    fn a_web_key_has_both_coordinates() {
        let key = key().web_key();
        for name in ["x", "y"] {
            let coordinate = key[name].as_str().unwrap();
            assert_eq!(BASE64.decode(coordinate).unwrap().len(), 32);
        }
    }
}
