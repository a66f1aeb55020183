//! Certificates (X.509, RFC 5280) for requests, as the authority signs them.
//!
//! The subject and the alternative names are encoded from the fields of the request that the signer has checked.

use std::time::Duration;

use jiff::Timestamp;
use setpoint_tls::Validity;
use setpoint_tls::x509::{
    self, ALTERNATIVE_NAMES, AUTHORITY_KEY, EXTENDED_KEY_USAGE, Extension, KEY_USAGE,
};
use yasna::construct_der;

use crate::{Authority, Request, names};

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
        let expires = self.0.validity().not_after;
        if expires <= now {
            return Err("refusing to sign a certificate that expired in the past".to_owned());
        }
        let early = |time: Timestamp| time.checked_sub(BACKDATE).unwrap_or(time);
        let end = now.saturating_add(valid).unwrap_or(Timestamp::MAX);
        let end = match valid < SHORT {
            true => end,
            false => early(end),
        };
        let subject = names::subject(request);
        // Without a subject the alternative names are the only ones (RFC 5280, 4.2.1.6).
        let is_nameless = subject == names::subject(&Request::default());
        let extensions = self.extensions(request, usages);
        let extensions = extensions.iter().map(|(oid, value)| Extension {
            oid,
            is_critical: *oid == KEY_USAGE || (*oid == ALTERNATIVE_NAMES && is_nameless),
            value,
        });
        let validity = Validity {
            not_before: early(now),
            not_after: end,
        };
        let extensions: Vec<_> = extensions.chain([x509::NO_CA]).collect();
        let key = &request.public_key;
        let signed = self.0.sign(&subject, key, validity, &extensions);
        signed.map_err(|error| format!("signing failed: {error}"))
    }

    /// Returns the extensions that differ between certificates: object identifiers, and values in DER.
    fn extensions(&self, request: &Request, usages: &[String]) -> Vec<(&'static [u64], Vec<u8>)> {
        let requests = |name: &str| usages.iter().any(|usage| usage == name);
        let bits = KEY_USAGES.iter().filter(|(name, _)| requests(name));
        let bits: Vec<_> = bits.map(|(_, bit)| *bit).collect();
        let mut purposes: Vec<&[u64]> = Vec::new();
        for (name, purpose) in PURPOSES {
            if requests(name) && !purposes.contains(&purpose) {
                purposes.push(purpose);
            }
        }
        let key_usage = (!bits.is_empty()).then(|| key_usage(&bits));
        let purposes = (!purposes.is_empty()).then(|| x509::identifiers(&purposes));
        let key_id = self.0.key_id();
        let extensions = [
            (KEY_USAGE, key_usage),
            (EXTENDED_KEY_USAGE, purposes),
            (
                AUTHORITY_KEY,
                key_id.map(|id| x509::tagged(&[(0, id.to_owned())])),
            ),
            (ALTERNATIVE_NAMES, names::alternatives(request)),
        ];
        let present = extensions.into_iter();
        present
            .filter_map(|(oid, value)| Some((oid, value?)))
            .collect()
    }
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
