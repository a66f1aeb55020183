//! The content of the files of an identity, ready for handshakes.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, RootCertStore};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use crate::Error;
use crate::files::{Block, Pem, Serving};

/// A certificate is about to expire when less than this part of its life is left.
const EXPIRING: i32 = 4;

/// The time in which a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first moment.
    pub not_before: Timestamp,
    /// The last moment.
    pub not_after: Timestamp,
}

impl Validity {
    /// Returns the validity of a certificate in DER; `None` if it is malformed.
    pub(crate) fn of(certificate: &[u8]) -> Option<Self> {
        let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
        let validity = parsed.validity();
        Some(Self {
            not_before: Timestamp::from_second(validity.not_before.timestamp()).ok()?,
            not_after: Timestamp::from_second(validity.not_after.timestamp()).ok()?,
        })
    }

    /// Returns the time until the certificate expires; negative if it has.
    pub fn remaining(&self, now: Timestamp) -> SignedDuration {
        self.not_after.duration_since(now)
    }

    /// Returns whether less than a quarter of the life is left.
    pub fn is_expiring(&self, now: Timestamp) -> bool {
        let life = self.not_after.duration_since(self.not_before);
        self.remaining(now) < life / EXPIRING
    }
}

/// A certificate with its key, and the verifiers of the CAs that are trusted.
#[derive(Debug)]
pub(crate) struct Material {
    pub(crate) key: Arc<CertifiedKey>,
    /// The certificate for clients; `None` while there is none.
    pub(crate) serving: Option<Arc<CertifiedKey>>,
    pub(crate) servers: Arc<dyn ServerCertVerifier>,
    /// The verifier of agents by the further CAs of clients, if there are any.
    pub(crate) agents: Option<Arc<dyn ServerCertVerifier>>,
    pub(crate) clients: Arc<dyn ClientCertVerifier>,
    pub(crate) validity: Validity,
    /// The validity of `serving`, if it is a certificate of its own.
    pub(crate) serving_validity: Option<Validity>,
    /// The validity of the CA of servers that expires first.
    pub(crate) ca_validity: Validity,
    /// The CAs of servers.
    pub(crate) authorities: Vec<CertificateDer<'static>>,
    /// The CAs of clients.
    pub(crate) client_authorities: Vec<CertificateDer<'static>>,
}

impl Material {
    pub(crate) fn parse(pem: &Pem) -> Result<Self, Error> {
        let provider = Arc::new(ring::default_provider());
        let authorities = certificates(&pem.ca)?;
        let client_authorities: Result<Vec<_>, _> = pem.clients.iter().map(certificates).collect();
        let client_authorities = client_authorities?.concat();
        let client_roots = Arc::new(roots("the CAs of clients", &client_authorities)?);
        let key = Arc::new(certified_key(&pem.certificate, &pem.key, &provider)?);
        let (serving, serving_validity) = serving(pem, &key, &provider)?;
        let unusable = |reason: &dyn std::error::Error| Error::Certificate {
            file: pem.ca.source.clone(),
            reason: reason.to_string(),
        };
        let servers = server_verifier(&pem.ca, &authorities, &provider)?;
        let agents = pem.signers.as_ref();
        let agents = agents.map(|ca| server_verifier(ca, &certificates(ca)?, &provider));
        let clients = WebPkiClientVerifier::builder_with_provider(client_roots, provider)
            .build()
            .map_err(|error| unusable(&error))?;
        let leaf = key.cert.first().and_then(|leaf| Validity::of(leaf));
        let malformed = |source: &str| Error::Certificate {
            file: source.to_owned(),
            reason: "its certificate is malformed".to_owned(),
        };
        let validity = leaf.ok_or_else(|| malformed(&pem.certificate.source))?;
        let ca_validity = authorities.iter().filter_map(|one| Validity::of(one));
        let ca_validity = ca_validity.min_by_key(|validity| validity.not_after);
        Ok(Self {
            key,
            serving,
            servers,
            agents: agents.transpose()?,
            clients,
            validity,
            serving_validity,
            ca_validity: ca_validity.ok_or_else(|| malformed(&pem.ca.source))?,
            authorities,
            client_authorities,
        })
    }
}

/// Returns the verifier of servers by CAs.
fn server_verifier(
    ca: &Block,
    authorities: &[CertificateDer<'static>],
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    let roots = Arc::new(roots(&ca.source, authorities)?);
    let verifier = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider));
    let verifier = verifier.build().map_err(|error| Error::Certificate {
        file: ca.source.clone(),
        reason: error.to_string(),
    })?;
    Ok(verifier)
}

/// The certificate for clients, and its validity if it is one of its own.
type ForClients = (Option<Arc<CertifiedKey>>, Option<Validity>);

fn serving(
    pem: &Pem,
    own: &Arc<CertifiedKey>,
    provider: &CryptoProvider,
) -> Result<ForClients, Error> {
    match &pem.serving {
        Serving::Own => Ok((Some(Arc::clone(own)), None)),
        Serving::Other(None) => Ok((None, None)),
        Serving::Other(Some((certificate, key))) => {
            let other = certified_key(certificate, key, provider)?;
            let validity = other.cert.first().and_then(|leaf| Validity::of(leaf));
            Ok((Some(Arc::new(other)), validity))
        }
    }
}

/// Returns the CAs of a bundle, all of which must be well-formed.
fn roots(source: &str, bundle: &[CertificateDer<'static>]) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in bundle {
        let added = roots.add(certificate.clone());
        added.map_err(|error| Error::Unusable {
            file: source.to_owned(),
            source: error,
        })?;
    }
    Ok(roots)
}

/// Returns the certificates of a text, at least one.
pub(crate) fn certificates(block: &Block) -> Result<Vec<CertificateDer<'static>>, Error> {
    let malformed = |source| Error::Pem {
        file: block.source.clone(),
        needed: "certificate",
        source,
    };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&block.text).collect();
    match found.map_err(malformed)? {
        found if found.is_empty() => Err(malformed(rustls::pki_types::pem::Error::NoItemsFound)),
        found => Ok(found),
    }
}

fn certified_key(
    certificate: &Block,
    key: &Block,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, Error> {
    let chain = certificates(certificate)?;
    let private = PrivateKeyDer::from_pem_slice(&key.text).map_err(|source| Error::Pem {
        file: key.source.clone(),
        needed: "private key",
        source,
    })?;
    CertifiedKey::from_der(chain, private, provider).map_err(|source| match source {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => Error::Mismatch {
            certificate: certificate.source.clone(),
            key: key.source.clone(),
        },
        source => Error::Unusable {
            file: format!("{} or {}", certificate.source, key.source),
            source,
        },
    })
}
