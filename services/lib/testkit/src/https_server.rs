//! An HTTPS server whose answers a test chooses, for what calls other servers: webhooks, issuers of tokens.

use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsAcceptor;

/// The answer of a server to a request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// It answers with this JSON.
    Json(String),
    /// It answers with this status and nothing else.
    Status(u16),
    /// It never answers.
    Hang,
}

type Choose = dyn Fn(&str, &[u8]) -> Answer + Send + Sync;

/// A server, until it is dropped.
pub struct HttpsServer {
    address: SocketAddr,
    ca: String,
    requests: Arc<Mutex<Vec<(String, Bytes)>>>,
    runtime: Option<Runtime>,
}

impl Drop for HttpsServer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl HttpsServer {
    /// Starts a server. `choose` gets the path and the body of each request.
    pub fn start(choose: impl Fn(&str, &[u8]) -> Answer + Send + Sync + 'static) -> Self {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let private = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)
            .unwrap();
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::default();
        let state = State {
            choose: Arc::new(choose),
            requests: Arc::clone(&requests),
        };
        runtime.spawn(serve(listener, TlsAcceptor::from(Arc::new(tls)), state));
        Self {
            address,
            ca: certificate.pem(),
            requests,
            runtime: Some(runtime),
        }
    }

    /// Returns the URL of the server, without a path.
    pub fn url(&self) -> String {
        format!("https://localhost:{}", self.address.port())
    }

    /// Returns the certificate that the server is trusted by, in PEM.
    pub fn ca(&self) -> &str {
        &self.ca
    }

    /// Returns the paths and the bodies of all requests so far.
    pub fn requests(&self) -> Vec<(String, Bytes)> {
        self.requests.lock().clone()
    }

    /// Returns a kubeconfig file that names the server, with the path of requests.
    pub fn kubeconfig(&self, path: &str) -> String {
        let ca = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, &self.ca);
        let url = self.url();
        format!(
            "apiVersion: v1
kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: a}}}}]
clusters: [{{name: a, cluster: {{server: '{url}{path}', certificate-authority-data: {ca}}}}}]
"
        )
    }
}

#[derive(Clone)]
struct State {
    choose: Arc<Choose>,
    requests: Arc<Mutex<Vec<(String, Bytes)>>>,
}

async fn serve(listener: std::net::TcpListener, tls: TlsAcceptor, state: State) {
    let listener = TcpListener::from_std(listener).unwrap();
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, state) = (tls.clone(), state.clone());
        tokio::spawn(async move {
            let Ok(stream) = tls.accept(stream).await else {
                return;
            };
            let service = service_fn(move |request| answer(state.clone(), request));
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            let _ = connection.await;
        });
    }
}

async fn answer(
    state: State,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    state.requests.lock().push((path.clone(), body.clone()));
    let (status, body) = match (state.choose)(&path, &body) {
        Answer::Json(json) => (200, json),
        Answer::Status(status) => (status, String::new()),
        Answer::Hang => pending().await,
    };
    let response = Response::builder()
        .status(status)
        .header("content-type", "application/json");
    Ok(response.body(body.into_bytes().into()).unwrap())
}
