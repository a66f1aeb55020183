//! The identity of a process, as its files hold it now.

use std::sync::Arc;

use jiff::Timestamp;
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::{ClientConfig, ServerConfig};

use crate::current::{AnyClient, Current};
use crate::files::{Block, Pem};
use crate::follower::Follower;
use crate::material::{Material, Validity};
use crate::{Error, Files, PeerIdentity};

/// The protocols of one port, in the order of preference.
const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// The identity of a process: its certificate and the CAs that it trusts, as the files hold them now. Clones share
/// it.
#[derive(Clone, Debug)]
pub struct Credentials {
    files: Option<Files>,
    current: Arc<Current>,
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl Credentials {
    /// Reads the files.
    ///
    /// # Errors
    /// If one is missing or malformed, or the key is not that of the certificate.
    pub fn load(files: &Files) -> Result<Self, Error> {
        files.validate()?;
        files.warn_of_readers();
        Self::new(&files.read()?, Some(files.clone()))
    }

    /// Returns the credentials of these texts in PEM, which never change.
    ///
    /// # Errors
    /// If one is malformed, or the key is not that of the certificate.
    pub fn from_pem(ca: &str, certificate: &str, key: &str) -> Result<Self, Error> {
        let pem = Pem {
            ca: Block::new("the CA", ca),
            certificate: Block::new("the certificate", certificate),
            key: Block::new("the key", key),
        };
        Self::new(&pem, None)
    }

    fn new(pem: &Pem, files: Option<Files>) -> Result<Self, Error> {
        let current = Arc::new(Current::new(Material::parse(pem)?));
        let unusable = |source| Error::Unusable {
            file: pem.certificate.source.clone(),
            source,
        };
        Ok(Self {
            files,
            server: Arc::new(server(&current).map_err(unusable)?),
            client: Arc::new(client(&current).map_err(unusable)?),
            current,
        })
    }

    /// Reads the files again whenever they have changed, once a second, until the future is dropped. Files that
    /// cannot be used, such as the certificate of a key that is not written yet, change nothing, and are tried again.
    pub async fn follow(self) {
        match self.files.clone() {
            Some(files) => Follower::new(self, files).run().await,
            None => std::future::pending().await,
        }
    }

    /// Returns the settings of a listener: TLS 1.2 and 1.3, HTTP/2 or HTTP/1.1 by ALPN, and a client certificate if
    /// the client has one (see [`Credentials::identify`]). No session is resumed, so that each connection has a whole
    /// handshake, with the certificates and CAs of its time.
    pub fn server(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.server)
    }

    /// Returns the settings of connections: they present the certificate, and trust servers by the CA file only. The
    /// protocol is HTTP/2. No session is resumed.
    pub fn client(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.client)
    }

    /// Returns the settings of connections as [`Credentials::client`] does, for clients of HTTP/1.1.
    pub fn http1_client(&self) -> Arc<ClientConfig> {
        let mut config = (*self.client).clone();
        config.alpn_protocols = vec![HTTP1.to_vec()];
        Arc::new(config)
    }

    /// Returns the identity of a client from the certificates of its handshake, which it has the key of; `None` if
    /// its certificate names no user.
    ///
    /// # Errors
    /// Why the certificate is not accepted: it has expired, is not by a CA that is trusted now, or is not for
    /// clients.
    pub fn identify(&self, chain: &[CertificateDer<'_>]) -> Result<Option<PeerIdentity>, String> {
        let Some((leaf, intermediates)) = chain.split_first() else {
            return Ok(None);
        };
        let current = self.current.get();
        current
            .clients
            .verify_client_cert(leaf, intermediates, UnixTime::now())
            .map_err(|error| format!("verifying the client certificate failed: {error}"))?;
        PeerIdentity::parse(leaf)
    }

    /// Returns the time in which the certificate is valid.
    pub fn validity(&self) -> Validity {
        self.current.get().validity
    }

    /// Returns the time at which the certificate expires.
    pub fn expiry(&self) -> Timestamp {
        self.validity().not_after
    }

    /// Reads the files again, which new handshakes use from now on.
    ///
    /// # Errors
    /// If they cannot be used; then nothing changes.
    pub fn reload(&self) -> Result<(), Error> {
        if let Some(files) = &self.files {
            self.current.set(Material::parse(&files.read()?)?);
        }
        Ok(())
    }
}

fn server(current: &Arc<Current>) -> Result<ServerConfig, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(Arc::new(AnyClient(Arc::clone(current))))
        .with_cert_resolver(Arc::clone(current) as _);
    config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

fn client(current: &Arc<Current>) -> Result<ClientConfig, rustls::Error> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::clone(current) as _)
        .with_client_cert_resolver(Arc::clone(current) as _);
    config.alpn_protocols = vec![HTTP2.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(config)
}
