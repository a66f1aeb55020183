//! The settings of TLS for one server.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use setpoint_host::unverified_tls;

use super::roots;

/// The servers that are trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust<'a> {
    /// Those with a certificate by a CA bundle in PEM; by the roots of the system if it is blank.
    Bundle(&'a [u8]),
    /// All.
    Any,
}

/// The client certificate that proves this process's identity to a server.
#[derive(Debug)]
pub(crate) struct ClientCertificate {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

/// Returns TLS to the trusted servers, with a client certificate if there is one.
///
/// # Errors
/// If no certificate of the bundle can be used, or the client certificate is not one of its key.
pub(crate) fn config(
    trust: Trust<'_>,
    client: Option<&ClientCertificate>,
) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let verifier = verifier(trust, &provider)?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    match client {
        None => Ok(config.with_no_client_auth()),
        Some(client) => config
            .with_client_auth_cert(client.chain.clone(), client.key.clone_key())
            .map_err(|error| error.to_string()),
    }
}

fn verifier(
    trust: Trust<'_>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, String> {
    Ok(match trust {
        Trust::Bundle(bundle) => Arc::new(roots::verifier(bundle, provider)?),
        Trust::Any => unverified_tls::verifier(provider),
    })
}
