//! The user's requests: JSON over HTTP, repeated until a gateway has acknowledged them.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};
use setpoint_host::http_client::{self, Answer};
use setpoint_tests::Address;
use tokio::time::{sleep, timeout};

use crate::user::Action;
use crate::workload::{NAMESPACES, SLICE, Workload, collection};

/// Time limit of one request. A frozen gateway answers none.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Time until a request must have been acknowledged: longer than any fault, on a busy machine.
const ACKNOWLEDGED: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(200);
/// What an orphaning deletion leaves.
const DEPENDANTS: [(&str, &str); 4] = [
    ("apps/v1", "replicasets"),
    ("batch/v1", "jobs"),
    ("apps/v1", "controllerrevisions"),
    ("v1", "pods"),
];

/// A client of all gateways.
#[derive(Clone)]
pub struct Api {
    gateways: Vec<Address>,
}

impl Api {
    /// Returns a client of these gateways.
    pub fn new(gateways: &Address) -> Self {
        Self {
            gateways: gateways.each(),
        }
    }

    /// Returns the addresses of the gateways.
    pub fn gateways(&self) -> &[Address] {
        &self.gateways
    }

    /// Creates the namespaces and labels the nodes with their slices.
    pub async fn prepare(&self, nodes: &[String], slices: usize) -> anyhow::Result<()> {
        for namespace in NAMESPACES {
            let object =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            self.create("/api/v1/namespaces", &object).await?;
        }
        for (n, node) in nodes.iter().enumerate() {
            let label = json!({"metadata": {"labels": {SLICE: (n % slices).to_string()}}});
            self.patch(&format!("/api/v1/nodes/{node}"), &label).await?;
        }
        Ok(())
    }

    /// Carries out an action.
    ///
    /// # Errors
    /// It was refused, or not acknowledged in time.
    pub async fn act(&self, action: &Action, nodes: &[String]) -> anyhow::Result<()> {
        match action {
            Action::Create(of) => self.create(&of.collection(), &of.manifest()).await,
            Action::Adopt(of) => {
                self.gone(&of.path()).await?;
                self.create(&of.collection(), &of.manifest()).await
            }
            Action::Scale(of, replicas) => {
                let scale = json!({"spec": {"replicas": replicas}});
                self.patch(&format!("{}/scale", of.path()), &scale).await
            }
            Action::Reimage(of) => {
                let containers = json!([{"name": "main", "image": of.image()}]);
                let image = json!({"spec": {"template": {"spec": {"containers": containers}}}});
                self.patch(&of.path(), &image).await
            }
            Action::Suspend(of, suspend) => {
                let patch = json!({"spec": {"suspend": suspend}});
                self.patch(&of.path(), &patch).await
            }
            Action::Autoscale(of) => {
                let path = of.autoscaler();
                self.gone(&path).await?;
                let (all, _) = path.rsplit_once('/').context("a path has slashes")?;
                self.create(all, &of.autoscaler_manifest()).await
            }
            Action::EndAutoscaling(of) => self.delete(&of.autoscaler(), "Background").await,
            Action::Delete(of, policy) => self.delete(&of.path(), policy).await,
            Action::Sweep(of) => self.sweep(of).await,
            Action::DeletePod(of, index) => self.delete_pod(of, *index).await,
            Action::Cordon(node, on) => {
                let patch = json!({"spec": {"unschedulable": on}});
                let node = nodes.get(*node).context("it has this node")?;
                self.patch(&format!("/api/v1/nodes/{node}"), &patch).await
            }
        }
    }

    /// Returns the objects of a list.
    pub async fn list(&self, path: &str) -> anyhow::Result<Vec<Value>> {
        let mut answer: Value =
            serde_json::from_str(&self.ask("GET", path, None, &[]).await?.body)?;
        match answer["items"].take() {
            Value::Array(items) => Ok(items),
            _ => bail!("GET {path}: no list"),
        }
    }

