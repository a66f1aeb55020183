//! An API server of the group `wardle.example.com`.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures::StreamExt as _;
use http::header::{CONNECTION, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION, UPGRADE};
use http::{HeaderMap, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio_stream::wrappers::UnboundedReceiverStream;

use crate::http::https::Server;

pub const GROUP: &str = "wardle.example.com";
pub const VERSION: &str = "/apis/wardle.example.com/v1alpha1";
pub const FLUNDERS: &str = "/apis/wardle.example.com/v1alpha1/namespaces/default/flunders";

/// The discovery that the server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discovery {
    Aggregated,
    List,
    /// All its requests fail.
    Broken,
}

/// The server. It stops when dropped.
pub struct Extension {
    pub server: Server,
    state: Arc<State>,
    /// The watches that are opened: what is sent is streamed.
    pub watches: UnboundedReceiver<UnboundedSender<Bytes>>,
}

struct State {
    discovery: Mutex<Discovery>,
    /// The OpenAPI documents of v2: the last one is served, and its number is the ETag.
    swagger: Mutex<Vec<String>>,
    requests: Mutex<Vec<(String, HeaderMap)>>,
    watches: UnboundedSender<UnboundedSender<Bytes>>,
}

impl Extension {
    /// Starts a server whose clients need a certificate of this CA, if there is one.
    pub async fn start(discovery: Discovery, client_ca: Option<&str>) -> Self {
        let (opened, watches) = mpsc::unbounded_channel();
        let state = Arc::new(State {
            discovery: Mutex::new(discovery),
            swagger: Mutex::default(),
            requests: Mutex::default(),
            watches: opened,
        });
        let shared = state.clone();
        let respond = move |request: Request| {
            let state = shared.clone();
            async move { respond(&state, request).await }
        };
        let router = Router::new().fallback(respond);
        Self {
            server: Server::requiring(router, client_ca).await,
            state,
            watches,
        }
    }

    /// Sets the discovery that the server has from now on.
    pub fn discovers(&self, discovery: Discovery) {
        *self.state.discovery.lock() = discovery;
    }

    /// Sets the OpenAPI document of v2 from now on.
    pub fn documents(&self, swagger: impl ToString) {
        self.state.swagger.lock().push(swagger.to_string());
    }

    /// Returns the ETag of the OpenAPI document of v2.
    pub fn swagger_etag(&self) -> String {
        etag(&self.state.swagger.lock())
    }

    /// Returns the headers of the last request with this path.
    pub fn headers(&self, path: &str) -> HeaderMap {
        let requests = self.state.requests.lock();
        let mut requests = requests.iter().rev();
        let found = requests.find(|(of, _)| of == path);
        found
            .unwrap_or_else(|| panic!("no request of {path}"))
            .1
            .clone()
    }
}

async fn respond(state: &State, mut request: Request) -> Response {
    let (path, headers) = (request.uri().path().to_owned(), request.headers().clone());
    state.requests.lock().push((path.clone(), headers));
    let discovery = *state.discovery.lock();
    if discovery == Discovery::Broken {
        return (StatusCode::INTERNAL_SERVER_ERROR, "broken").into_response();
    }
    let watches = request
        .uri()
        .query()
        .is_some_and(|query| query.contains("watch=true"));
    match path.strip_prefix(FLUNDERS).unwrap_or(&path) {
        "/apis" if discovery == Discovery::Aggregated => aggregated(),
        VERSION => json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "wardle.example.com/v1alpha1", "resources": [flunders()] })
            .to_string()
            .into_response(),
        "/openapi/v3" => json!({ "paths": { &VERSION[1..]: { "serverRelativeURL": "/openapi/v3/apis/wardle.example.com/v1alpha1?hash=A" }, "version": { "serverRelativeURL": "/openapi/v3/version" } } })
            .to_string()
            .into_response(),
        "/openapi/v2" => swagger(state, request.headers()),
        "/openapi/v3/apis/wardle.example.com/v1alpha1" => "{\"openapi\":\"3.0.0\"}".into_response(),
        "" if watches => watch(state),
        "" if request.method() == http::Method::POST => {
            (StatusCode::CREATED, request.into_body()).into_response()
        }
        "" => "{\"kind\":\"FlunderList\",\"items\":[]}".into_response(),
        path if path.starts_with("/moved/") => moved(path),
        "/never" => std::future::pending().await,
        "/a/proxy" => upgrade(&mut request),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Returns the redirect whose code a path ends with.
fn moved(path: &str) -> Response {
    let (_, code) = path.rsplit_once('/').unwrap();
    let code = StatusCode::from_bytes(code.as_bytes()).unwrap();
    (code, [(LOCATION, "https://localhost:1/")]).into_response()
}

fn etag(documents: &[String]) -> String {
    format!("\"{}\"", documents.len())
}

fn swagger(state: &State, headers: &HeaderMap) -> Response {
    let documents = state.swagger.lock();
    let etag = etag(&documents);
    match documents.last() {
        None => StatusCode::NOT_FOUND.into_response(),
        Some(_)
            if headers
                .get(IF_NONE_MATCH)
                .is_some_and(|known| *known == etag) =>
        {
            StatusCode::NOT_MODIFIED.into_response()
        }
        Some(document) => ([(ETAG, etag)], document.clone()).into_response(),
    }
}

fn flunders() -> Value {
    json!({ "name": "flunders", "singularName": "flunder", "namespaced": true, "kind": "Flunder", "verbs": ["get", "list", "watch"], "shortNames": ["fl"] })
}

fn aggregated() -> Response {
    let resource = json!({
        "resource": "flunders", "singularResource": "flunder", "scope": "Namespaced", "shortNames": ["fl"],
        "verbs": ["get", "list", "watch"],
        "responseKind": { "group": GROUP, "version": "v1alpha1", "kind": "Flunder" },
    });
    let version = json!({ "version": "v1alpha1", "freshness": "Current", "resources": [resource] });
    let document = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
        "items": [{ "metadata": { "name": GROUP }, "versions": [version] }],
    });
    let of = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    ([(CONTENT_TYPE, of)], document.to_string()).into_response()
}

fn watch(state: &State) -> Response {
    let (events, sent) = mpsc::unbounded_channel();
    state.watches.send(events).unwrap();
    let events = UnboundedReceiverStream::new(sent).map(Ok::<_, std::convert::Infallible>);
    Body::from_stream(events).into_response()
}

/// Returns whatever it is sent after an upgrade.
fn upgrade(request: &mut Request) -> Response {
    let upgraded = hyper::upgrade::on(request);
    tokio::spawn(async move {
        let mut connection = TokioIo::new(upgraded.await.unwrap());
        let mut sent = [0; 5];
        connection.read_exact(&mut sent).await.unwrap();
        connection.write_all(&sent).await.unwrap();
    });
    let headers = [(CONNECTION, "Upgrade"), (UPGRADE, "echo")];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}
