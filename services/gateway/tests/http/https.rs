//! An HTTPS server on a loopback port.

use std::sync::Arc;

use axum::Router;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
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
    /// Starts a server with a certificate for `localhost` and for the Service `webhook` in the namespace `default`.
    pub async fn start(router: Router) -> Self {
        let (ca_bundle, acceptor) = identity();
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
fn identity() -> (String, TlsAcceptor) {
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = ca.self_signed(&key).unwrap();
    let names = ["localhost", "webhook.default.svc"].map(str::to_owned);
    let own_key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(names).unwrap();
    let own = own.signed_by(&own_key, &Issuer::new(ca, key)).unwrap();
    let own_key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own_key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.der().clone()], own_key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let ca_bundle = BASE64_STANDARD.encode(certificate.pem());
    (ca_bundle, TlsAcceptor::from(Arc::new(config)))
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
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
