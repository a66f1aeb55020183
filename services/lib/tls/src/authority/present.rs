//! The certificate that a file has, as it was issued.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::extensions::ParsedExtension::AuthorityKeyIdentifier;
use x509_parser::prelude::FromDer as _;

use super::{Authority, CLOCK_SKEW, Leaf, Usage};
use crate::files::Block;
use crate::{Error, PeerIdentity, Validity};

/// A certificate that was issued, and the time in which it is valid.
#[derive(Clone, Debug)]
pub struct Present {
    /// Its content, for one that replaces it.
    pub leaf: Leaf,
    /// The time in which it is valid.
    pub validity: Validity,
    /// The identifier of the key of its CA, if the certificate has it.
    authority_key: Option<Vec<u8>>,
}

impl Present {
    /// Reads the first certificate of a file in PEM.
    ///
    /// # Errors
    /// If the file cannot be read, or has no certificate with a common name.
    pub fn read(file: &Path) -> Result<Self, Error> {
        let block = Block::read(file)?;
        Self::parse(&block.text).map_err(|reason| Error::Certificate {
            file: block.source,
            reason,
        })
    }

    /// Returns whether the certificate says that it is by this authority.
    pub fn is_by(&self, authority: &Authority) -> bool {
        self.authority_key.as_deref() == authority.key_id()
    }

    fn parse(pem: &[u8]) -> Result<Self, String> {
        let der = CertificateDer::from_pem_slice(pem).map_err(|error| error.to_string())?;
        let malformed = "malformed certificate";
        let (_, parsed) = X509Certificate::from_der(&der).map_err(|error| error.to_string())?;
        let subject = PeerIdentity::parse(&der)?.ok_or("no common name")?;
        let validity = Validity::of(&der).ok_or(malformed)?;
        let life = validity.not_after.duration_since(validity.not_before);
        let life = Duration::try_from(life).map_err(|_| malformed)?;
        let leaf = Leaf {
            name: subject.name,
            groups: subject.groups,
            hosts: hosts(&parsed).ok_or(malformed)?,
            usage: usage(&parsed).ok_or(malformed)?,
            lifetime: life.saturating_sub(CLOCK_SKEW),
        };
        Ok(Self {
            leaf,
            validity,
            authority_key: authority_key(&parsed),
        })
    }
}

fn authority_key(certificate: &X509Certificate<'_>) -> Option<Vec<u8>> {
    let mut extensions = certificate.iter_extensions();
    extensions.find_map(|extension| match extension.parsed_extension() {
        AuthorityKeyIdentifier(id) => Some(id.key_identifier.as_ref()?.0.to_owned()),
        _ => None,
    })
}

fn hosts(certificate: &X509Certificate<'_>) -> Option<Vec<String>> {
    let Some(names) = certificate.subject_alternative_name().ok()? else {
        return Some(Vec::new());
    };
    names.value.general_names.iter().map(host).collect()
}

fn host(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => Some(IpAddr::from(<[u8; 4]>::try_from(*bytes).ok()?).to_string()),
            _ => Some(IpAddr::from(<[u8; 16]>::try_from(*bytes).ok()?).to_string()),
        },
        _ => None,
    }
}

fn usage(certificate: &X509Certificate<'_>) -> Option<Usage> {
    let purposes = certificate.extended_key_usage().ok()??.value;
    match (purposes.server_auth, purposes.client_auth) {
        (true, true) => Some(Usage::ServerAndClient),
        (true, false) => Some(Usage::Server),
        (false, true) => Some(Usage::Client),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_read_as_it_was_issued() {
        let authority = Authority::create("test").unwrap();
        let leaf = Leaf {
            name: "system:node:n".to_owned(),
            groups: ["a", "b"].map(str::to_owned).to_vec(),
            hosts: ["n", "127.0.0.1", "::1"].map(str::to_owned).to_vec(),
            usage: Usage::ServerAndClient,
            lifetime: Duration::from_secs(86_400),
        };
        for usage in [Usage::Server, Usage::Client, Usage::ServerAndClient] {
            let leaf = Leaf {
                usage,
                ..leaf.clone()
            };
            let issued = authority.issue(&leaf).unwrap();
            let present = Present::parse(issued.certificate.as_bytes()).unwrap();
            assert_eq!(present.leaf, leaf);
            assert!(present.is_by(&authority));
            assert!(!present.is_by(&Authority::create("test").unwrap()));
        }
        let user = Leaf {
            hosts: Vec::new(),
            ..leaf
        };
        let issued = authority.issue(&user).unwrap();
        let present = Present::parse(issued.certificate.as_bytes()).unwrap();
        assert_eq!(present.leaf, user);
    }
}
