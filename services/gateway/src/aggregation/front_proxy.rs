//! The client certificate for calling servers of APIServices: from files, or made once and kept in a Secret that all
//! gateways share.
//!
//! The key of the CA is thrown away, so that no other certificate can be signed. When the Secret is deleted, a new CA
//! is made; gateways and the ConfigMap `extension-apiserver-authentication` follow.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use parking_lot::RwLock;
use prost::Message as _;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use setpoint_codec::kind_of;
use setpoint_model::Key;
use setpoint_proto::core::Secret;
use setpoint_proto::{ApiError, Reason};
use setpoint_store::cache::{AtLeast, Cached};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use super::Gateway;
use crate::errors::readable;
use crate::outbound::ClientCertificate;

/// The Secret.
pub(crate) const NAMESPACE: &str = "setpoint-system";
pub(crate) const NAME: &str = "front-proxy";
const CA: &str = "ca.crt";
const CERTIFICATE: &str = "tls.crt";
const PRIVATE_KEY: &str = "tls.key";
/// The name in the certificate that is made here.
const COMMON_NAME: &str = "front-proxy-client";
/// The time for which certificates are valid that are made here.
const YEARS: i32 = 10;

/// The certificate of the front proxy, and the CA that it is verified by.
#[derive(Debug)]
pub(crate) struct Certificate {
    /// The CA in PEM.
    pub(crate) ca: String,
    /// The common name in the certificate.
    pub(crate) name: String,
    pub(crate) client: ClientCertificate,
}

impl Certificate {
    fn parse(ca: &[u8], certificate: &[u8], key: &[u8]) -> Result<Self, String> {
        let ca = String::from_utf8(ca.to_vec()).map_err(|error| format!("the CA: {error}"))?;
        if CertificateDer::from_pem_slice(ca.as_bytes()).is_err() {
            return Err("the CA has no certificate".to_owned());
        }
        let chain = CertificateDer::pem_slice_iter(certificate);
        let chain: Vec<_> = chain
            .collect::<Result<_, _>>()
            .map_err(|error| format!("the certificate: {error}"))?;
        let own = chain.first().ok_or("there is no certificate")?;
        let (_, own) =
            X509Certificate::from_der(own).map_err(|error| format!("the certificate: {error}"))?;
        let name = own.subject().iter_common_name().last();
        let name = name.and_then(|name| name.as_str().ok());
        let name = name.unwrap_or_default().to_owned();
        let key =
            PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("the key: {error}"))?;
        Ok(Self {
            ca,
            name,
            client: ClientCertificate { chain, key },
        })
    }
}

/// The source of the certificate.
pub(crate) enum FrontProxy {
    /// Files, which were read at start.
    Files(Arc<Certificate>),
    /// The Secret, as it was read last.
    Secret(RwLock<Option<(Arc<Cached>, Arc<Certificate>)>>),
}

impl Default for FrontProxy {
    fn default() -> Self {
        Self::Secret(RwLock::default())
    }
}

impl FrontProxy {
    /// Reads the files of the CA, the certificate and its key.
    ///
    /// # Errors
    /// If one cannot be read or is malformed.
    pub(crate) fn read(ca: &Path, certificate: &Path, key: &Path) -> anyhow::Result<Self> {
        let read = |path: &Path| {
            std::fs::read(path).with_context(|| format!("reading {}", path.display()))
        };
        let parsed = Certificate::parse(&read(ca)?, &read(certificate)?, &read(key)?);
        let parsed = parsed.map_err(anyhow::Error::msg).context("front_proxy")?;
        Ok(Self::Files(Arc::new(parsed)))
    }

    /// Returns the certificate. The Secret is made if it is missing; another gateway may do so at the same time.
    ///
    /// # Errors
    /// If the Secret cannot be read or made, or is malformed.
    pub(crate) async fn certificate(
        &self,
        gateway: &dyn Gateway,
    ) -> Result<Arc<Certificate>, ApiError> {
        let known = match self {
            Self::Files(certificate) => return Ok(certificate.clone()),
            Self::Secret(known) => known,
        };
        let source = match read(gateway, AtLeast::Any).await? {
            Some(source) => source,
            None => create(gateway).await?,
        };
        if let Some((of, certificate)) = &*known.read()
            && Arc::ptr_eq(of, &source)
        {
            return Ok(certificate.clone());
        }
        let secret = readable(Secret::decode(source.raw.as_ref()))?;
        let part = |name: &str| secret.data.get(name).map_or(&[][..], |part| part.as_ref());
        let parsed = Certificate::parse(part(CA), part(CERTIFICATE), part(PRIVATE_KEY));
        let parsed = parsed.map_err(|why| internal(format!("Secret {NAMESPACE}/{NAME}: {why}")))?;
        let certificate = Arc::new(parsed);
        *known.write() = Some((source, certificate.clone()));
        Ok(certificate)
    }
}

