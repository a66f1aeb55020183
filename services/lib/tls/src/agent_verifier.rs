//! The verifier of the agent of a node, whose certificate may be one by the signers of CertificateSigningRequests.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

use crate::PeerIdentity;
use crate::current::Current;

type Accepts = dyn Fn(&PeerIdentity) -> bool + Send + Sync;

/// Accepts what is accepted of any server, and certificates by the signers for one address and certain subjects.
pub(crate) struct AgentVerifier {
    current: Arc<Current>,
    address: IpAddr,
    accepts: Box<Accepts>,
}

impl AgentVerifier {
    pub(crate) fn new(
        current: Arc<Current>,
        address: IpAddr,
        accepts: impl Fn(&PeerIdentity) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            current,
            address,
            accepts: Box::new(accepts),
        }
    }

    fn verify_by_signers(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let unknown = || Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let signers = self.current.get().agents.clone().ok_or_else(unknown)?;
        let name = ServerName::IpAddress(self.address.into());
        let verified =
            signers.verify_server_cert(end_entity, intermediates, &name, ocsp_response, now)?;
        let subject = PeerIdentity::parse(end_entity).ok().flatten();
        match subject.is_some_and(|subject| (self.accepts)(&subject)) {
            true => Ok(verified),
            false => Err(Error::InvalidCertificate(
                CertificateError::ApplicationVerificationFailure,
            )),
        }
    }
}

impl fmt::Debug for AgentVerifier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("AgentVerifier");
        debug
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl ServerCertVerifier for AgentVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let usual = self.current.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        let Err(error) = usual else { return usual };
        match self.verify_by_signers(end_entity, intermediates, ocsp_response, now) {
            Err(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => Err(error),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.current
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.current
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.current.supported_verify_schemes()
    }
}
