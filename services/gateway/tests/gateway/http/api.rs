//! A client of a gateway in the same process.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::request::Builder;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use setpoint_gateway::in_process;
use setpoint_gateway::registry::Registry;
use setpoint_store::cache;
use setpoint_store::{Memory, Store};
use setpoint_tls::Credentials;
use tokio_util::sync::{CancellationToken, DropGuard};
use tower::ServiceExt as _;

/// The collection of most tests.
pub const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";
/// The collection of a kind with a spec, a status and a scale.
pub const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
/// The media type of Kubernetes' protobuf encoding.
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A TTL of Events that is longer than any test.
const HOUR: Duration = Duration::from_secs(3600);

/// A gateway.
pub struct Api {
    router: Router,
    registry: Arc<Registry>,
}

/// A response with its body.
#[derive(Debug)]
pub struct Reply {
    pub code: StatusCode,
    pub headers: HeaderMap,
    pub body: bytes::Bytes,
}

impl Reply {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Asserts the code and reason of an error. Returns its message.
    #[track_caller]
    pub fn refused(&self, code: u16, reason: &str) -> String {
        let status = self.json();
        assert_eq!(self.code, code, "{status}");
        assert_eq!(status["kind"], "Status");
        assert_eq!(status["apiVersion"], "v1");
        assert_eq!(status["status"], "Failure");
        assert_eq!(status["code"], code);
        assert_eq!(status["reason"], reason, "{status}");
        status["message"].as_str().unwrap().to_owned()
    }

    /// Asserts success. Returns the body.
    #[track_caller]
    pub fn ok(&self) -> Value {
        assert!(
            self.code.is_success(),
            "{}",
            String::from_utf8_lossy(&self.body)
        );
        self.json()
    }
}

impl Api {
    /// Starts a gateway with the namespace `default`.
    pub async fn start() -> Self {
        Self::with(cache::Settings::default()).await
    }

    /// Like [`Self::start`], with these settings of the cache.
    pub async fn with(settings: cache::Settings) -> Self {
        let registry = in_process::registry(Arc::new(Memory::default()), settings).await;
        Self::over(registry).await
    }

    /// Like [`Self::start`], over a registry.
    pub async fn over(registry: Arc<Registry>) -> Self {
        let api = Self::of(registry);
        let namespace = json!({ "metadata": { "name": "default" } });
        api.post("/api/v1/namespaces", namespace).await.ok();
        let account = json!({ "metadata": { "name": "default" } });
        let accounts = "/api/v1/namespaces/default/serviceaccounts";
        api.post(accounts, account).await.ok();
        api
    }

    /// Starts a gateway over a store that others may share.
    pub async fn sharing(store: Arc<dyn Store>) -> Self {
        Self::of(in_process::registry(store, cache::Settings::default()).await)
    }

    /// Starts a gateway over a store that it may not have read yet.
    pub fn loading(store: Arc<dyn Store>, settings: cache::Settings) -> Self {
        Self::of(in_process::loading(store, settings))
    }

    /// Starts a gateway over a registry, without any objects.
    pub fn of(registry: Arc<Registry>) -> Self {
        let router = in_process::router(registry.clone());
        Self { router, registry }
    }

    /// Serves the gateway on a loopback port, for connections that are upgraded.
    pub async fn listen(&self) -> in_process::InProcess {
        in_process::serve(self.registry.clone()).await
    }

    /// Runs the background tasks until the guard is dropped.
    pub fn run_background(&self) -> DropGuard {
        let stop = CancellationToken::new();
        let registry = self.registry.clone();
        tokio::spawn(registry.run_background(HOUR, stop.clone(), |_| |_| ()));
        stop.drop_guard()
    }

    /// Publishes the address and the CAs of the cluster until the guard is dropped.
    pub fn publish(&self, credentials: Credentials, server: &'static str) -> DropGuard {
        let stop = CancellationToken::new();
        let (registry, stopped) = (self.registry.clone(), stop.clone());
        tokio::spawn(async move {
            let published = registry.publish_cluster_info(Some(credentials), server);
            stopped.run_until_cancelled(published).await
        });
        stop.drop_guard()
    }

    /// Reads an object until it is as wanted, for a minute at most. Returns it.
    pub async fn eventually(&self, path: &str, wanted: impl Fn(&Reply) -> bool) -> Reply {
        for _ in 0..3000 {
            let reply = self.get(path).await;
            if wanted(&reply) {
                return reply;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{path} stays as it is: {:?}", self.get(path).await);
    }

    /// Sends a request. Returns the response without waiting for its body.
    pub async fn open(&self, request: Builder, body: impl Into<Body>) -> http::Response<Body> {
        let request = request.body(body.into()).unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }

    /// Sends a request. Returns the response with its body.
    pub async fn send(&self, request: Builder, body: impl Into<Body>) -> Reply {
        let (parts, body) = self.open(request, body).await.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Reply {
            code: parts.status,
            headers: parts.headers,
            body,
        }
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send(Request::get(path), Body::empty()).await
    }

    pub async fn get_as(&self, path: &str, accept: &str) -> Reply {
        self.send(Request::get(path).header(ACCEPT, accept), Body::empty())
            .await
    }

    pub async fn post(&self, path: &str, body: Value) -> Reply {
        let request = Request::post(path).header(CONTENT_TYPE, "application/json");
        self.send(request, body.to_string()).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Reply {
        let request = Request::put(path).header(CONTENT_TYPE, "application/json");
        self.send(request, body.to_string()).await
    }

    pub async fn patch(&self, path: &str, of: &str, body: Value) -> Reply {
        let of = format!("application/{of}");
        self.send(
            Request::patch(path).header(CONTENT_TYPE, of),
            body.to_string(),
        )
        .await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        self.send(Request::delete(path), Body::empty()).await
    }

    /// Creates a ConfigMap.
    pub async fn configmap(&self, name: &str) -> Value {
        self.post(CONFIGMAPS, configmap(name)).await.ok()
    }
}

/// Replaces a file as a whole: one that is written in place can be read before it is complete.
pub fn replace(path: &Path, text: impl AsRef<[u8]>) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, path).unwrap();
}

pub fn configmap(name: &str) -> Value {
    json!({ "metadata": { "name": name, "labels": { "name": name } }, "data": { "a": "b" } })
}

pub fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name },
        "spec": {
            "replicas": 3,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "web", "image": "nginx:1.25" }] },
            },
        },
    })
}
