//! An HTTPS server on a loopback port.

use std::sync::Arc;

use axum::Router;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A server. It stops when dropped.
pub struct Server {
    /// The port of the listener.
    pub port: u16,
    /// The CA certificate in PEM, in base64.
    pub ca_bundle: String,
    _stop: DropGuard,
}

impl Server {
    /// Starts a server with a certificate for `localhost` and for the Services `webhook` and `extension` in the
    /// namespace `default`.
    pub async fn start(router: Router) -> Self {
        Self::requiring(router, None).await
    }

    /// Like [`Self::start`]. Clients need a certificate of this CA in PEM, if there is one.
    pub async fn requiring(router: Router, client_ca: Option<&str>) -> Self {
        let (ca_bundle, acceptor) = identity(client_ca);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let stop = CancellationToken::new();
        let serving = serve(listener, acceptor, router);
        tokio::spawn(stop.clone().run_until_cancelled_owned(serving));
        Self {
            port,
            ca_bundle,
            _stop: stop.drop_guard(),
        }
    }

    /// Returns the client config with the URL of a path.
    pub fn by_url(&self, path: &str) -> Value {
        let url = format!("https://localhost:{}/{path}", self.port);
        json!({ "url": url, "caBundle": self.ca_bundle })
    }
}

/// Returns a CA certificate in PEM, in base64, and an acceptor with a certificate of that CA.
fn identity(client_ca: Option<&str>) -> (String, TlsAcceptor) {
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = ca.self_signed(&key).unwrap();
    let names = ["localhost", "webhook.default.svc", "extension.default.svc"];
    let names = names.map(str::to_owned);
    let own_key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(names).unwrap();
    let own = own.signed_by(&own_key, &Issuer::new(ca, key)).unwrap();
    let own_key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own_key.serialize_der()));
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap();
    let mut config = match client_ca {
        None => builder.with_no_client_auth(),
        Some(ca) => builder.with_client_cert_verifier(clients_of(ca, provider)),
    }
    .with_single_cert(vec![own.der().clone()], own_key)
    .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let ca_bundle = BASE64_STANDARD.encode(certificate.pem());
    (ca_bundle, TlsAcceptor::from(Arc::new(config)))
}

/// Returns the verifier of clients with certificates of a CA.
fn clients_of(ca: &str, provider: Arc<CryptoProvider>) -> Arc<dyn ClientCertVerifier> {
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_slice(ca.as_bytes()).unwrap();
    roots.add(ca).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    verifier.build().unwrap()
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, router: Router) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(connection(stream, acceptor.clone(), router.clone()));
    }
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, router: Router) {
    // A client that does not trust the certificate closes the connection.
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let builder = auto::Builder::new(TokioExecutor::new());
    let service = TowerToHyperService::new(router);
    let _ = builder
        .serve_connection_with_upgrades(TokioIo::new(stream), service)
        .await;
}
