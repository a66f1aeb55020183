//! Measures the creates of a normal user beside a hostile one of the same priority level, and without it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use axum::http::{Method, Request, StatusCode, header};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use setpoint_tests::{Address, Cluster};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::load;
use crate::report::Report;

/// The clients of the hostile user, and the connections that they share.
const CLIENTS: usize = 2000;
const CONNECTIONS: usize = 20;
const WATCHES: usize = 1000;
/// The objects that it lists, of 1 KB each.
const LISTED: usize = 500;
/// The time for which a rejected client of the hostile user rests: less than it is told.
const REST: Duration = Duration::from_millis(50);
const CALLERS: usize = 4;

/// Those that the hostile user lists and watches.
const LISTED_MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Those of the normal user. Another namespace, so that the lists stay as large as they are.
const CREATED_MAPS: &str = "/api/v1/namespaces/jane/configmaps";
const NAMESPACES: &str = "/api/v1/namespaces";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

type Connection = SendRequest<Full<Bytes>>;

/// A connection as one user.
#[derive(Clone)]
struct User {
    connection: Connection,
    url: String,
    name: Option<&'static str>,
}

impl User {
    async fn connect(gateway: &Address, name: Option<&'static str>) -> anyhow::Result<Self> {
        let io = TokioIo::new(gateway.connect_http2().await?);
        let (connection, driver) = http2::handshake(TokioExecutor::new(), io).await?;
        tokio::spawn(driver);
        Ok(Self {
            connection,
            url: gateway.to_string(),
            name,
        })
    }

    /// Sends a request, and reads the response to its end.
    async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: Value,
    ) -> anyhow::Result<StatusCode> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(name) = self.name {
            request = request
                .header("impersonate-user", name)
                .header("impersonate-group", "tenants")
                .header("impersonate-group", "system:authenticated");
        }
        let body = if body.is_null() {
            Bytes::new()
        } else {
            body.to_string().into()
        };
        self.connection.ready().await?;
        let response = self.connection.send_request(request.body(Full::new(body))?);
        let response = response.await?;
        let status = response.status();
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            frame?;
        }
        Ok(status)
    }
}

/// Reports both latencies and their ratio, and what the hostile user got.
pub async fn measure(report: &mut Report, seconds: f64) -> anyhow::Result<()> {
    let cluster = Cluster::bare();
    let url = cluster.gateway_url();
    prepare(&url).await?;
    let alone = creates(&url, seconds).await?;
    let attack = Attack::begin(&url).await?;
    let beside = creates(&url, seconds).await?;
    let (served, rejected) = attack.end().await;
    anyhow::ensure!(
        rejected > 0,
        "the hostile user was not bounded: it was no load"
    );
    for (what, load) in [("alone", &alone), ("beside a hostile user", &beside)] {
        report.add(format!("creates of a user {what}"), load.rate, "/s");
        let p99 = load.percentile(0.99);
        report.add(format!("creates of a user {what}, p99"), p99, "ms");
    }
    let ratio = beside.percentile(0.99) / alone.percentile(0.99);
    report.add("p99 beside a hostile user ÷ alone", ratio, "");
    report.add("requests of the hostile user, served", served as f64, "");
    report.add(
        "requests of the hostile user, rejected",
        rejected as f64,
        "",
    );
    Ok(())
}

/// Lets tenants do anything, and creates what is listed.
async fn prepare(url: &Address) -> anyhow::Result<()> {
    let mut admin = User::connect(url, None).await?;
    let binding = json!({
        "metadata": { "name": "tenants" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "tenants" }],
    });
    let namespace = json!({ "metadata": { "name": "jane" } });
    for (path, object) in [(BINDINGS, binding), (NAMESPACES, namespace)] {
        let status = admin.send(Method::POST, path, object).await?;
        anyhow::ensure!(status.is_success(), "{path}: {status}");
    }
    for _ in 0..LISTED {
        admin.send(Method::POST, LISTED_MAPS, config_map()).await?;
    }
    Ok(())
}

/// Creates objects as the normal user, each of which must succeed.
async fn creates(url: &Address, seconds: f64) -> anyhow::Result<load::Load> {
    let jane = User::connect(url, Some("jane")).await?;
    load::run(CALLERS, seconds, move |_, _| {
        let mut jane = jane.clone();
        Box::pin(async move {
            let status = jane.send(Method::POST, CREATED_MAPS, config_map()).await?;
            anyhow::ensure!(status.is_success(), "the normal user got {status}");
            Ok(())
        })
    })
    .await
}

/// The clients of the hostile user.
struct Attack {
    counts: Arc<Counts>,
    clients: JoinSet<()>,
}

#[derive(Default)]
struct Counts {
    is_over: AtomicBool,
    served: AtomicU64,
    rejected: AtomicU64,
}

impl Attack {
    async fn begin(url: &Address) -> anyhow::Result<Self> {
        let counts = Arc::new(Counts::default());
        let mut clients = JoinSet::new();
        for _ in 0..CONNECTIONS {
            let mallory = User::connect(url, Some("mallory")).await?;
            for _ in 0..CLIENTS / CONNECTIONS {
                clients.spawn(lists(mallory.clone(), counts.clone()));
            }
            for _ in 0..WATCHES / CONNECTIONS {
                clients.spawn(watches(mallory.clone(), counts.clone()));
            }
        }
        while counts.served.load(Ordering::Relaxed) == 0 {
            sleep(REST).await;
        }
        Ok(Self { counts, clients })
    }

    /// Returns how many requests were served, and how many rejected.
    async fn end(mut self) -> (u64, u64) {
        self.counts.is_over.store(true, Ordering::Relaxed);
        self.clients.shutdown().await;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.counts.served), count(&self.counts.rejected))
    }
}

async fn lists(mut user: User, counts: Arc<Counts>) {
    while !counts.is_over.load(Ordering::Relaxed) {
        match user.send(Method::GET, LISTED_MAPS, Value::Null).await {
            Ok(StatusCode::OK) => {
                counts.served.fetch_add(1, Ordering::Relaxed);
            }
            Ok(_) => {
                counts.rejected.fetch_add(1, Ordering::Relaxed);
                sleep(REST).await;
            }
            Err(_) => return,
        }
    }
}

/// Keeps a watch open, which reads all changes. It is begun again when it ends or is rejected.
async fn watches(mut user: User, counts: Arc<Counts>) {
    let path = format!("{LISTED_MAPS}?watch=true");
    while !counts.is_over.load(Ordering::Relaxed) {
        if user.send(Method::GET, &path, Value::Null).await.is_err() {
            return;
        }
        sleep(REST).await;
    }
}

/// Returns a ConfigMap of 1 KB whose name the gateway chooses.
fn config_map() -> Value {
    json!({ "metadata": { "generateName": "hostile-" }, "data": { "data": "x".repeat(1024) } })
}
