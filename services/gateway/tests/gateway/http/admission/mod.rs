//! Admission webhooks: the cases of upstream's tests of their plugins, over HTTP.

mod custom;
mod failures;
mod matching;
mod mutation;
mod requests;
mod responses;
pub mod webhook;

use serde_json::{Value, json};

use super::api::{Api, CONFIGMAPS, Reply, configmap};
use webhook::{Answer, Webhook};

pub const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
/// What messages of calls that failed begin with.
pub const FAILED: &str = "Internal error occurred: failed calling webhook \"a.example.com\": ";

/// A gateway and a server of webhooks.
pub struct Plane {
    pub api: Api,
    pub server: Webhook,
}

/// Returns a rule for resources of any group.
pub fn rule(resources: &[&str]) -> Value {
    json!({
        "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": resources,
    })
}

pub fn merged(mut base: Value, fields: Value) -> Value {
    let fields = fields.as_object().unwrap().clone();
    base.as_object_mut().unwrap().extend(fields);
    base
}

impl Plane {
    pub async fn start() -> Self {
        Self {
            api: Api::start().await,
            server: Webhook::start().await,
        }
    }

    /// Returns a webhook for ConfigMaps that answers in this way, with some fields. The name of its path is that of the
    /// webhook.
    pub fn webhook(&self, name: &str, answer: Answer, fields: Value) -> Value {
        self.server.answer(name, answer);
        merged(
            json!({
                "name": format!("{name}.example.com"),
                "clientConfig": self.server.by_url(name),
                "rules": [rule(&["configmaps"])],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1", "v1beta1"],
            }),
            fields,
        )
    }

    /// Creates a configuration, and waits until the gateway knows it.
    pub async fn configure(&self, plural: &str, name: &str, webhooks: &[Value]) {
        let path = format!("{GROUP}/{plural}");
        let body = json!({ "metadata": { "name": name }, "webhooks": webhooks });
        let created = self.api.post(&path, body).await;
        created.ok();
        assert!(!created.headers.contains_key("warning"), "{created:?}");
        // A read waits for the cache.
        self.api.get(&format!("{path}/{name}")).await.ok();
    }

    /// Creates the validating webhook `a`.
    pub async fn validating(answer: Answer, fields: Value) -> Self {
        let plane = Self::start().await;
        let webhook = plane.webhook("a", answer, fields);
        let plural = "validatingwebhookconfigurations";
        plane.configure(plural, "validating", &[webhook]).await;
        plane
    }

    /// Creates the mutating webhook `a`.
    pub async fn mutating(answer: Answer, fields: Value) -> Self {
        let plane = Self::start().await;
        let webhook = plane.webhook("a", answer, fields);
        plane.mutate(&[webhook]).await;
        plane
    }

    /// Creates mutating webhooks.
    pub async fn mutate(&self, webhooks: &[Value]) {
        let plural = "mutatingwebhookconfigurations";
        self.configure(plural, "mutating", webhooks).await;
    }

    /// Creates the ConfigMap `a` with the label `name=a` and the datum `a=b`.
    pub async fn create(&self) -> Reply {
        let created = self.api.post(CONFIGMAPS, configmap("a")).await;
        self.settled().await;
        created
    }

    /// Waits until the cache has what was written: an attempt on an older object is made, and sent, again.
    pub async fn settled(&self) {
        self.api.get(CONFIGMAPS).await.ok();
    }
}

/// Returns the message of an error; `None` if the request was admitted.
pub fn denial(reply: &Reply) -> Option<String> {
    let message = || reply.json()["message"].as_str().unwrap().to_owned();
    (!reply.code.is_success()).then(message)
}

/// Returns the texts of the warnings.
pub fn warnings(reply: &Reply) -> Vec<String> {
    let all = reply.headers.get_all("warning").iter();
    let texts = all.map(|value| value.to_str().unwrap().replacen("299 - ", "", 1));
    texts
        .map(|text| text.trim_matches('"').to_owned())
        .collect()
}
