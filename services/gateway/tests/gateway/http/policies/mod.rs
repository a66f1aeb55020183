//! ValidatingAdmissionPolicies: the cases of upstream's tests of their plugin, over HTTP.

mod evaluation;
mod params;
mod requests;
mod selection;
mod types;

use serde_json::{Value, json};

use super::api::{Api, CONFIGMAPS, Reply};

pub const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
/// What the errors and warnings of the policy `p` with the binding `b` begin with.
pub const DENIED: &str = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: ";

/// Returns a rule for resources of any group.
pub fn rule(resources: &[&str]) -> Value {
    json!({
        "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": resources,
    })
}

/// Returns the spec of a policy for ConfigMaps, with some fields.
pub fn spec(fields: Value) -> Value {
    merged(
        json!({
            "matchConstraints": { "resourceRules": [rule(&["configmaps"])] },
            "validations": [{ "expression": "false" }],
        }),
        fields,
    )
}

pub fn merged(mut base: Value, fields: Value) -> Value {
    let fields = fields.as_object().unwrap().clone();
    base.as_object_mut().unwrap().extend(fields);
    base
}

/// A gateway with the policy `p` and its binding `b`.
pub async fn with(policy: Value, binding: Value) -> Api {
    let api = Api::start().await;
    bind(&api, policy, binding).await;
    api
}

/// Creates the policy `p` and its binding `b`, and waits until the gateway knows them.
pub async fn bind(api: &Api, policy: Value, binding: Value) {
    let policy = json!({ "metadata": { "name": "p" }, "spec": policy });
    let path = format!("{GROUP}/validatingadmissionpolicies");
    api.post(&path, policy).await.ok();
    let spec = json!({ "policyName": "p", "validationActions": ["Deny"] });
    let binding = json!({ "metadata": { "name": "b" }, "spec": merged(spec, binding) });
    let path = format!("{GROUP}/validatingadmissionpolicybindings");
    api.post(&path, binding).await.ok();
    // A read waits for the cache.
    api.get(&format!("{path}/b")).await.ok();
}

/// Returns the reply to the create of a ConfigMap `a` with the label `name=a` and the datum `a=b`.
pub async fn create(api: &Api) -> Reply {
    api.post(CONFIGMAPS, super::api::configmap("a")).await
}

/// Returns why a request was denied; `None` if it was admitted.
pub fn denial(reply: &Reply) -> Option<String> {
    let body = reply.json();
    (!reply.code.is_success()).then(|| {
        let message = body["message"].as_str().unwrap();
        let (_, message) = message
            .split_once("is forbidden: ")
            .unwrap_or(("", message));
        message.strip_prefix(DENIED).unwrap_or(message).to_owned()
    })
}
