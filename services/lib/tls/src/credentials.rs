//! The identity of a process, as its files hold it now.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::{ClientConfig, ServerConfig};
use tokio::sync::watch;

use crate::agent_verifier::AgentVerifier;
use crate::client_authorities::ClientAuthorities;
use crate::current::{AnyClient, Current};
use crate::files::{Block, Pem, Serving, ServingFiles, Stamp};
use crate::follower::Follower;
use crate::material::{Material, Validity};
use crate::{Error, Files, PeerIdentity, pin};

/// The protocols of one port, in the order of preference.
const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// The identity of a process: its certificate and the CAs that it trusts, as the files hold them now. Clones share
/// it.
#[derive(Clone, Debug)]
pub struct Credentials {
    source: Arc<Source>,
    client_authorities: Arc<ClientAuthorities>,
    current: Arc<Current>,
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

/// The source of credentials.
enum Source {
    Files(Files, Option<ServingFiles>),
    Texts(Pem),
}

impl Source {
    fn read(&self) -> Result<Pem, Error> {
        match self {
            Self::Files(files, None) => files.read(),
            Self::Files(files, Some(serving)) => Ok(Pem {
                serving: Serving::Other(serving.read()?),
                ..files.read()?
            }),
            Self::Texts(pem) => Ok(pem.clone()),
        }
    }
}

/// Without texts: one of them is a private key.
impl fmt::Debug for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(files, _) => files.fmt(formatter),
            Self::Texts(_) => formatter.write_str("texts"),
        }
    }
}

impl Credentials {
    /// Reads the files.
    ///
    /// # Errors
    /// If one is missing or malformed, or the key is not that of the certificate.
    pub fn load(files: &Files) -> Result<Self, Error> {
        files.validate()?;
        files.warn_of_readers();
        Self::new(Source::Files(files.clone(), None))
    }

    /// Reads the files of a process that serves with another certificate, which may come later.
    ///
    /// # Errors
    /// Those of [`Self::load`].
    pub fn load_with_serving(files: &Files, serving: &ServingFiles) -> Result<Self, Error> {
        files.validate()?;
        files.warn_of_readers();
        Self::new(Source::Files(files.clone(), Some(serving.clone())))
    }

    /// Returns the credentials of these texts in PEM, which never change. The CAs of clients may.
    ///
    /// # Errors
    /// If one is malformed, or the key is not that of the certificate.
    pub fn from_pem(ca: &str, certificate: &str, key: &str) -> Result<Self, Error> {
        let ca = Block::new("the CA", ca);
        Self::new(Source::Texts(Pem {
            clients: vec![ca.clone()],
            ca,
            certificate: Block::new("the certificate", certificate),
            key: Block::new("the key", key),
            serving: Serving::Own,
            signers: None,
        }))
    }

    fn new(source: Source) -> Result<Self, Error> {
        let pem = source.read()?;
        let current = Arc::new(Current::new(Material::parse(&pem)?));
        let unusable = |source| Error::Unusable {
            file: pem.certificate.source.clone(),
            source,
        };
        Ok(Self {
            source: Arc::new(source),
            client_authorities: Arc::default(),
            server: Arc::new(server(&current).map_err(unusable)?),
            client: Arc::new(client(&current).map_err(unusable)?),
            current,
        })
    }

    /// Reads the files again whenever they have changed, once a second, until the future is dropped. Files that
    /// cannot be used, such as the certificate of a key that is not written yet, change nothing, and are tried again.
    pub async fn follow(self) {
        match &*Arc::clone(&self.source) {
            Source::Files(files, _) => Follower::new(self, files.clone()).run().await,
            Source::Texts(_) => std::future::pending().await,
        }
    }

    /// Knows clients by the CAs of this file, instead of those that are trusted for servers. It is read again with the
    /// others.
    ///
    /// # Errors
    /// If it cannot be read or is malformed; then nothing changes.
    pub fn know_clients_by(&self, ca_file: PathBuf) -> Result<(), Error> {
        let authorities = &self.client_authorities;
        authorities.read_from(ca_file, || self.reload())
    }

    /// Knows clients by these CAs in PEM, too, instead of those of an earlier call; empty for none.
    ///
    /// # Errors
    /// If they are malformed; then nothing changes.
    pub fn also_know_clients_by(&self, bundle: &str) -> Result<(), Error> {
        self.client_authorities.add(bundle, || self.reload())
    }

