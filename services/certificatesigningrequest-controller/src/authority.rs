//! The certificate authority: from files, or made once and kept in a Secret.

use std::fs;
use std::path::Path;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use setpoint_controller::Client;
use setpoint_model::Key;
use setpoint_proto::core::Secret;
use setpoint_proto::{ApiError, Reason};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use crate::{Signing, pem};

const NAMESPACE: &str = "setpoint-system";
const NAME: &str = "cluster-signer";
const CERTIFICATE: &str = "tls.crt";
const PRIVATE_KEY: &str = "tls.key";
/// The time for which a CA is valid that is made here.
const YEARS: i32 = 10;

/// The reason why there is no authority.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// A certificate authority.
pub struct Authority {
    pub(crate) key: KeyPair,
    /// Its name in DER.
    pub(crate) subject: Vec<u8>,
    /// The identifier of its key, if it has one.
    pub(crate) key_id: Option<Vec<u8>>,
    pub(crate) expires: Timestamp,
}

impl Authority {
    /// Reads the authority of the settings, or makes the one of the Secret. Another process may do so at the same time.
    ///
    /// # Errors
    /// If a file cannot be read or is malformed, or the gateway does not answer.
    pub async fn load(client: &Client, settings: &Signing) -> Result<Self, ApiError> {
        if !settings.makes_ca() {
            let certificate = read(&settings.ca_certificate)?;
            let key = read(&settings.ca_key)?;
            return Self::parse(&certificate, &key).map_err(internal);
        }
        let secret = match client.get::<Secret>(&Key::new(NAMESPACE, NAME)).await {
            Err(error) if error.reason == Reason::NotFound => create(client).await?,
            read => read?,
        };
        let part = |name: &str| secret.data.get(name).map(|part| part.to_vec());
        let (certificate, key) = (part(CERTIFICATE), part(PRIVATE_KEY));
        let (certificate, key) = certificate.zip(key).ok_or_else(|| {
            internal(format!(
                "Secret {NAMESPACE}/{NAME} has no {CERTIFICATE} or no {PRIVATE_KEY}"
            ))
        })?;
        Self::parse(&certificate, &key).map_err(internal)
    }

    /// Parses a certificate and a private key in PEM.
    ///
    /// # Errors
    /// If one of them is malformed, or the certificate is not one of a CA or not of this key.
    pub fn parse(certificate: &[u8], key: &[u8]) -> Result<Self, Error> {
        let der = pem::read("CERTIFICATE", certificate);
        let der = der.ok_or_else(|| Error("the CA has no CERTIFICATE block".to_owned()))?;
        let (_, parsed) = X509Certificate::from_der(&der)
            .map_err(|error| Error(format!("the certificate of the CA is malformed: {error}")))?;
        let text = std::str::from_utf8(key)
            .map_err(|error| Error(format!("the key of the CA is no text: {error}")))?;
        let key = KeyPair::from_pem(text)
            .map_err(|error| Error(format!("the key of the CA is malformed: {error}")))?;
        if !parsed.is_ca() {
            return Err(Error("the certificate is not one of a CA".to_owned()));
        }
        if parsed.public_key().subject_public_key.data.as_ref() != key.public_key_raw() {
            let problem = "the private key is not the one of the CA's certificate";
            return Err(Error(problem.to_owned()));
        }
        let key_id = parsed.iter_extensions().find_map(|extension| {
            use x509_parser::extensions::ParsedExtension::SubjectKeyIdentifier;
            match extension.parsed_extension() {
                SubjectKeyIdentifier(id) => Some(id.0.to_owned()),
                _ => None,
            }
        });
        let expires = parsed.validity().not_after.timestamp();
        Ok(Self {
            subject: parsed.subject().as_raw().to_owned(),
            key_id,
            expires: Timestamp::from_second(expires).unwrap_or(Timestamp::MAX),
            key,
        })
    }

    /// Makes an authority. Returns its certificate and private key in PEM.
    ///
    /// # Errors
    /// If there is no randomness.
    pub fn generate(now: Timestamp) -> Result<(String, String), Error> {
        let failed = |error: rcgen::Error| Error(format!("making a CA failed: {error}"));
        let key = KeyPair::generate().map_err(failed)?;
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, "setpoint-cluster-signer");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let today = now.to_zoned(jiff::tz::TimeZone::UTC).date();
        let year = i32::from(today.year());
        // The first day of a month exists in every year.
        let month = today.month().unsigned_abs();
        params.not_before = date_time_ymd(year, month, 1);
        params.not_after = date_time_ymd(year.saturating_add(YEARS), month, 1);
        let certificate = params.self_signed(&key).map_err(failed)?;
        Ok((certificate.pem(), key.serialize_pem()))
    }
}

fn internal(error: impl std::fmt::Display) -> ApiError {
    ApiError::new(Reason::InternalError, error.to_string())
}

fn read(path: &Path) -> Result<Vec<u8>, ApiError> {
    fs::read(path).map_err(|error| internal(format!("reading {}: {error}", path.display())))
}

async fn create(client: &Client) -> Result<Secret, ApiError> {
    let (certificate, key) = Authority::generate(Timestamp::now()).map_err(internal)?;
    let mut secret = Secret {
        r#type: "kubernetes.io/tls".to_owned(),
        ..Secret::default()
    };
    secret.metadata.namespace = NAMESPACE.to_owned();
    secret.metadata.name = NAME.to_owned();
    secret.data.extend([
        (CERTIFICATE.to_owned(), certificate.into_bytes().into()),
        (PRIVATE_KEY.to_owned(), key.into_bytes().into()),
    ]);
    match client.create(&secret).await {
        Err(error) if error.reason == Reason::AlreadyExists => {
            client.get::<Secret>(&Key::new(NAMESPACE, NAME)).await
        }
        created => created?.object(),
    }
}