    /// Creates an object. It is ours if it exists already: an earlier attempt was not acknowledged.
    async fn create(&self, path: &str, object: &Value) -> anyhow::Result<()> {
        let allowed = [StatusCode::CONFLICT];
        self.ask("POST", path, Some(object), &allowed)
            .await
            .map(drop)
    }

    async fn patch(&self, path: &str, patch: &Value) -> anyhow::Result<()> {
        // What has a time to live may have gone.
        let allowed = [StatusCode::NOT_FOUND];
        self.ask("PATCH", path, Some(patch), &allowed)
            .await
            .map(drop)
    }

    async fn delete(&self, path: &str, policy: &str) -> anyhow::Result<()> {
        let options =
            json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy});
        let allowed = [StatusCode::NOT_FOUND];
        self.ask("DELETE", path, Some(&options), &allowed)
            .await
            .map(drop)
    }

    async fn sweep(&self, of: &Workload) -> anyhow::Result<()> {
        self.gone(&of.path()).await?;
        for (group, plural) in DEPENDANTS {
            let all = collection(group, of.namespace, plural);
            self.delete(
                &format!("{all}?labelSelector=app={}", of.name),
                "Background",
            )
            .await?;
        }
        Ok(())
    }

    async fn delete_pod(&self, of: &Workload, index: usize) -> anyhow::Result<()> {
        let all = collection("v1", of.namespace, "pods");
        let pods = self
            .list(&format!("{all}?labelSelector=app={}", of.name))
            .await?;
        if pods.is_empty() {
            return Ok(());
        }
        let name = pods[index % pods.len()]["metadata"]["name"].as_str();
        self.delete(
            &format!("{all}/{}", name.context("a Pod has a name")?),
            "Background",
        )
        .await
    }

    /// Waits until an object does not exist.
    async fn gone(&self, path: &str) -> anyhow::Result<()> {
        let start = Instant::now();
        loop {
            let answer = self
                .ask("GET", path, None, &[StatusCode::NOT_FOUND])
                .await?;
            if answer.status == StatusCode::NOT_FOUND {
                return Ok(());
            }
            if start.elapsed() > ACKNOWLEDGED {
                bail!(
                    "{path} is not deleted within {ACKNOWLEDGED:?}: {}",
                    answer.body
                );
            }
            sleep(PAUSE).await;
        }
    }

    /// Sends a request to one gateway after the other until it is answered with a success, or with an allowed status.
    async fn ask(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        allowed: &[StatusCode],
    ) -> anyhow::Result<Answer> {
        let start = Instant::now();
        for gateway in self.gateways.iter().cycle() {
            let answer = timeout(TIMEOUT, send(gateway, method, path, body)).await;
            let failure = match answer {
                Ok(Ok(answer)) if is_final(answer.status) => {
                    if answer.status.is_success() || allowed.contains(&answer.status) {
                        return Ok(answer);
                    }
                    bail!("{method} {path}: {} {}", answer.status, answer.body);
                }
                Ok(Ok(answer)) => format!("{} {}", answer.status, answer.body),
                Ok(Err(error)) => format!("{error:#}"),
                Err(_) => format!("no answer within {TIMEOUT:?}"),
            };
            if start.elapsed() > ACKNOWLEDGED {
                bail!("{method} {path}: not acknowledged within {ACKNOWLEDGED:?}: {failure}");
            }
            sleep(PAUSE).await;
        }
        bail!("no gateways")
    }
}

/// Returns whether an answer does not change when the request is repeated.
fn is_final(status: StatusCode) -> bool {
    !status.is_server_error() && status != StatusCode::TOO_MANY_REQUESTS
}

/// Sends one request to a gateway.
pub async fn send(
    gateway: &Address,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> anyhow::Result<Answer> {
    let content = match method {
        "PATCH" => "application/strategic-merge-patch+json",
        _ => "application/json",
    };
    let request = Request::builder()
        .method(method)
        .uri(format!("{gateway}{path}"))
        .header("Content-Type", content)
        .header("User-Agent", "soak");
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    http_client::send_as(gateway.credentials(), request.body(body)?, usize::MAX).await
}
