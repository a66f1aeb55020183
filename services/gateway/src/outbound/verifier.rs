//! Verifies the certificate of a server.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use std::sync::Arc;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;
use x509_parser::time::ASN1Time;

/// Verifies by the certificates of a CA bundle. As in Go, a server may also present one of them itself: self-signed
/// certificates are common, and many of them claim to be of a CA, which is refused otherwise.
#[derive(Debug)]
pub(super) struct Verifier {
    by_chain: Arc<WebPkiServerVerifier>,
    bundle: Vec<CertificateDer<'static>>,
}

impl Verifier {
    pub(super) const fn new(
        by_chain: Arc<WebPkiServerVerifier>,
        bundle: Vec<CertificateDer<'static>>,
    ) -> Self {
        Self { by_chain, bundle }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if !self.bundle.iter().any(|trusted| trusted == end_entity) {
            let chain = &self.by_chain;
            return chain.verify_server_cert(
                end_entity,
                intermediates,
                server_name,
                ocsp_response,
                now,
            );
        }
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        match is_valid_at(end_entity, now) {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(CertificateError::Expired.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_chain
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_chain
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_chain.supported_verify_schemes()
    }
}

fn is_valid_at(certificate: &[u8], now: UnixTime) -> bool {
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let at = ASN1Time::from_timestamp(seconds);
    match (X509Certificate::from_der(certificate), at) {
        (Ok((_, certificate)), Ok(at)) => certificate.validity().is_valid_at(at),
        _ => false,
    }
}
