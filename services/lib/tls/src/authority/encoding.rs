//! Certificates (X.509, RFC 5280) in DER.

use std::net::IpAddr;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use pem::{EncodeConfig, LineEnding, Pem};
use rcgen::{
    KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256,
    PublicKeyData as _, SignatureAlgorithm, SigningKey as _,
};
use rustls::pki_types::DnsName;
use yasna::models::ObjectIdentifier;
use yasna::{DERWriter, DERWriterSeq, Tag, construct_der};

use super::{Authority, Leaf, Usage};
use crate::subject::{COMMON_NAME, ORGANIZATION};
use crate::{Error, Validity};

const KEY_USAGE: &[u64] = &[2, 5, 29, 15];
const ALTERNATIVE_NAMES: &[u64] = &[2, 5, 29, 17];
const CONSTRAINTS: &[u64] = &[2, 5, 29, 19];
const AUTHORITY_KEY: &[u64] = &[2, 5, 29, 35];
const EXTENDED_KEY_USAGE: &[u64] = &[2, 5, 29, 37];
const SERVER_AUTH: &[u64] = &[1, 3, 6, 1, 5, 5, 7, 3, 1];
const CLIENT_AUTH: &[u64] = &[1, 3, 6, 1, 5, 5, 7, 3, 2];
/// The tags of alternative names.
const DNS_NAME: u64 = 2;
const IP_ADDRESS: u64 = 7;

/// Returns a certificate of an authority for a key.
///
/// # Errors
/// If a name is neither a DNS name nor an IP address, or the key of the authority is of an unknown kind.
pub(super) fn certificate(
    authority: &Authority,
    leaf: &Leaf,
    key: &KeyPair,
    validity: Validity,
) -> Result<Vec<u8>, Error> {
    let algorithm = identifier(authority.key.algorithm())?;
    let names = leaf
        .hosts
        .iter()
        .map(|name| alternative(name))
        .collect::<Result<Vec<_>, _>>()?;
    let content = construct_der(|writer| {
        writer.write_sequence(|writer| {
            writer
                .next()
                .write_tagged(Tag::context(0), |writer| writer.write_u8(2));
            writer
                .next()
                .write_bigint_bytes(&rand::random::<[u8; 16]>(), true);
            writer.next().write_der(&algorithm);
            writer.next().write_der(&authority.subject);
            writer.next().write_sequence(|writer| {
                writer.next().write_der(&time(validity.not_before));
                writer.next().write_der(&time(validity.not_after));
            });
            writer.next().write_der(&subject(leaf));
            writer.next().write_der(&key.subject_public_key_info());
            writer.next().write_tagged(Tag::context(3), |writer| {
                writer.write_sequence(|writer| extensions(authority, leaf, &names, writer));
            });
        });
    });
    let signature = authority.key.sign(&content)?;
    Ok(construct_der(|writer| {
        writer.write_sequence(|writer| {
            writer.next().write_der(&content);
            writer.next().write_der(&algorithm);
            let bits = signature.len().saturating_mul(8);
            writer.next().write_bitvec_bytes(&signature, bits);
        });
    }))
}

/// Returns a block of PEM.
pub(super) fn pem(label: &str, der: Vec<u8>) -> String {
    let config = EncodeConfig::new().set_line_ending(LineEnding::LF);
    pem::encode_config(&Pem::new(label, der), config)
}

/// Returns the organizations and the common name.
fn subject(leaf: &Leaf) -> Vec<u8> {
    let groups = leaf.groups.iter().map(|group| (ORGANIZATION, group));
    construct_der(|writer| {
        writer.write_sequence(|writer| {
            for (oid, value) in groups.chain([(COMMON_NAME, &leaf.name)]) {
                writer.next().write_set(|writer| {
                    writer.next().write_sequence(|writer| {
                        writer.next().write_oid(&ObjectIdentifier::from_slice(oid));
                        writer.next().write_utf8_string(value);
                    });
                });
            }
        });
    })
}

/// Returns the tag and the bytes of an alternative name.
fn alternative(name: &str) -> Result<(u64, Vec<u8>), Error> {
    match name.parse() {
        Ok(IpAddr::V4(ip)) => Ok((IP_ADDRESS, ip.octets().to_vec())),
        Ok(IpAddr::V6(ip)) => Ok((IP_ADDRESS, ip.octets().to_vec())),
        Err(_) => match DnsName::try_from(name.strip_prefix("*.").unwrap_or(name)) {
            Ok(_) => Ok((DNS_NAME, name.as_bytes().to_vec())),
            Err(_) => Err(Error::Name(name.to_owned())),
        },
    }
}

