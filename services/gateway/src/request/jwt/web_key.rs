//! The public keys of other issuers, from their JSON Web Key Sets (RFC 7517).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, EcdsaVerificationAlgorithm,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::Value;

use super::Token;

/// The algorithms of RSA keys.
const RSA: [(&str, &RsaParameters); 6] = [
    ("RS256", &RSA_PKCS1_2048_8192_SHA256),
    ("RS384", &RSA_PKCS1_2048_8192_SHA384),
    ("RS512", &RSA_PKCS1_2048_8192_SHA512),
    ("PS256", &RSA_PSS_2048_8192_SHA256),
    ("PS384", &RSA_PSS_2048_8192_SHA384),
    ("PS512", &RSA_PSS_2048_8192_SHA512),
];
/// The curves of EC keys, each with its algorithm and the bytes of a coordinate.
const CURVES: [(&str, &str, &EcdsaVerificationAlgorithm, usize); 2] = [
    ("P-256", "ES256", &ECDSA_P256_SHA256_FIXED, 32),
    ("P-384", "ES384", &ECDSA_P384_SHA384_FIXED, 48),
];

/// A public key.
#[derive(Clone, Debug)]
pub(crate) struct WebKey {
    /// Empty if the set does not name it.
    id: String,
    /// The only algorithm that it is for; empty for all of its type.
    algorithm: String,
    public: PublicKey,
}

#[derive(Clone, Debug)]
enum PublicKey {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    Ec(usize, Vec<u8>),
}

/// The fields of a key.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Fields {
    kty: String,
    kid: String,
    alg: String,
    r#use: String,
    crv: String,
    n: String,
    e: String,
    x: String,
    y: String,
}

impl WebKey {
    /// Reads the keys of a set that verify tokens; others are left out.
    ///
    /// # Errors
    /// If it is no set of keys.
    pub(crate) fn read_set(json: &[u8]) -> Result<Vec<Self>, String> {
        let set: Value = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let keys = set["keys"].as_array().ok_or("it is no set of keys")?;
        Ok(keys.iter().filter_map(Self::read).collect())
    }

    fn read(key: &Value) -> Option<Self> {
        let fields = Fields::deserialize(key).ok()?;
        if !["", "sig"].contains(&fields.r#use.as_str()) {
            return None;
        }
        let public = match fields.kty.as_str() {
            "RSA" => PublicKey::Rsa {
                modulus: number(&fields.n)?,
                exponent: number(&fields.e)?,
            },
            "EC" => {
                let curve = CURVES.iter().position(|(name, ..)| *name == fields.crv)?;
                PublicKey::Ec(curve, point(&fields, CURVES[curve].3)?)
            }
            _ => return None,
        };
        Some(Self {
            id: fields.kid,
            algorithm: fields.alg,
            public,
        })
    }

    /// Returns whether this key has signed a token.
    pub(crate) fn verifies(&self, token: &Token<'_>) -> bool {
        let (id, algorithm) = (&token.header.kid, &token.header.alg);
        let is_meant = id.is_empty() || self.id.is_empty() || *id == self.id;
        let is_allowed = self.algorithm.is_empty() || *algorithm == self.algorithm;
        is_meant && is_allowed && self.has_signed(token)
    }

    fn has_signed(&self, token: &Token<'_>) -> bool {
        let (signed, algorithm) = (token.signed.as_bytes(), token.header.alg.as_str());
        let verified = match &self.public {
            PublicKey::Rsa { modulus, exponent } => {
                let found = RSA.iter().find(|(name, _)| *name == algorithm);
                found.map(|(_, parameters)| {
                    let key = RsaPublicKeyComponents {
                        n: modulus,
                        e: exponent,
                    };
                    key.verify(parameters, signed, &token.signature)
                })
            }
            PublicKey::Ec(curve, point) => {
                let (_, name, parameters, _) = CURVES[*curve];
                let verify =
                    || UnparsedPublicKey::new(parameters, point).verify(signed, &token.signature);
                (name == algorithm).then(verify)
            }
        };
        verified.is_some_and(|verified| verified.is_ok())
    }
}

/// Returns a number without zeros at its start.
fn number(text: &str) -> Option<Vec<u8>> {
    let bytes = BASE64.decode(text).ok()?;
    let first = bytes.iter().position(|byte| *byte != 0)?;
    Some(bytes[first..].to_vec())
}

/// Returns a point in the uncompressed form: 4, x, y.
fn point(fields: &Fields, size: usize) -> Option<Vec<u8>> {
    let mut point = vec![4];
    for coordinate in [&fields.x, &fields.y] {
        let bytes = BASE64.decode(coordinate).ok()?;
        if bytes.len() != size {
            return None;
        }
        point.extend(bytes);
    }
    Some(point)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::SigningKey;
    use super::*;

    /// A key of 2048 bits, and the signatures of `HEADER.e30` with it by `openssl`.
    const RSA_KEYS: &str = include_str!("testdata/rsa.json");

    fn set(key: &Value) -> Vec<WebKey> {
        WebKey::read_set(json!({ "keys": [key] }).to_string().as_bytes()).unwrap()
    }

    #[test]
    fn a_key_verifies_what_it_has_signed() {
        let [ours, other] = [(); 2].map(|()| {
            let key = SigningKey::generate().unwrap();
            SigningKey::read(&key).unwrap()
        });
        let token = ours.sign(&json!({ "sub": "a" })).unwrap();
        let token = Token::parse(&token).unwrap();
        assert!(set(&ours.web_key())[0].verifies(&token));
        assert!(!set(&other.web_key())[0].verifies(&token));
        // An id says which key is meant; one that is missing does not matter.
        let (mut without, mut renamed) = (ours.web_key(), ours.web_key());
        without["kid"] = "".into();
        renamed["kid"] = "b".into();
        assert!(set(&without)[0].verifies(&token));
        assert!(!set(&renamed)[0].verifies(&token));
        let mut limited = ours.web_key();
        limited["alg"] = "ES384".into();
        assert!(!set(&limited)[0].verifies(&token));
    }

    #[test]
    fn keys_that_verify_nothing_are_left_out() {
        let key = SigningKey::generate().unwrap();
        let key = SigningKey::read(&key).unwrap().web_key();
        for (field, value) in [
            ("use", "enc"),
            ("kty", "oct"),
            ("crv", "P-521"),
            ("x", "AA"),
            ("y", "?"),
        ] {
            let mut other = key.clone();
            other[field] = value.into();
            assert!(set(&other).is_empty(), "{field}");
        }
        assert!(WebKey::read_set(b"{}").is_err());
        assert!(WebKey::read_set(b"<html>").is_err());
    }

    #[test]
    fn tokens_by_rsa_are_verified_with_the_algorithm_that_they_name() {
        let data: Value = serde_json::from_str(RSA_KEYS).unwrap();
        let key = &set(&data["key"])[0];
        for (name, _) in RSA {
            let token = data["tokens"][name].as_str().unwrap();
            let parsed = Token::parse(token).unwrap();
            assert!(key.verifies(&parsed), "{name}");
            let other = token.replacen("e30.", "e31.", 1);
            assert!(!key.verifies(&Token::parse(&other).unwrap()), "{name}");
        }
        let confused = data["tokens"]["confused"].as_str().unwrap();
        assert!(!key.verifies(&Token::parse(confused).unwrap()));
    }
}
