//! Nodes: what they may read, and what they may write.

mod agents;
mod reads;
mod tokens;
mod writes;

use serde_json::{Value, json};
use setpoint_gateway::AuthorizationMode as Mode;

use super::super::api::Api;
use super::{User, registry};

const PODS: &str = "/api/v1/namespaces/default/pods";
const MERGE: &str = "application/merge-patch+json";

impl Api {
    /// Starts a gateway with the modes `Node` and `RBAC`, and with the nodes `a` and `b`.
    pub async fn with_nodes() -> Self {
        let api = Self::over(registry(&[Mode::Node, Mode::Rbac]).await).await;
        for name in ["a", "b"] {
            let node = json!({ "metadata": { "name": name } });
            api.post("/api/v1/nodes", node).await.ok();
        }
        api
    }

    /// Returns the node of the user name `system:node:<name>`.
    pub fn node<'a>(&'a self, name: &'a str) -> User<'a> {
        User {
            api: self,
            name,
            groups: &["system:nodes"],
        }
    }

    /// Returns the node `a`.
    pub fn node_a(&self) -> User<'_> {
        self.node("system:node:a")
    }

    /// Returns the node `b`.
    pub fn node_b(&self) -> User<'_> {
        self.node("system:node:b")
    }

    /// Creates a Pod on the node `a`, with further fields of its spec. Returns it.
    async fn pod_on_a(&self, name: &str, spec: Value) -> Value {
        let mut pod = json!({
            "metadata": { "name": name },
            "spec": { "nodeName": "a", "containers": [{ "name": "web", "image": "nginx" }] },
        });
        let fields = pod["spec"].as_object_mut().unwrap();
        fields.extend(spec.as_object().unwrap().clone());
        self.post(PODS, pod).await.ok()
    }
}

impl User<'_> {
    async fn merge(&self, path: &str, patch: Value) -> super::Reply {
        self.send("PATCH", path, MERGE, patch).await
    }

    async fn delete(&self, path: &str) -> super::Reply {
        self.send("DELETE", path, super::TYPE, Value::Null).await
    }
}
