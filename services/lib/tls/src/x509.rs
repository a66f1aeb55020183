//! Certificates (X.509, RFC 5280) in DER.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use pem::{EncodeConfig, LineEnding, Pem};
use rcgen::{
    KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256,
    SignatureAlgorithm, SigningKey as _,
};
use yasna::models::ObjectIdentifier;
use yasna::{DERWriter, DERWriterSeq, Tag, construct_der};

use crate::Validity;

/// The constraints of a certificate that is not one of a CA.
pub const NO_CA: Extension<'static> = Extension {
    oid: &[2, 5, 29, 19],
    is_critical: true,
    // An empty sequence.
    value: &[0x30, 0],
};
/// The constraints of a certificate of a CA.
pub const CA: Extension<'static> = Extension {
    oid: &[2, 5, 29, 19],
    is_critical: true,
    // A sequence with a true value.
    value: &[0x30, 3, 1, 1, 0xff],
};
/// The object identifier of the identifier of the certificate's own key.
pub const SUBJECT_KEY: &[u64] = &[2, 5, 29, 14];
/// The object identifier of key usages.
pub const KEY_USAGE: &[u64] = &[2, 5, 29, 15];
/// The object identifier of alternative names.
pub const ALTERNATIVE_NAMES: &[u64] = &[2, 5, 29, 17];
/// The object identifier of the identifier of the authority's key.
pub const AUTHORITY_KEY: &[u64] = &[2, 5, 29, 35];
/// The object identifier of extended key usages.
pub const EXTENDED_KEY_USAGE: &[u64] = &[2, 5, 29, 37];

/// The content of a certificate.
pub struct Content<'a> {
    /// The name of the authority in DER.
    pub issuer: &'a [u8],
    /// The name of the owner in DER.
    pub subject: &'a [u8],
    /// The public key of the owner in DER.
    pub public_key: &'a [u8],
    /// The time in which the certificate is valid.
    pub validity: Validity,
    /// The extensions, in their order.
    pub extensions: &'a [Extension<'a>],
}

/// An extension of a certificate.
pub struct Extension<'a> {
    /// The object identifier.
    pub oid: &'a [u64],
    /// Whether those who do not know it must refuse the certificate.
    pub is_critical: bool,
    /// The value in DER.
    pub value: &'a [u8],
}

impl Content<'_> {
    /// Returns the certificate in PEM, with a random serial number, signed by the key of the authority.
    ///
    /// # Errors
    /// If the key is neither RSA, ECDSA nor Ed25519, or it cannot sign.
    pub fn sign(&self, key: &KeyPair) -> Result<String, rcgen::Error> {
        let algorithm = identifier(key.algorithm())?;
        let content = construct_der(|writer| {
            writer.write_sequence(|writer| self.write(&algorithm, writer));
        });
        let signature = key.sign(&content)?;
        let certificate = construct_der(|writer| {
            writer.write_sequence(|writer| {
                writer.next().write_der(&content);
                writer.next().write_der(&algorithm);
                let bits = signature.len().saturating_mul(8);
                writer.next().write_bitvec_bytes(&signature, bits);
            });
        });
        let config = EncodeConfig::new().set_line_ending(LineEnding::LF);
        Ok(pem::encode_config(
            &Pem::new("CERTIFICATE", certificate),
            config,
        ))
    }

    fn write(&self, algorithm: &[u8], writer: &mut DERWriterSeq<'_>) {
        let version_3 = |writer: DERWriter<'_>| writer.write_u8(2);
        writer.next().write_tagged(Tag::context(0), version_3);
        writer
            .next()
            .write_bigint_bytes(&rand::random::<[u8; 16]>(), true);
        writer.next().write_der(algorithm);
        writer.next().write_der(self.issuer);
        writer.next().write_sequence(|writer| {
            writer.next().write_der(&time(self.validity.not_before));
            writer.next().write_der(&time(self.validity.not_after));
        });
        writer.next().write_der(self.subject);
        writer.next().write_der(self.public_key);
        writer.next().write_tagged(Tag::context(3), |writer| {
            writer.write_sequence(|writer| {
                for extension in self.extensions {
                    extension.write(writer.next());
                }
            });
        });
    }
}

impl Extension<'_> {
    fn write(&self, writer: DERWriter<'_>) {
        writer.write_sequence(|writer| {
            let oid = ObjectIdentifier::from_slice(self.oid);
            writer.next().write_oid(&oid);
            if self.is_critical {
                writer.next().write_bool(true);
            }
            writer.next().write_bytes(self.value);
        });
    }
}

/// Returns a sequence of object identifiers in DER, such as those of extended key usages.
pub fn identifiers(oids: &[&[u64]]) -> Vec<u8> {
    construct_der(|writer| {
        writer.write_sequence(|writer| {
            for oid in oids {
                writer.next().write_oid(&ObjectIdentifier::from_slice(oid));
            }
        });
    })
}

/// Returns a sequence of bytes with context tags in DER, such as alternative names.
pub fn tagged(values: &[(u64, Vec<u8>)]) -> Vec<u8> {
    construct_der(|writer| {
        writer.write_sequence(|writer| {
            for (tag, bytes) in values {
                let writer = writer.next();
                let tag = Tag::context(*tag);
                writer.write_tagged_implicit(tag, |writer| writer.write_bytes(bytes));
            }
        });
    })
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
fn identifier(algorithm: &SignatureAlgorithm) -> Result<Vec<u8>, rcgen::Error> {
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
