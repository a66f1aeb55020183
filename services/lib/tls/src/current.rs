//! The certificate and the verifiers of each handshake: those of the files as they were read last.

use std::sync::Arc;

use parking_lot::RwLock;
use rustls::client::ResolvesClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use tokio::sync::watch;

use crate::material::Material;

/// The material of new handshakes.
#[derive(Debug)]
pub(crate) struct Current {
    material: RwLock<Arc<Material>>,
    /// Changes with the CAs of clients or of servers.
    trust: watch::Sender<()>,
}

impl Current {
    pub(crate) fn new(material: Material) -> Self {
        Self {
            material: RwLock::new(Arc::new(material)),
            trust: watch::Sender::new(()),
        }
    }

    pub(crate) fn get(&self) -> Arc<Material> {
        Arc::clone(&self.material.read())
    }

    pub(crate) fn set(&self, material: Material) {
        let material = Arc::new(material);
        let before = std::mem::replace(&mut *self.material.write(), Arc::clone(&material));
        if before.client_authorities != material.client_authorities
            || before.authorities != material.authorities
        {
            self.trust.send_replace(());
        }
    }

    /// Returns a signal of changes of the CAs of clients or of servers.
    pub(crate) fn trust(&self) -> watch::Receiver<()> {
        self.trust.subscribe()
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.get().serving.clone()
    }
}

impl ResolvesClientCert for Current {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.get().key))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

impl ServerCertVerifier for Current {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.get().servers.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        )
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.get()
            .servers
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.get()
            .servers
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.get().servers.supported_verify_schemes()
    }
}

/// Asks for a client certificate and checks that the client has its key. By which CA it is, is decided after the
/// handshake: a request with a token, too, may be answered.
#[derive(Debug)]
pub(crate) struct AnyClient(pub(crate) Arc<Current>);

impl ClientCertVerifier for AnyClient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0
            .get()
            .clients
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0
            .get()
            .clients
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.get().clients.supported_verify_schemes()
    }
}
