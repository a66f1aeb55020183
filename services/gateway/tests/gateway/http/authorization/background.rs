//! The roles that every cluster has, and those that are aggregated.

use serde_json::{Value, json};

use super::super::api::{Api, Reply};
use super::{RBAC, rule};

fn path(kind: &str, name: &str) -> String {
    format!("{RBAC}/{kind}/{name}")
}

fn has_verb(reply: &Reply, verb: &str) -> bool {
    let role = reply.json();
    let rules = role["rules"].as_array().cloned().unwrap_or_default();
    rules.iter().any(|rule| {
        rule["verbs"]
            .as_array()
            .is_some_and(|verbs| verbs.contains(&verb.into()))
    })
}

#[tokio::test]
async fn every_cluster_has_the_roles_and_bindings_of_upstream() {
    let api = Api::with_rbac().await;
    let _background = api.run_background();
    let exists = |reply: &Reply| reply.code == 200;
    for (kind, name) in [
        ("clusterroles", "cluster-admin"),
        ("clusterrolebindings", "cluster-admin"),
        ("clusterroles", "system:discovery"),
        (
            "namespaces/kube-system/roles",
            "extension-apiserver-authentication-reader",
        ),
        (
            "namespaces/kube-system/rolebindings",
            "system::extension-apiserver-authentication-reader",
        ),
    ] {
        api.eventually(&path(kind, name), exists).await;
    }
    // An aggregated role has the rules of the roles that it selects.
    let view = api
        .eventually(&path("clusterroles", "view"), |reply| {
            has_verb(reply, "watch")
        })
        .await;
    let aggregated = view.json()["metadata"]["managedFields"].to_string();
    assert!(
        aggregated.contains("clusterrole-aggregation-controller"),
        "{aggregated}"
    );
    let version = json!({ "groups": ["system:authenticated"], "nonResourceAttributes": { "verb": "get", "path": "/version" } });
    api.until_allowed(version).await;
}

#[tokio::test]
async fn roles_are_completed_at_the_start_unless_they_are_protected() {
    let api = Api::with_rbac().await;
    let label = json!({ "kubernetes.io/bootstrapping": "mine" });
    let protected = json!({ "rbac.authorization.kubernetes.io/autoupdate": "false" });
    let own = rule("paint", "core", "pods");
    for (name, annotations) in [("system:discovery", json!({})), ("system:node", protected)] {
        let role = json!({
            "metadata": { "name": name, "labels": label, "annotations": annotations },
            "rules": [own],
        });
        api.post(&format!("{RBAC}/clusterroles"), role).await.ok();
    }
    let _background = api.run_background();
    let completed = |reply: &Reply| has_verb(reply, "get");
    let role = api
        .eventually(&path("clusterroles", "system:discovery"), completed)
        .await
        .json();
    assert_eq!(role["rules"][0], own);
    assert_eq!(role["metadata"]["labels"], label);
    assert_eq!(
        role["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"],
        "true"
    );
    // Created with the others.
    api.eventually(&path("clusterroles", "cluster-admin"), |reply| {
        reply.code == 200
    })
    .await;
    let role = api.get(&path("clusterroles", "system:node")).await.ok();
    assert_eq!(role["rules"], json!([own]));
}

#[tokio::test]
async fn an_aggregated_role_follows_the_roles_that_it_selects() {
    let api = Api::with_rbac().await;
    let _background = api.run_background();
    let selectors = json!([{ "matchLabels": { "acme.io/aggregate": "true" } }]);
    let sum = json!({ "metadata": { "name": "sum" }, "aggregationRule": { "clusterRoleSelectors": selectors } });
    let roles = format!("{RBAC}/clusterroles");
    api.post(&roles, sum).await.ok();
    let part = |verb: &str| {
        json!({
            "metadata": { "name": "part", "labels": { "acme.io/aggregate": "true" } },
            "rules": [rule(verb, "core", "pods")],
        })
    };
    api.post(&roles, part("paint")).await.ok();
    let sum = path("clusterroles", "sum");
    api.eventually(&sum, |reply| has_verb(reply, "paint")).await;
    api.put(&path("clusterroles", "part"), part("draw"))
        .await
        .ok();
    let changed = api.eventually(&sum, |reply| has_verb(reply, "draw")).await;
    assert!(!has_verb(&changed, "paint"));
    api.delete(&path("clusterroles", "part")).await.ok();
    api.eventually(&sum, |reply| {
        reply.json()["rules"] == Value::Null || reply.json()["rules"] == json!([])
    })
    .await;
}

#[tokio::test]
async fn without_rbac_there_are_no_such_roles() {
    let api = Api::start().await;
    let _background = api.run_background();
    // Created after the roles would be.
    api.eventually("/api/v1/namespaces/default/services/kubernetes", |reply| {
        reply.code == 200
    })
    .await;
    api.get(&path("clusterroles", "cluster-admin"))
        .await
        .refused(404, "NotFound");
}