fn extensions(
    authority: &Authority,
    leaf: &Leaf,
    names: &[(u64, Vec<u8>)],
    writer: &mut DERWriterSeq<'_>,
) {
    // A signature proves that the peer has the key: the first bit.
    let signature = construct_der(|writer| writer.write_bitvec_bytes(&[0x80], 1));
    extension(writer.next(), KEY_USAGE, true, &signature);
    extension(
        writer.next(),
        EXTENDED_KEY_USAGE,
        false,
        &purposes(leaf.usage),
    );
    let no_ca = construct_der(|writer| writer.write_sequence(|_| {}));
    extension(writer.next(), CONSTRAINTS, true, &no_ca);
    if let Some(id) = &authority.key_id {
        let value = sequence_of(&[(0, id.clone())]);
        extension(writer.next(), AUTHORITY_KEY, false, &value);
    }
    if !names.is_empty() {
        extension(writer.next(), ALTERNATIVE_NAMES, false, &sequence_of(names));
    }
}

fn purposes(usage: Usage) -> Vec<u8> {
    let oids: &[&[u64]] = match usage {
        Usage::Server => &[SERVER_AUTH],
        Usage::Client => &[CLIENT_AUTH],
        Usage::ServerAndClient => &[SERVER_AUTH, CLIENT_AUTH],
    };
    construct_der(|writer| {
        writer.write_sequence(|writer| {
            for oid in oids {
                writer.next().write_oid(&ObjectIdentifier::from_slice(oid));
            }
        });
    })
}

/// Returns a sequence of bytes with context tags.
fn sequence_of(tagged: &[(u64, Vec<u8>)]) -> Vec<u8> {
    construct_der(|writer| {
        writer.write_sequence(|writer| {
            for (tag, bytes) in tagged {
                let writer = writer.next();
                writer
                    .write_tagged_implicit(Tag::context(*tag), |writer| writer.write_bytes(bytes));
            }
        });
    })
}

fn extension(writer: DERWriter<'_>, oid: &[u64], is_critical: bool, value: &[u8]) {
    writer.write_sequence(|writer| {
        writer.next().write_oid(&ObjectIdentifier::from_slice(oid));
        if is_critical {
            writer.next().write_bool(true);
        }
        writer.next().write_bytes(value);
    });
}

/// Returns a time in the form that RFC 5280 wants: with a year of two digits before 2050.
fn time(time: Timestamp) -> Vec<u8> {
    let utc = time.to_zoned(TimeZone::UTC);
    let (tag, text) = match utc.year() {
        1950..2050 => (0x17, utc.strftime("%y%m%d%H%M%SZ").to_string()),
        _ => (0x18, utc.strftime("%Y%m%d%H%M%SZ").to_string()),
    };
    let length = u8::try_from(text.len()).unwrap_or_default();
    [&[tag, length][..], text.as_bytes()].concat()
}

/// Returns the identifier of an algorithm in DER.
fn identifier(algorithm: &SignatureAlgorithm) -> Result<Vec<u8>, Error> {
    let known: [(&SignatureAlgorithm, &[u64], bool); 4] = [
        (&PKCS_RSA_SHA256, &[1, 2, 840, 113_549, 1, 1, 11], true),
        (
            &PKCS_ECDSA_P256_SHA256,
            &[1, 2, 840, 10_045, 4, 3, 2],
            false,
        ),
        (
            &PKCS_ECDSA_P384_SHA384,
            &[1, 2, 840, 10_045, 4, 3, 3],
            false,
        ),
        (&PKCS_ED25519, &[1, 3, 101, 112], false),
    ];
    let found = known.into_iter().find(|(one, ..)| *one == algorithm);
    let (_, oid, has_null) = found.ok_or(rcgen::Error::UnsupportedSignatureAlgorithm)?;
    Ok(construct_der(|writer| {
        writer.write_sequence(|writer| {
            writer.next().write_oid(&ObjectIdentifier::from_slice(oid));
            if has_null {
                writer.next().write_null();
            }
        });
    }))
}