    /// Returns what changes with the content of the file of [`Self::know_clients_by`], and with the files of the
    /// serving certificate.
    pub(crate) fn further_stamps(&self) -> [Option<Stamp>; 3] {
        let serving = match &*self.source {
            Source::Files(_, Some(serving)) => serving.stamps(),
            _ => [None, None],
        };
        let [certificate, key] = serving;
        [self.client_authorities.stamp(), certificate, key]
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

    /// Returns the settings of connections to an agent at an address: as those of [`Credentials::client`], and its
    /// certificate may also be one by the CAs of [`Credentials::also_know_clients_by`] for this address, if `accepts`
    /// returns true for its subject. No other server is accepted by these CAs.
    pub fn client_of_agent(
        &self,
        address: IpAddr,
        accepts: impl Fn(&PeerIdentity) -> bool + Send + Sync + 'static,
    ) -> ClientConfig {
        let mut config = (*self.client).clone();
        let verifier = AgentVerifier::new(Arc::clone(&self.current), address, accepts);
        let mut dangerous = config.dangerous();
        dangerous.set_certificate_verifier(Arc::new(verifier));
        config
    }

    /// Returns the identity of a client from the certificates of its handshake, which it has the key of; `None` if
    /// its certificate names no user.
    ///
    /// # Errors
    /// Why the certificate is not accepted: it has expired, is not by a CA that is trusted now, or is not for
    /// clients.
    pub fn identify(&self, chain: &[CertificateDer<'_>]) -> Result<Option<PeerIdentity>, String> {
        let Some(leaf) = chain.first() else {
            return Ok(None);
        };
        self.verify_client(chain, UnixTime::now())?;
        PeerIdentity::parse(leaf)
    }

    fn verify_client(&self, chain: &[CertificateDer<'_>], at: UnixTime) -> Result<(), String> {
        let Some((leaf, intermediates)) = chain.split_first() else {
            return Ok(());
        };
        let current = self.current.get();
        let verified = current.clients.verify_client_cert(leaf, intermediates, at);
        verified
            .map(drop)
            .map_err(|error| format!("verifying the client certificate failed: {error}"))
    }

    /// Waits until the certificates of a client, which are accepted now, are by no CA of clients any more. Returns why.
    /// It does not end when they expire.
    pub fn distrusted(
        &self,
        chain: Vec<CertificateDer<'static>>,
    ) -> impl Future<Output = String> + Send + use<> {
        let (credentials, accepted, mut trust) =
            (self.clone(), UnixTime::now(), self.current.trust());
        async move {
            loop {
                if let Err(reason) = credentials.verify_client(&chain, accepted) {
                    return reason;
                }
                // The sender is in the credentials.
                let _ = trust.changed().await;
            }
        }
    }

    /// Waits until the certificates of a client, which are not accepted now, are: their CA has become known.
    pub fn trusted(
        &self,
        chain: Vec<CertificateDer<'static>>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (credentials, mut trust) = (self.clone(), self.current.trust());
        async move {
            while credentials.verify_client(&chain, UnixTime::now()).is_err() {
                // The sender is in the credentials.
                let _ = trust.changed().await;
            }
        }
    }

    /// Returns the certificates of the CAs that are trusted for servers, in PEM. Nothing else that their file holds is
    /// in it.
    pub fn authorities(&self) -> String {
        pin::in_pem(&self.current.get().authorities)
    }

    /// Returns the CAs by which clients are known now, in PEM, each once.
    pub fn client_authorities(&self) -> String {
        let material = self.current.get();
        let mut once: Vec<&CertificateDer<'static>> = Vec::new();
        for authority in &material.client_authorities {
            if !once.contains(&authority) {
                once.push(authority);
            }
        }
        pin::in_pem(once)
    }

    /// Returns a signal of changes of the CAs. It ends with the last clone of the credentials.
    pub fn authority_changes(&self) -> watch::Receiver<()> {
        self.current.trust()
    }

    /// Returns the time in which the certificate is valid.
    pub fn validity(&self) -> Validity {
        self.current.get().validity
    }

    /// Returns the time in which the certificate for clients is valid, if that is another one and exists.
    pub fn serving_validity(&self) -> Option<Validity> {
        self.current.get().serving_validity
    }

    /// Returns the validity of the CA that is trusted for servers and expires first.
    pub fn ca_validity(&self) -> Validity {
        self.current.get().ca_validity
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
        let pem = self.client_authorities.of(self.source.read()?)?;
        self.current.set(Material::parse(&pem)?);
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
