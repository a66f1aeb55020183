//! The certificate authority: from files, or made once and kept in a Secret.

use std::fs;
use std::path::Path;

use jiff::Timestamp;
use setpoint_controller::Client;
use setpoint_model::Key;
use setpoint_proto::core::Secret;
use setpoint_proto::{ApiError, Reason};
use setpoint_tls::authority as tls;

use crate::Signing;

const NAMESPACE: &str = "setpoint-system";
const NAME: &str = "cluster-signer";
const CERTIFICATE: &str = "tls.crt";
const PRIVATE_KEY: &str = "tls.key";

/// The common name of a CA that is made here.
const SUBJECT: &str = "setpoint-cluster-signer";

/// A certificate authority.
pub struct Authority(pub(crate) tls::Authority);

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
    pub fn parse(certificate: &[u8], key: &[u8]) -> Result<Self, setpoint_tls::Error> {
        tls::Authority::from_pem(certificate, key).map(Self)
    }

    /// Makes an authority. Returns its certificate and private key in PEM.
    ///
    /// # Errors
    /// If there is no randomness.
    pub fn generate(now: Timestamp) -> Result<(String, String), setpoint_tls::Error> {
        let made = tls::Authority::create_at(SUBJECT, now)?;
        Ok((made.certificate().to_owned(), made.key()))
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
