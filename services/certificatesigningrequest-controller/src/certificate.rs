//! Certificates (X.509, RFC 5280) for requests, as the authority signs them.
//!
//! The subject and the alternative names are encoded from the fields of the request that the signer has checked.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256,
    SignatureAlgorithm, SigningKey as _,
};
use yasna::models::ObjectIdentifier;
use yasna::{DERWriter, DERWriterSeq, Tag, construct_der};

use crate::{Authority, Request, names, pem};

/// The time by which clocks may differ: certificates are valid since then.
const BACKDATE: Duration = Duration::from_secs(300);
/// Certificates that are valid for a shorter time are not shortened by [`BACKDATE`].
const SHORT: Duration = Duration::from_secs(8 * 3600);

/// The bits of the extension with key usages.
const KEY_USAGES: [(&str, usize); 10] = [
    ("signing", 0),
    ("digital signature", 0),
    ("content commitment", 1),
    ("key encipherment", 2),
    ("data encipherment", 3),
    ("key agreement", 4),
    ("cert sign", 5),
    ("crl sign", 6),
    ("encipher only", 7),
    ("decipher only", 8),
];
/// The object identifiers of extended key usages.
const PURPOSES: [(&str, &[u64]); 13] = [
    ("any", &[2, 5, 29, 37, 0]),
    ("server auth", &[1, 3, 6, 1, 5, 5, 7, 3, 1]),
    ("client auth", &[1, 3, 6, 1, 5, 5, 7, 3, 2]),
    ("code signing", &[1, 3, 6, 1, 5, 5, 7, 3, 3]),
    ("email protection", &[1, 3, 6, 1, 5, 5, 7, 3, 4]),
    ("s/mime", &[1, 3, 6, 1, 5, 5, 7, 3, 4]),
    ("ipsec end system", &[1, 3, 6, 1, 5, 5, 7, 3, 5]),
    ("ipsec tunnel", &[1, 3, 6, 1, 5, 5, 7, 3, 6]),
    ("ipsec user", &[1, 3, 6, 1, 5, 5, 7, 3, 7]),
    ("timestamping", &[1, 3, 6, 1, 5, 5, 7, 3, 8]),
    ("ocsp signing", &[1, 3, 6, 1, 5, 5, 7, 3, 9]),
    ("microsoft sgc", &[1, 3, 6, 1, 4, 1, 311, 10, 3, 3]),
    ("netscape sgc", &[2, 16, 840, 1, 113_730, 4, 1]),
];

const KEY_USAGE: &[u64] = &[2, 5, 29, 15];
const ALTERNATIVE_NAMES: &[u64] = &[2, 5, 29, 17];
const CONSTRAINTS: &[u64] = &[2, 5, 29, 19];
const AUTHORITY_KEY: &[u64] = &[2, 5, 29, 35];
const PURPOSE: &[u64] = &[2, 5, 29, 37];

