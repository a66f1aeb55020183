//! The private keys in the forms of PKCS #1, PKCS #8 and SEC 1.

use x509_parser::der_parser::ber::BerObjectContent::{
    self as Content, Integer, OctetString, Sequence,
};
use x509_parser::der_parser::der::{DerObject, parse_der};

/// The object identifiers of types of keys.
const RSA: &str = "1.2.840.113549.1.1.1";
const EC: &str = "1.2.840.10045.2.1";
pub const ED25519: &str = "1.3.101.112";

/// The part of a private key by which it is compared with a public one.
pub enum PrivateKey<'a> {
    /// The modulus.
    Rsa(&'a [u8]),
    /// The number by which the generator is multiplied.
    Ec(&'a [u8]),
    /// The seed.
    Ed25519(&'a [u8]),
}

impl<'a> PrivateKey<'a> {
    /// Reads a key in any of the forms.
    pub fn parse(der: &'a [u8]) -> Option<Self> {
        match &sequence(der)?[..] {
            [Integer(_), Sequence(algorithm), OctetString(key), ..] => {
                Self::of_algorithm(algorithm, key)
            }
            fields => Self::of_fields(fields),
        }
    }

    /// Reads a key in the form of PKCS #1 or SEC 1.
    fn of_fields(fields: &[Content<'a>]) -> Option<Self> {
        match fields {
            [Integer(_), Integer(modulus), ..] => Some(Self::Rsa(modulus)),
            [Integer(_), OctetString(scalar), ..] => Some(Self::Ec(scalar)),
            _ => None,
        }
    }

    fn of_algorithm(algorithm: &[DerObject<'_>], key: &'a [u8]) -> Option<Self> {
        let id = algorithm.first()?.as_oid().ok()?.to_id_string();
        match id.as_str() {
            ED25519 => match parse_der(key).ok()?.1.content {
                OctetString(seed) => Some(Self::Ed25519(seed)),
                _ => None,
            },
            RSA | EC => Self::of_fields(&sequence(key)?),
            _ => None,
        }
    }
}

fn sequence(der: &[u8]) -> Option<Vec<Content<'_>>> {
    match parse_der(der).ok()?.1.content {
        Sequence(fields) => Some(fields.into_iter().map(|field| field.content).collect()),
        _ => None,
    }
}
