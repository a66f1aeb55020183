//! The requests that policies and bindings select.

use serde_json::{Value, json};

use super::{bind, create, denial, merged, rule, spec, with};
use crate::http::api::{Api, CONFIGMAPS};

/// Changes of the rule of all ConfigMaps and of the constraints around it, and whether they select the create of one.
fn cases() -> Vec<(Value, Value, bool)> {
    let team = |team| json!({ "matchLabels": { "team": team } });
    let name = |name| json!({ "matchLabels": { "name": name } });
    vec![
        (json!({}), json!({}), true),
        (json!({ "operations": ["CREATE"] }), json!({}), true),
        (
            json!({ "operations": ["UPDATE", "DELETE", "CONNECT"] }),
            json!({}),
            false,
        ),
        (
            json!({ "apiGroups": [""], "apiVersions": ["v1"] }),
            json!({}),
            true,
        ),
        (json!({ "apiGroups": ["apps"] }), json!({}), false),
        (json!({ "apiVersions": ["v2"] }), json!({}), false),
        (json!({ "resources": ["*"] }), json!({}), true),
        (json!({ "resources": ["*/*"] }), json!({}), true),
        (json!({ "resources": ["configmaps/*"] }), json!({}), true),
        (
            json!({ "resources": ["configmaps/status", "secrets"] }),
            json!({}),
            false,
        ),
        (json!({ "resourceNames": ["a"] }), json!({}), true),
        (json!({ "resourceNames": ["b"] }), json!({}), false),
        (json!({ "scope": "Namespaced" }), json!({}), true),
        (json!({ "scope": "Cluster" }), json!({}), false),
        (json!({}), json!({ "objectSelector": name("a") }), true),
        (json!({}), json!({ "objectSelector": name("b") }), false),
        (
            json!({}),
            json!({ "namespaceSelector": team("blue") }),
            true,
        ),
        (
            json!({}),
            json!({ "namespaceSelector": team("red") }),
            false,
        ),
        (
            json!({}),
            json!({ "excludeResourceRules": [rule(&["configmaps"])] }),
            false,
        ),
        (
            json!({}),
            json!({ "excludeResourceRules": [rule(&["secrets"])] }),
            true,
        ),
    ]
}

async fn in_blue() -> Api {
    let api = Api::start().await;
    let labels = json!({ "metadata": { "labels": { "team": "blue" } } });
    let path = "/api/v1/namespaces/default";
    api.patch(path, "merge-patch+json", labels).await.ok();
    api
}

fn constraints(change: &Value, around: &Value) -> Value {
    let rule = merged(rule(&["configmaps"]), change.clone());
    merged(json!({ "resourceRules": [rule] }), around.clone())
}

#[tokio::test]
async fn constraints_of_a_policy_select_requests() {
    for (change, around, selects) in cases() {
        let api = in_blue().await;
        let constraints = constraints(&change, &around);
        bind(
            &api,
            spec(json!({ "matchConstraints": constraints })),
            json!({}),
        )
        .await;
        let denied = denial(&create(&api).await).is_some();
        assert_eq!(denied, selects, "{change} {around}");
    }
}

#[tokio::test]
async fn resources_of_a_binding_select_among_them() {
    for (change, around, selects) in cases() {
        let api = in_blue().await;
        let resources = constraints(&change, &around);
        bind(
            &api,
            spec(json!({})),
            json!({ "matchResources": resources }),
        )
        .await;
        let denied = denial(&create(&api).await).is_some();
        assert_eq!(denied, selects, "{change} {around}");
    }
}

#[tokio::test]
async fn a_policy_without_a_binding_has_no_effect() {
    let api = Api::start().await;
    bind(&api, spec(json!({})), json!({ "policyName": "other" })).await;
    assert_eq!(denial(&create(&api).await), None);
}

#[tokio::test]
async fn changes_of_policies_and_bindings_take_effect() {
    let api = with(spec(json!({})), json!({})).await;
    assert!(denial(&create(&api).await).is_some());
    let path = format!("{}/validatingadmissionpolicies/p", super::GROUP);
    let change = json!({ "spec": spec(json!({ "validations": [{ "expression": "true" }] })) });
    api.patch(&path, "merge-patch+json", change).await.ok();
    api.get(&path).await.ok();
    assert_eq!(denial(&create(&api).await), None);
    let change = json!({ "spec": spec(json!({})) });
    api.patch(&path, "merge-patch+json", change).await.ok();
    let binding = format!("{}/validatingadmissionpolicybindings/b", super::GROUP);
    api.delete(&binding).await.ok();
    api.get(&binding).await;
    assert_eq!(api.delete(&format!("{CONFIGMAPS}/a")).await.code, 200);
}

/// Events have two versions, in two groups.
#[tokio::test]
async fn a_rule_for_one_version_selects_requests_in_its_others() {
    let event = json!({
        "metadata": { "name": "e", "namespace": "default" },
        "involvedObject": { "kind": "Pod", "namespace": "default", "name": "p" },
        "reason": "Started", "type": "Normal", "source": { "component": "test" },
    });
    for (policy, expected) in [
        ("Equivalent", Some("events.k8s.io Started")),
        ("Exact", None),
    ] {
        let rule = json!({
            "operations": ["CREATE"], "apiGroups": ["events.k8s.io"],
            "apiVersions": ["v1"], "resources": ["events"],
        });
        let message = "request.resource.group + ' ' + string(object.regarding.kind == 'Pod' ? object.reason : '')";
        let policy = spec(json!({
            "matchConstraints": { "resourceRules": [rule], "matchPolicy": policy },
            "validations": [{ "expression": "request.requestResource.group != ''", "messageExpression": message }],
        }));
        let api = with(policy, json!({})).await;
        let reply = api
            .post("/api/v1/namespaces/default/events", event.clone())
            .await;
        assert_eq!(denial(&reply).as_deref(), expected);
    }
}

#[tokio::test]
async fn policies_do_not_judge_policies() {
    let constraints = json!({ "resourceRules": [rule(&["*"])] });
    let api = with(spec(json!({ "matchConstraints": constraints })), json!({})).await;
    assert!(denial(&create(&api).await).is_some());
    for path in [
        "validatingadmissionpolicybindings/b",
        "validatingadmissionpolicies/p",
    ] {
        api.delete(&format!("{}/{path}", super::GROUP)).await.ok();
    }
}