impl Authority {
    /// Returns the certificate for a request in PEM. It expires with the authority at the latest.
    ///
    /// # Errors
    /// If the authority has expired, or its key is of an unknown kind.
    pub fn sign(
        &self,
        request: &Request,
        usages: &[String],
        valid: Duration,
        now: Timestamp,
    ) -> Result<String, String> {
        if self.expires <= now {
            return Err("refusing to sign a certificate that expired in the past".to_owned());
        }
        let algorithm = identifier(self.key.algorithm())
            .ok_or("the key of the CA is neither RSA, ECDSA nor Ed25519")?;
        let early = |time: Timestamp| {
            let back = SignedDuration::try_from(BACKDATE).unwrap_or_default();
            time.checked_sub(back).unwrap_or(time)
        };
        let end = now.saturating_add(valid).unwrap_or(Timestamp::MAX);
        let end = match valid < SHORT {
            true => end,
            false => early(end),
        };
        let content = construct_der(|writer| {
            writer.write_sequence(|writer| {
                writer
                    .next()
                    .write_tagged(Tag::context(0), |writer| writer.write_u8(2));
                writer
                    .next()
                    .write_bigint_bytes(&rand::random::<[u8; 16]>(), true);
                writer.next().write_der(&algorithm);
                writer.next().write_der(&self.subject);
                writer.next().write_sequence(|writer| {
                    writer.next().write_der(&time(early(now)));
                    writer.next().write_der(&time(end.min(self.expires)));
                });
                writer.next().write_der(&names::subject(request));
                writer.next().write_der(&request.public_key);
                writer.next().write_tagged(Tag::context(3), |writer| {
                    writer.write_sequence(|writer| self.extensions(request, usages, writer));
                });
            });
        });
        let signature = self.key.sign(&content);
        let signature = signature.map_err(|error| format!("signing failed: {error}"))?;
        let certificate = construct_der(|writer| {
            writer.write_sequence(|writer| {
                writer.next().write_der(&content);
                writer.next().write_der(&algorithm);
                let bits = signature.len().saturating_mul(8);
                writer.next().write_bitvec_bytes(&signature, bits);
            });
        });
        Ok(pem::write("CERTIFICATE", &certificate))
    }

    fn extensions(&self, request: &Request, usages: &[String], writer: &mut DERWriterSeq<'_>) {
        let requests = |name: &str| usages.iter().any(|usage| usage == name);
        let bits = KEY_USAGES.iter().filter(|(name, _)| requests(name));
        let bits: Vec<_> = bits.map(|(_, bit)| *bit).collect();
        if !bits.is_empty() {
            extension(writer.next(), KEY_USAGE, true, &key_usage(&bits));
        }
        let mut purposes: Vec<&[u64]> = Vec::new();
        for (name, purpose) in PURPOSES {
            if requests(name) && !purposes.contains(&purpose) {
                purposes.push(purpose);
            }
        }
        if !purposes.is_empty() {
            let value = construct_der(|writer| {
                writer.write_sequence(|writer| {
                    for purpose in &purposes {
                        writer
                            .next()
                            .write_oid(&ObjectIdentifier::from_slice(purpose));
                    }
                });
            });
            extension(writer.next(), PURPOSE, false, &value);
        }
        let no_ca = construct_der(|writer| writer.write_sequence(|_| {}));
        extension(writer.next(), CONSTRAINTS, true, &no_ca);
        if let Some(id) = &self.key_id {
            let value = construct_der(|writer| {
                writer.write_sequence(|writer| {
                    writer
                        .next()
                        .write_tagged_implicit(Tag::context(0), |writer| writer.write_bytes(id));
                });
            });
            extension(writer.next(), AUTHORITY_KEY, false, &value);
        }
        if let Some(names) = names::alternatives(request) {
            // Without a subject they are the only names (RFC 5280, 4.2.1.6).
            let is_nameless = names::subject(request) == names::subject(&Request::default());
            extension(writer.next(), ALTERNATIVE_NAMES, is_nameless, &names);
        }
    }
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

/// Returns the bits of key usages, of which the last one is set, as DER wants.
fn key_usage(bits: &[usize]) -> Vec<u8> {
    let length = bits.iter().max().map_or(0, |last| last.saturating_add(1));
    let mut bytes = vec![0_u8; length.div_ceil(8)];
    for bit in bits {
        if let Some(byte) = bytes.get_mut(bit / 8) {
            *byte |= 0x80 >> (bit % 8);
        }
    }
    construct_der(|writer| writer.write_bitvec_bytes(&bytes, length))
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
fn identifier(algorithm: &SignatureAlgorithm) -> Option<Vec<u8>> {
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
    let (_, oid, has_null) = known.into_iter().find(|(one, ..)| *one == algorithm)?;
    Some(construct_der(|writer| {
        writer.write_sequence(|writer| {
            writer.next().write_oid(&ObjectIdentifier::from_slice(oid));
            if has_null {
                writer.next().write_null();
            }
        });
    }))
}
