//! Tokens that a node asks for are those of its Pods, for the audiences that these name.

use serde_json::{Value, json};

use super::super::super::api::{Api, Reply};
use super::User;

const TOKENS: &str = "/api/v1/namespaces/default/serviceaccounts/default/token";

fn bound_to(pod: &Value, audiences: Value) -> Value {
    let bound = json!({
        "apiVersion": "v1", "kind": "Pod",
        "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"],
    });
    json!({ "spec": { "audiences": audiences, "boundObjectRef": bound } })
}

async fn ask(node: &User<'_>, request: Value) -> Reply {
    node.post(TOKENS, request).await
}

/// Returns the end of the error of a request.
async fn refused(node: &User<'_>, request: Value) -> String {
    let message = ask(node, request).await.refused(403, "Forbidden");
    let (_, why) = message.split_once(" is forbidden: ").unwrap();
    why.to_owned()
}

#[tokio::test]
async fn a_token_is_bound_to_a_pod_of_the_node() {
    let api = Api::with_nodes().await;
    let pod = api.pod_on_a("web", json!({})).await;
    let (a, b) = (api.node_a(), api.node_b());
    ask(&a, bound_to(&pod, json!([]))).await.ok();
    assert_eq!(
        refused(&a, json!({ "spec": {} })).await,
        "node requested token not bound to a pod"
    );
    let mut other_kind = bound_to(&pod, json!([]));
    other_kind["spec"]["boundObjectRef"]["kind"] = "Node".into();
    assert_eq!(
        refused(&a, other_kind).await,
        "node requested token not bound to a pod"
    );
    let mut without_uid = bound_to(&pod, json!([]));
    without_uid["spec"]["boundObjectRef"]["uid"] = "".into();
    assert_eq!(
        refused(&a, without_uid).await,
        "node requested token with a pod binding without a uid"
    );
    let mut other_uid = bound_to(&pod, json!([]));
    other_uid["spec"]["boundObjectRef"]["uid"] = "x".into();
    let why = refused(&a, other_uid).await;
    assert!(
        why.starts_with("the UID in the bound object reference (x) does not match"),
        "{why}"
    );
    let why = refused(&b, bound_to(&pod, json!([]))).await;
    assert!(
        why.contains("no relationship found between node 'b'"),
        "{why}"
    );
    // With a Pod of its own in the namespace, only admission can tell.
    let spec = json!({ "nodeName": "b" });
    api.pod_on_a("other", spec).await;
    assert_eq!(
        refused(&b, bound_to(&pod, json!([]))).await,
        "node requested token bound to a pod scheduled on a different node"
    );
}

#[tokio::test]
async fn a_token_is_for_an_audience_that_the_pod_or_a_driver_of_its_volumes_names() {
    let api = Api::with_nodes().await;
    let requests = json!({ "tokenRequests": [{ "audience": "csi" }] });
    let driver = json!({ "metadata": { "name": "d.example.com" }, "spec": requests });
    api.post("/apis/storage.k8s.io/v1/csidrivers", driver)
        .await
        .ok();
    let token = json!({ "serviceAccountToken": { "path": "t", "audience": "vault" } });
    let pod = api
        .pod_on_a(
            "web",
            json!({ "volumes": [
            { "name": "t", "projected": { "sources": [token] } },
            { "name": "c", "csi": { "driver": "d.example.com" } },
        ] }),
        )
        .await;
    let a = api.node_a();
    for audience in ["vault", "csi"] {
        ask(&a, bound_to(&pod, json!([audience]))).await.ok();
    }
    let why = refused(&a, bound_to(&pod, json!(["other"]))).await;
    assert_eq!(
        why,
        "audience \"other\" not found in pod spec volume, system:node:a is not authorized to request tokens for this \
        audience"
    );
    let why = refused(&a, bound_to(&pod, json!(["vault", "csi"]))).await;
    assert_eq!(why, "node may only request 0 or 1 audiences");
    let verb = "request-serviceaccounts-token-audience";
    api.grant(
        "system:node:a",
        json!([super::super::rule(verb, "core", "other")]),
    )
    .await;
    ask(&a, bound_to(&pod, json!(["other"]))).await.ok();
}

/// Checks V13: a token of a node is no more than one of its Pods', so that the Node it names is its own.
#[tokio::test]
async fn an_account_that_no_pod_of_the_node_has_gives_no_tokens() {
    let api = Api::with_nodes().await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    api.post(accounts, json!({ "metadata": { "name": "strong" } }))
        .await
        .ok();
    let pod = api.pod_on_a("web", json!({})).await;
    let tokens = format!("{accounts}/strong/token");
    let request = bound_to(&pod, json!([]));
    let refused = api.node_a().post(&tokens, request).await;
    let refused = refused.refused(403, "Forbidden");
    assert!(
        refused.contains("no relationship found between node 'a'"),
        "{refused}"
    );
}
