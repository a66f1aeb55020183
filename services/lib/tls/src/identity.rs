//! The subject of a client certificate.

use jiff::Timestamp;
use ring::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::AttributeTypeAndValue;

/// Kubernetes' attribute of a subject: the UID of the user.
pub const USER_ID: &[u64] = &[1, 3, 6, 1, 4, 1, 57_683, 2];

/// The subject of a verified client certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerIdentity {
    /// The name of the user: the common name of the subject, which is not empty.
    pub name: String,
    /// The groups of the user: the organizations of the subject, in their order.
    pub groups: Vec<String>,
    /// The UID of the user, from the attribute 1.3.6.1.4.1.57683.2 of the subject; mostly empty.
    pub uid: String,
    /// The SHA-256 of the certificate in DER, in hexadecimal digits.
    pub fingerprint: String,
    /// The time at which the certificate expires.
    pub not_after: Timestamp,
}

impl PeerIdentity {
    /// Returns the identity of the first certificate of a text in PEM, which is not verified; `None` if it names no
    /// user.
    pub fn of_pem(text: &[u8]) -> Option<Self> {
        let der = CertificateDer::from_pem_slice(text).ok()?;
        Self::parse(&der).ok().flatten()
    }

    /// Returns the identity of a certificate in DER, which was verified; `None` if its subject has no common name.
    ///
    /// # Errors
    /// If the subject is malformed.
    pub(crate) fn parse(certificate: &[u8]) -> Result<Option<Self>, String> {
        let (_, parsed) = X509Certificate::from_der(certificate)
            .map_err(|error| format!("malformed certificate: {error}"))?;
        let subject = parsed.subject();
        // As in Go, the last one counts.
        let name = subject.iter_common_name().last().map(text).transpose()?;
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Ok(None);
        };
        let groups: Result<_, _> = subject.iter_organization().map(text).collect();
        let not_after = parsed.validity().not_after.timestamp();
        let uids = subject.iter_attributes();
        let uids = uids.filter(|one| {
            one.attr_type()
                .iter()
                .is_some_and(|oid| oid.eq(USER_ID.iter().copied()))
        });
        Ok(Some(Self {
            name,
            groups: groups?,
            uid: uid(uids.map(text).collect::<Result<_, _>>()?)?,
            fingerprint: hex::encode(digest(&SHA256, certificate)),
            not_after: Timestamp::from_second(not_after).unwrap_or(Timestamp::MAX),
        }))
    }
}

fn text(attribute: &AttributeTypeAndValue<'_>) -> Result<String, String> {
    let text = attribute
        .as_str()
        .map_err(|_| "malformed subject".to_owned())?;
    Ok(text.to_owned())
}

fn uid(mut found: Vec<String>) -> Result<String, String> {
    match (found.pop(), found.is_empty()) {
        (None, _) => Ok(String::new()),
        (Some(uid), true) if uid.is_empty() => Err("UID cannot be an empty string".to_owned()),
        (Some(uid), true) => Ok(uid),
        (Some(last), false) => {
            found.push(last);
            Err(format!("expected 1 UID, but found multiple: {found:?}"))
        }
    }
}
