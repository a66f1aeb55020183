//! A conversion webhook: an HTTPS server on a loopback port.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::StatusCode;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

/// What the webhook answers to a review.
pub enum Answer {
    /// The objects as [`convert`] converts them.
    Converted,
    /// That, with the response changed.
    Changed(fn(&mut Value)),
    /// An HTTP status and a body.
    Status(u16, &'static str),
    /// A body of this many bytes.
    Large(usize),
    /// Nothing, ever.
    Nothing,
}

/// A webhook. It stops when dropped.
pub struct Webhook {
    /// The port of the listener.
    pub port: u16,
    /// The CA certificate in PEM, in base64.
    pub ca_bundle: String,
    state: Arc<State>,
    _stop: DropGuard,
}

struct State {
    answer: Mutex<Answer>,
    calls: AtomicUsize,
    objects: AtomicUsize,
}

impl Webhook {
    /// Starts a webhook with a certificate for `localhost` and for the Service `webhook` in the namespace `default`.
    pub async fn start() -> Self {
        let (ca_bundle, acceptor) = identity();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State {
            answer: Mutex::new(Answer::Converted),
            calls: AtomicUsize::new(0),
            objects: AtomicUsize::new(0),
        });
        let stop = CancellationToken::new();
        let serving = serve(listener, acceptor, state.clone());
        tokio::spawn(stop.clone().run_until_cancelled_owned(serving));
        Self {
            port,
            ca_bundle,
            state,
            _stop: stop.drop_guard(),
        }
    }

    /// Sets the answer to all further reviews.
    pub fn answer(&self, answer: Answer) {
        *self.state.answer.lock() = answer;
    }

    /// Returns the numbers of reviews and of objects in them since the last call.
    pub fn counts(&self) -> (usize, usize) {
        let take = |count: &AtomicUsize| count.swap(0, Ordering::SeqCst);
        (take(&self.state.calls), take(&self.state.objects))
    }

    /// Returns the client config with its URL.
    pub fn by_url(&self) -> Value {
        let url = format!("https://localhost:{}/convert", self.port);
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

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, state: Arc<State>) {
    let router = Router::new().route(
        "/convert",
        post(move |body: Bytes| {
            let state = state.clone();
            async move { respond(&state, &body).await }
        }),
    );
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

async fn respond(state: &State, body: &[u8]) -> Response {
    let review: Value = serde_json::from_slice(body).unwrap();
    let objects = review["request"]["objects"].as_array().unwrap();
    state.calls.fetch_add(1, Ordering::SeqCst);
    state.objects.fetch_add(objects.len(), Ordering::SeqCst);
    let change = match &*state.answer.lock() {
        Answer::Converted => |_: &mut Value| {},
        Answer::Changed(change) => *change,
        Answer::Status(code, body) => {
            let code = StatusCode::from_u16(*code).unwrap();
            return (code, *body).into_response();
        }
        Answer::Large(bytes) => return Body::from(vec![b' '; *bytes]).into_response(),
        Answer::Nothing => |_: &mut Value| {},
    };
    if matches!(&*state.answer.lock(), Answer::Nothing) {
        return std::future::pending().await;
    }
    let mut answer = converted(&review);
    change(&mut answer);
    answer.to_string().into_response()
}

/// Returns the answer to a review.
fn converted(review: &Value) -> Value {
    let to = review["request"]["desiredAPIVersion"].as_str().unwrap();
    let objects = review["request"]["objects"].as_array().unwrap();
    let converted: Vec<_> = objects.iter().map(|object| convert(object, to)).collect();
    json!({
        "apiVersion": review["apiVersion"],
        "kind": "ConversionReview",
        "response": {
            "uid": review["request"]["uid"],
            "convertedObjects": converted,
            "result": { "status": "Success" },
        },
    })
}

/// Converts `hostPort: "a:1"` to `host: "a"` and `port: "1"`, or back.
fn convert(object: &Value, to: &str) -> Value {
    let mut object = object.clone();
    assert_ne!(object["apiVersion"], to, "it needs no conversion");
    object["apiVersion"] = to.into();
    let fields = object.as_object_mut().unwrap();
    if to.ends_with("/v1") {
        let part = |value: Option<Value>| value.unwrap().as_str().unwrap().to_owned();
        let (host, port) = (part(fields.remove("host")), part(fields.remove("port")));
        fields.insert("hostPort".into(), format!("{host}:{port}").into());
    } else if let Some(both) = fields.remove("hostPort") {
        let (host, port) = both.as_str().unwrap().split_once(':').unwrap();
        fields.insert("host".into(), host.into());
        fields.insert("port".into(), port.into());
    }
    object
}
