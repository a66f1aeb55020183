//! The check that a private key is that of a certificate, with the problems of Go's `tls.X509KeyPair`.

mod private_key;

use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair,
};
use x509_parser::certificate::X509Certificate;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer as _;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

use private_key::{ED25519, PrivateKey};

const CERTIFICATE: &str = "CERTIFICATE";
const KEY: &str = "PRIVATE KEY";
const OTHER_KEY: &str = "tls: private key does not match public key";
const OTHER_TYPE: &str = "tls: private key type does not match public key type";
/// The object identifiers of curves.
const P256: &str = "1.2.840.10045.3.1.7";
const P384: &str = "1.3.132.0.34";

/// Checks the first certificate and the first private key of two texts in PEM.
///
/// # Errors
/// The problem, if there is one. Keys on curves other than P-256, P-384 and Ed25519 are not compared.
pub(super) fn check(certificate: &[u8], key: &[u8]) -> Result<(), String> {
    let certificate = find_certificate(certificate)?;
    let key = find_key(key)?;
    let malformed = "x509: malformed certificate";
    let (_, certificate) = X509Certificate::from_der(&certificate).map_err(|_| malformed)?;
    let key = PrivateKey::parse(&key).ok_or("tls: failed to parse private key")?;
    Ok(compare(certificate.public_key(), &key)?)
}

/// Returns the blocks of a text in PEM, as label and contents.
fn blocks(text: &[u8]) -> impl Iterator<Item = (String, Vec<u8>)> {
    let blocks = Pem::iter_from_buffer(text).map_while(Result::ok);
    blocks.map(|block| (block.label, block.contents))
}

fn find_certificate(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut skipped = Vec::new();
    for (label, contents) in blocks(text) {
        if label == CERTIFICATE {
            return Ok(contents);
        }
        skipped.push(label);
    }
    Err(match &skipped[..] {
        [] => "tls: failed to find any PEM data in certificate input".to_owned(),
        [one] if one.ends_with(KEY) => {
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched".to_owned()
        }
        labels => format!(
            "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following types: [{}]",
            labels.join(" ")
        ),
    })
}

fn find_key(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut skipped = Vec::new();
    for (label, contents) in blocks(text) {
        let prefix = label.strip_suffix(KEY);
        if prefix.is_some_and(|prefix| prefix.is_empty() || prefix.ends_with(' ')) {
            return Ok(contents);
        }
        skipped.push(label);
    }
    Err(match &skipped[..] {
        [] => "tls: failed to find any PEM data in key input".to_owned(),
        [one] if one == CERTIFICATE => {
            "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        labels => format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of the following types: [{}]",
            labels.join(" ")
        ),
    })
}

fn compare(public: &SubjectPublicKeyInfo<'_>, key: &PrivateKey<'_>) -> Result<(), &'static str> {
    let parsed = public.parsed().map_err(|_| "x509: malformed public key")?;
    let fits = match (parsed, key) {
        (PublicKey::RSA(public), PrivateKey::Rsa(modulus)) => {
            without_zeros(public.modulus) == without_zeros(modulus)
        }
        (PublicKey::EC(point), PrivateKey::Ec(scalar)) => match curve(public) {
            Some((algorithm, length)) => fits_point(algorithm, length, scalar, point.data()),
            None => true,
        },
        (PublicKey::RSA(_) | PublicKey::EC(_), _) => return Err(OTHER_TYPE),
        _ if public.algorithm.algorithm.to_id_string() != ED25519 => {
            return Err("tls: unknown public key algorithm");
        }
        (_, PrivateKey::Ed25519(seed)) => {
            Ed25519KeyPair::from_seed_and_public_key(seed, &public.subject_public_key.data).is_ok()
        }
        _ => return Err(OTHER_TYPE),
    };
    if fits { Ok(()) } else { Err(OTHER_KEY) }
}

/// Returns the curve of a key with the length of its private keys.
fn curve(public: &SubjectPublicKeyInfo<'_>) -> Option<(&'static EcdsaSigningAlgorithm, usize)> {
    let curve = public.algorithm.parameters.as_ref()?.as_oid().ok()?;
    match curve.to_id_string().as_str() {
        P256 => Some((&ECDSA_P256_SHA256_ASN1_SIGNING, 32)),
        P384 => Some((&ECDSA_P384_SHA384_ASN1_SIGNING, 48)),
        _ => None,
    }
}

fn fits_point(
    algorithm: &'static EcdsaSigningAlgorithm,
    length: usize,
    scalar: &[u8],
    point: &[u8],
) -> bool {
    let scalar = without_zeros(scalar);
    let zeros = vec![0; length.saturating_sub(scalar.len())];
    let (scalar, random) = ([&zeros, scalar].concat(), SystemRandom::new());
    EcdsaKeyPair::from_private_key_and_public_key(algorithm, &scalar, point, &random).is_ok()
}

fn without_zeros(number: &[u8]) -> &[u8] {
    let start = number.iter().position(|byte| *byte != 0);
    &number[start.unwrap_or(number.len())..]
}