fn internal(message: impl Into<String>) -> ApiError {
    ApiError::new(Reason::InternalError, message.into())
}

async fn read(gateway: &dyn Gateway, at: AtLeast) -> Result<Option<Arc<Cached>>, ApiError> {
    let key = Key::new(NAMESPACE, NAME);
    gateway.cache().get(kind_of::<Secret>(), &key, at).await
}

async fn create(gateway: &dyn Gateway) -> Result<Arc<Cached>, ApiError> {
    let [ca, certificate, key] = generate(Timestamp::now())
        .map_err(|error| internal(format!("making a certificate failed: {error}")))?;
    let mut secret = Secret {
        r#type: "kubernetes.io/tls".to_owned(),
        ..Secret::default()
    };
    secret.metadata.name = NAME.to_owned();
    secret.data.extend([
        (CA.to_owned(), ca.into_bytes().into()),
        (CERTIFICATE.to_owned(), certificate.into_bytes().into()),
        (PRIVATE_KEY.to_owned(), key.into_bytes().into()),
    ]);
    gateway.create_secret(NAMESPACE, secret).await?;
    let made = read(gateway, AtLeast::Newest).await?;
    made.ok_or_else(|| internal(format!("Secret {NAMESPACE}/{NAME} is gone")))
}

/// Makes a CA, and a certificate of it. Returns both and the key of the certificate in PEM.
fn generate(now: Timestamp) -> Result<[String; 3], rcgen::Error> {
    let mut ca = params("setpoint-front-proxy-ca", now);
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    let ca_key = KeyPair::generate()?;
    let ca_pem = ca.self_signed(&ca_key)?.pem();
    let mut client = params(COMMON_NAME, now);
    client.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate()?;
    let certificate = client.signed_by(&key, &Issuer::new(ca, ca_key))?;
    Ok([ca_pem, certificate.pem(), key.serialize_pem()])
}

fn params(name: &str, now: Timestamp) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    let today = now.to_zoned(TimeZone::UTC).date();
    let year = i32::from(today.year());
    // The first day of a month exists in every year.
    let month = today.month().unsigned_abs();
    params.not_before = date_time_ymd(year, month, 1);
    params.not_after = date_time_ymd(year.saturating_add(YEARS), month, 1);
    params
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_is_made_is_one_of_its_ca_and_its_key() {
        let made = generate(Timestamp::now()).unwrap();
        let [ca, certificate, key] = made.each_ref().map(String::as_bytes);
        let parsed = Certificate::parse(ca, certificate, key).unwrap();
        assert_eq!(parsed.name, COMMON_NAME);
        let (_, own) = X509Certificate::from_der(&parsed.client.chain[0]).unwrap();
        let ca = CertificateDer::from_pem_slice(ca).unwrap();
        let (_, ca) = X509Certificate::from_der(&ca).unwrap();
        assert!(ca.is_ca() && !own.is_ca());
        own.verify_signature(Some(ca.public_key())).unwrap();
        assert!(own.validity().is_valid());
        let trust = crate::outbound::Trust::Any;
        assert!(crate::outbound::tls(trust, Some(&parsed.client)).is_ok());
    }

    #[test]
    fn a_malformed_certificate_is_refused() {
        let [ca, certificate, key] = generate(Timestamp::now()).unwrap();
        let parse = |ca: &str, certificate: &str, key: &str| {
            Certificate::parse(ca.as_bytes(), certificate.as_bytes(), key.as_bytes()).is_ok()
        };
        assert!(parse(&ca, &certificate, &key));
        assert!(!parse("", &certificate, &key));
        assert!(!parse(&ca, "", &key));
        assert!(!parse(&ca, &certificate, "nonsense"));
    }
}
