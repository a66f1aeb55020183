//! Access control by roles and bindings.

mod announcements;
mod background;
mod certificates;
mod constrained_impersonation;
mod escalation;
mod impersonation;
pub mod matrix;
mod methods;
mod nodes;
mod owners;
mod reviews;
mod second_question;
mod webhooks;

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};
use setpoint_gateway::AuthorizationMode as Mode;
use setpoint_gateway::in_process;
use setpoint_gateway::registry::Registry;
use setpoint_store::Memory;
use setpoint_store::cache::Settings;

use super::api::{Api, Reply};

pub const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const TYPE: &str = "application/json";

/// Returns a registry that roles and bindings are the only permissions of.
pub async fn registry(modes: &[Mode]) -> Arc<Registry> {
    registry_over(Arc::new(Memory::default()), modes).await
}

/// Like [`registry`], over a store.
pub async fn registry_over(store: Arc<Memory>, modes: &[Mode]) -> Arc<Registry> {
    let with = |registry: Registry| registry.with_authorization(modes);
    in_process::registry_with(store, Settings::default(), with).await
}

impl Api {
    /// Starts a gateway with the mode RBAC.
    pub async fn with_rbac() -> Self {
        Self::over(registry(&[Mode::Rbac]).await).await
    }

    /// Returns a user without groups.
    pub fn user<'a>(&'a self, name: &'a str) -> User<'a> {
        User {
            api: self,
            name,
            groups: &[],
        }
    }

    /// Creates a ClusterRole.
    pub async fn cluster_role(&self, name: &str, rules: Value) {
        let role = json!({ "metadata": { "name": name }, "rules": rules });
        self.post(&format!("{RBAC}/clusterroles"), role).await.ok();
    }

    /// Creates a Role in the namespace `default`.
    pub async fn role(&self, name: &str, rules: Value) {
        let role = json!({ "metadata": { "name": name }, "rules": rules });
        let roles = format!("{RBAC}/namespaces/default/roles");
        self.post(&roles, role).await.ok();
    }

    /// Grants a ClusterRole everywhere to a subject such as `User:jane`.
    pub async fn bind_everywhere(&self, role: &str, to: &str) {
        let bindings = format!("{RBAC}/clusterrolebindings");
        let binding = binding("ClusterRole", role, to);
        self.post(&bindings, binding).await.ok();
    }

    /// Grants a role in the namespace `default`.
    pub async fn bind(&self, kind: &str, role: &str, to: &str) {
        let bindings = format!("{RBAC}/namespaces/default/rolebindings");
        self.post(&bindings, binding(kind, role, to)).await.ok();
    }

    /// Grants rules everywhere to a user, and waits until they are in effect. The last of them allows a verb on a
    /// resource of the core group.
    pub async fn grant(&self, user: &str, rules: Value) {
        let role = format!("of-{user}");
        self.cluster_role(&role, rules.clone()).await;
        self.bind_everywhere(&role, &format!("User:{user}")).await;
        let rule = rules.as_array().unwrap().last().unwrap();
        let first = |field: &str| rule[field][0].as_str().unwrap_or_default().to_owned();
        let (resource, subresource) = match first("resources").split_once('/') {
            Some((resource, part)) => (resource.to_owned(), part.to_owned()),
            None => (first("resources"), String::new()),
        };
        let attributes = json!({
            "verb": first("verbs"),
            "group": first("apiGroups"),
            "resource": resource,
            "subresource": subresource,
            "name": first("resourceNames"),
        });
        self.until_allowed(json!({ "user": user, "resourceAttributes": attributes }))
            .await;
    }

    /// Waits until a SubjectAccessReview is answered by yes.
    pub async fn until_allowed(&self, spec: Value) {
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        for _ in 0..200 {
            let review = self.post(path, json!({ "spec": spec })).await.ok();
            if review["status"]["allowed"] == true {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{spec} is not allowed");
    }
}

fn binding(kind: &str, role: &str, to: &str) -> Value {
    let (of, name) = to.split_once(':').unwrap();
    let subject = match name.split_once('/') {
        Some((namespace, name)) if of == "ServiceAccount" => {
            json!({ "kind": of, "name": name, "namespace": namespace })
        }
        _ => json!({ "kind": of, "name": name }),
    };
    json!({
        "metadata": { "name": format!("{role}-{}", name.replace(['/', ':'], "-")) },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role },
        "subjects": [subject],
    })
}

/// A user whom the administrator impersonates.
#[derive(Clone, Copy)]
pub struct User<'a> {
    pub api: &'a Api,
    pub name: &'a str,
    pub groups: &'a [&'a str],
}

impl User<'_> {
    pub fn request(&self, method: &str, path: &str) -> http::request::Builder {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("impersonate-user", self.name);
        let add = |request: http::request::Builder, group: &&str| {
            request.header("impersonate-group", *group)
        };
        self.groups.iter().fold(request, add)
    }

    pub async fn send(&self, method: &str, path: &str, of: &str, body: Value) -> Reply {
        let request = self.request(method, path).header(CONTENT_TYPE, of);
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        self.api.send(request, body).await
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, TYPE, Value::Null).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Reply {
        self.send("POST", path, TYPE, body).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Reply {
        self.send("PUT", path, TYPE, body).await
    }
}

/// Returns a rule in JSON from lists of words; `core` is the empty one.
pub fn rule(verbs: &str, groups: &str, resources: &str) -> Value {
    json!({ "verbs": words(verbs), "apiGroups": words(groups), "resources": words(resources) })
}

fn words(text: &str) -> Vec<&str> {
    let words = text.split(' ');
    words
        .map(|word| if word == "core" { "" } else { word })
        .collect()
}
