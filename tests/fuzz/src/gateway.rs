//! A gateway on an in-memory store, in this thread and in paused time.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::Value;
use setpoint_codec::{Kind, kinds};
use setpoint_gateway::in_process;
use setpoint_gateway::registry::Registry;
use setpoint_store::cache::Settings;
use setpoint_store::contract::FaultyStore;
use setpoint_store::{Memory, Store};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::example;

/// The time for which responses are read, in paused time: longer than a few bookmarks of a watch.
const ANSWER: Duration = Duration::from_secs(35);

/// The namespace that every gateway has.
pub const NAMESPACE: &str = "default";

/// A gateway.
pub struct Gateway {
    runtime: Runtime,
    router: Router,
    registry: Arc<Registry>,
    store: Memory,
}

/// A response, read for a limited time.
#[derive(Debug)]
pub struct Reply {
    pub code: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Gateway {
    /// Starts a gateway with only the namespace [`NAMESPACE`] and its ServiceAccount.
    pub fn start() -> Self {
        Self::on(|store| store)
    }

    /// As [`start`](Self::start), on a store whose answers to writes are lost, doubled or late.
    pub fn with_lost_answers() -> Self {
        Self::on(|store| {
            let store = FaultyStore::new(store);
            store.lose_double_and_delay_answers();
            store
        })
    }

    fn on(faults: fn(Arc<dyn Store>) -> Arc<dyn Store>) -> Self {
        let mut runtime = Builder::new_current_thread();
        let runtime = runtime
            .enable_all()
            .start_paused(true)
            .build()
            .expect("the runtime can be built");
        let store = Memory::default();
        let registry = runtime.block_on(async {
            in_process::registry(faults(Arc::new(store.clone())), Settings::default()).await
        });
        let router = in_process::router(registry.clone());
        let gateway = Self {
            runtime,
            router,
            registry,
            store,
        };
        let kind = kinds().by_kind("v1", "Namespace").expect("the kind exists");
        gateway.create(kind, NAMESPACE);
        let account = kinds().by_kind("v1", "ServiceAccount");
        gateway.create(account.expect("the kind exists"), "default");
        gateway
    }

    /// Starts a gateway with an example of each kind, named `web`.
    pub fn with_examples() -> Self {
        let gateway = Self::start();
        for kind in kinds().iter() {
            gateway.create(kind, "web");
        }
        gateway
    }

    /// Creates the example of a kind.
    pub fn create(&self, kind: &Kind, name: &str) {
        let body = example::document(kind, name).to_string();
        let request = json_request(Method::POST, &collection(kind, NAMESPACE), body);
        let reply = self.send(request);
        assert_eq!(reply.code, StatusCode::CREATED, "{reply:?}");
    }

    /// Sends a request and reads the response. A response 5xx is a defect.
    pub fn send(&self, request: Request<Body>) -> Reply {
        let reply = self.runtime.block_on(async {
            let (parts, mut body) = self.open(request).await.into_parts();
            let mut read = Vec::new();
            let all = async {
                while let Some(frame) = body.frame().await {
                    let frame = frame.expect("bodies of responses do not fail");
                    read.extend(frame.into_data().unwrap_or_default());
                }
            };
            // A watch does not end.
            let _ = timeout(ANSWER, all).await;
            Reply {
                code: parts.status,
                headers: parts.headers,
                body: read.into(),
            }
        });
        reply.check();
        reply
    }

    /// Sends a request and returns the response before its body is read.
    pub async fn open(&self, request: Request<Body>) -> http::Response<Body> {
        self.router
            .clone()
            .oneshot(request)
            .await
            .expect("a router does not fail")
    }

    /// Runs a future among the gateway's tasks.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Returns the revision of the store, which each write increments.
    pub fn revision(&self) -> u64 {
        let revision = self.runtime.block_on(self.store.revision());
        revision.expect("reads of the memory store succeed").raw()
    }

    /// Runs the background tasks for a period of paused time.
    pub fn run_background_for(&self, time: Duration) {
        let registry = self.registry.clone();
        self.runtime.block_on(async {
            let background = registry.run_background(time, CancellationToken::new(), |_| |_| ());
            let _ = timeout(time, background).await;
        });
    }
}

impl Reply {
    /// Returns the body as JSON.
    pub fn json(&self) -> Option<Value> {
        let is_json = self
            .headers
            .get(CONTENT_TYPE)?
            .as_bytes()
            .starts_with(b"application/json");
        is_json.then(|| serde_json::from_slice(&self.body).ok())?
    }

    fn check(&self) {
        let status = self
            .json()
            .filter(|body| body["kind"] == "Status")
            .unwrap_or_default();
        let message = status["message"].as_str().unwrap_or_default();
        // The responses to a request for a future revision, and to one for which a webhook of the input cannot be
        // called.
        let in_vain = status["reason"] == "Timeout" || message.contains("failed calling webhook");
        assert!(
            !self.code.is_server_error() || in_vain,
            "{}: {status}",
            self.code
        );
        if self.code.is_client_error() && !self.body.is_empty() {
            assert_eq!(status["code"], self.code.as_u16(), "{self:?}");
        }
    }
}

/// Returns the path of the objects of a kind.
pub fn collection(kind: &Kind, namespace: &str) -> String {
    let Kind {
        group,
        version,
        plural,
        ..
    } = kind;
    let start = match group.as_str() {
        "" => format!("/api/{version}"),
        group => format!("/apis/{group}/{version}"),
    };
    match kind.namespaced && !namespace.is_empty() {
        true => format!("{start}/namespaces/{namespace}/{plural}"),
        false => format!("{start}/{plural}"),
    }
}

/// Returns a request with a JSON body.
pub fn json_request(method: Method, path: &str, body: String) -> Request<Body> {
    let request = Request::builder().method(method).uri(path);
    let request = request.header(CONTENT_TYPE, "application/json");
    request.body(body.into()).expect("the path is valid")
}
