//! Pod security: the levels of namespaces over HTTP, for Pods, templates and the namespaces themselves.

mod configuration;
mod namespaces;
mod pods;
mod templates;

use http::Method;
use http::header::WARNING;
use serde_json::{Value, json};

use super::api::{Api, Reply};

pub const NAMESPACES: &str = "/api/v1/namespaces";
pub const PODS: &str = "/api/v1/namespaces/default/pods";

/// The label with the level that is enforced.
pub const ENFORCE: &str = "pod-security.kubernetes.io/enforce";
pub const WARN: &str = "pod-security.kubernetes.io/warn";

/// The violations of `restricted` by a Pod of one container `web`, which sets nothing.
pub const LACKS: &str = "allowPrivilegeEscalation != false (container \"web\" must set \
    securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \"web\" must set \
    securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or container \"web\" must set \
    securityContext.runAsNonRoot=true), seccompProfile (pod or container \"web\" must set \
    securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")";

/// A Pod that sets nothing.
pub fn pod(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "spec": { "containers": [{ "name": "web", "image": "nginx" }] } })
}

/// A Pod that `restricted` allows.
pub fn restricted(name: &str) -> Value {
    let context = json!({ "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } });
    let mut pod = pod(name);
    pod["spec"]["containers"][0]["securityContext"] = context;
    pod["spec"]["securityContext"] =
        json!({ "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } });
    pod
}

/// The metrics of this process.
pub fn metrics() -> String {
    let encoder = prometheus::TextEncoder::new();
    encoder.encode_to_string(&prometheus::gather()).unwrap()
}

impl Reply {
    /// The texts of the warnings.
    pub fn warnings(&self) -> Vec<String> {
        let values = self.headers.get_all(WARNING).iter();
        let texts = values.map(|value| {
            let value = value.to_str().unwrap();
            let quoted = value
                .strip_prefix("299 - \"")
                .and_then(|rest| rest.strip_suffix('"'));
            quoted.unwrap().replace("\\\"", "\"").replace("\\\\", "\\")
        });
        texts.collect()
    }
}

impl Api {
    /// Sets labels of the namespace `default`; null removes one. The cache, which plugins read, has all Pods before,
    /// and the labels afterwards: a consistent list waits for it.
    pub async fn label(&self, labels: Value) -> Reply {
        let patch = json!({ "metadata": { "labels": labels } });
        let path = format!("{NAMESPACES}/default");
        self.get(PODS).await.ok();
        let reply = self.patch(&path, "merge-patch+json", patch).await;
        self.get(NAMESPACES).await.ok();
        reply
    }

    /// Starts a gateway whose namespace `default` has labels.
    pub async fn labelled(labels: Value) -> Self {
        let api = Self::start().await;
        api.label(labels).await.ok();
        api
    }

    /// Sends a request with a body as another user. Returns its reply.
    pub async fn send_as(&self, user: &str, method: Method, path: &str, body: Value) -> Reply {
        let request = http::Request::builder().method(method).uri(path);
        let request = request.header("impersonate-user", user);
        let request = request.header(http::header::CONTENT_TYPE, "application/json");
        self.send(request, body.to_string()).await
    }
}
