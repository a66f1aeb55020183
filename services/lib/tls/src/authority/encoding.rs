//! The certificate of a leaf.

use std::net::IpAddr;

use rcgen::{KeyPair, PublicKeyData as _};
use rustls::pki_types::DnsName;
use yasna::construct_der;
use yasna::models::ObjectIdentifier;

use super::{Authority, Leaf, Usage};
use crate::x509::{
    self, ALTERNATIVE_NAMES, AUTHORITY_KEY, EXTENDED_KEY_USAGE, Extension, KEY_USAGE, SUBJECT_KEY,
};
use crate::{Error, Validity};

/// The common name of a subject: the name of the user.
const COMMON_NAME: &[u64] = &[2, 5, 4, 3];
/// An organization of a subject: a group of the user.
const ORGANIZATION: &[u64] = &[2, 5, 4, 10];
const SERVER_AUTH: &[u64] = &[1, 3, 6, 1, 5, 5, 7, 3, 1];
const CLIENT_AUTH: &[u64] = &[1, 3, 6, 1, 5, 5, 7, 3, 2];
/// The tags of alternative names.
const DNS_NAME: u64 = 2;
const IP_ADDRESS: u64 = 7;

/// Returns a certificate of an authority for a key in PEM.
///
/// # Errors
/// If a name is neither a DNS name nor an IP address, or the key of the authority is of an unknown kind.
pub(super) fn certificate(
    authority: &Authority,
    leaf: &Leaf,
    key: &KeyPair,
    validity: Validity,
) -> Result<String, Error> {
    let extensions = values(authority, leaf)?;
    let extensions = extensions.iter().map(|(oid, value)| Extension {
        oid,
        is_critical: *oid == KEY_USAGE,
        value,
    });
    authority.sign(
        &subject(leaf),
        &key.subject_public_key_info(),
        validity,
        &extensions.chain([x509::NO_CA]).collect::<Vec<_>>(),
    )
}

/// Returns a certificate of an authority in PEM for the key of another one.
///
/// # Errors
/// If the key of the authority is of an unknown kind.
pub(super) fn cross_certificate(authority: &Authority, other: &Authority) -> Result<String, Error> {
    // To sign certificates and lists of revoked ones: the bits 5 and 6.
    let usage = construct_der(|writer| writer.write_bitvec_bytes(&[0x06], 7));
    let id = |id: &[u8]| construct_der(|writer| writer.write_bytes(id));
    let own_id = other.key_id().map(id);
    let authority_id = authority
        .key_id()
        .map(|id| x509::tagged(&[(0, id.to_owned())]));
    let extension = |oid, is_critical, value| Extension {
        oid,
        is_critical,
        value,
    };
    let mut extensions = vec![x509::CA, extension(KEY_USAGE, true, usage.as_slice())];
    let ids = [(SUBJECT_KEY, &own_id), (AUTHORITY_KEY, &authority_id)];
    for (oid, value) in ids {
        extensions.extend(value.as_deref().map(|value| extension(oid, false, value)));
    }
    let key = other.key.subject_public_key_info();
    authority.sign(&other.subject, &key, other.validity, &extensions)
}

/// An object identifier, and a value in DER.
type Value = (&'static [u64], Vec<u8>);

/// Returns the extensions that differ between certificates.
fn values(authority: &Authority, leaf: &Leaf) -> Result<Vec<Value>, Error> {
    // A signature proves that the peer has the key: the first bit.
    let signature = construct_der(|writer| writer.write_bitvec_bytes(&[0x80], 1));
    let purposes: &[&[u64]] = match leaf.usage {
        Usage::Server => &[SERVER_AUTH],
        Usage::Client => &[CLIENT_AUTH],
        Usage::ServerAndClient => &[SERVER_AUTH, CLIENT_AUTH],
    };
    let mut values = vec![
        (KEY_USAGE, signature),
        (EXTENDED_KEY_USAGE, x509::identifiers(purposes)),
    ];
    if let Some(id) = authority.key_id() {
        values.push((AUTHORITY_KEY, x509::tagged(&[(0, id.to_owned())])));
    }
    let names: Result<Vec<_>, _> = leaf.hosts.iter().map(|name| alternative(name)).collect();
    let names = names?;
    if !names.is_empty() {
        values.push((ALTERNATIVE_NAMES, x509::tagged(&names)));
    }
    Ok(values)
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
