//! Requests that are refused before the upgrade: clients read these errors.

use http::Request;
use http::header::{CONNECTION, UPGRADE};
use serde_json::{Value, json};

use super::{POD, Plane};
use crate::http::policies::{GROUP, rule};

#[tokio::test]
async fn what_cannot_be_connected_is_an_error_of_http() {
    let plane = Plane::start().await;
    let pods = "/api/v1/namespaces/default/pods";
    for (path, code, message) in [
        (
            "web/exec?command=x",
            400,
            "you must specify at least 1 of stdin, stdout, stderr",
        ),
        (
            "web/exec?stdout=1",
            400,
            "you must specify at least one command for the container",
        ),
        (
            "web/exec?command=x&stdout=1&container=none",
            400,
            "container none is not valid for pod web",
        ),
        (
            "two/exec?command=x&stdout=1",
            400,
            "a container name must be specified for pod two, choose one of: [a b]",
        ),
        (
            "pending/attach?stdout=1",
            400,
            "pod pending does not have a host assigned",
        ),
        (
            "none/exec?command=x&stdout=1",
            404,
            "pods \\\"none\\\" not found",
        ),
        (
            "web/exec?command=missing&stdout=1",
            500,
            "unable to upgrade connection: container not found (\\\"main\\\")",
        ),
    ] {
        let path = format!("{pods}/{path}");
        let refused = plane.open(&path, "v5.channel.k8s.io").await.err().unwrap();
        assert_eq!(refused.status(), code, "{path}");
        let body = String::from_utf8(refused.into_body().unwrap_or_default()).unwrap();
        assert!(body.contains(message), "{path}: {body}");
    }
    let path = format!("{POD}/exec?command=x&stdout=1");
    let refused = plane.open(&path, "v9.channel.k8s.io").await.err().unwrap();
    assert_eq!(refused.status(), 403);
    assert!(
        plane
            .agent
            .opened()
            .iter()
            .all(|open| open.command != ["x"])
    );
}

#[tokio::test]
async fn only_upgrades_are_accepted() {
    let plane = Plane::start().await;
    let path = format!("{POD}/exec?command=x&stdout=1");
    for reply in [
        plane.api.get(&path).await,
        plane.api.post(&path, json!({})).await,
    ] {
        assert_eq!(reply.refused(400, "BadRequest"), "Upgrade request required");
    }
    plane
        .api
        .delete(&path)
        .await
        .refused(405, "MethodNotAllowed");
    let request = Request::post(&path)
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "SPDY/3.1")
        .header("x-stream-protocol-version", "v9.channel.k8s.io");
    let reply = plane.api.send(request, "").await;
    assert_eq!(reply.code, 403);
    let accepted = reply.headers.get_all("x-accepted-stream-protocol-versions");
    assert_eq!(accepted.iter().next().unwrap(), "v4.channel.k8s.io");
}

/// As upstream's conformance test of webhooks: attaching is denied.
#[tokio::test]
async fn policies_judge_connections() {
    let plane = Plane::start().await;
    let mut connect = rule(&["pods/attach"]);
    connect["operations"] = json!(["CONNECT"]);
    let policy = json!({
        "matchConstraints": { "resourceRules": [connect] },
        "validations": [{
            "expression": "object.kind != 'PodAttachOptions' || object.container != 'main' || request.operation != 'CONNECT'",
            "message": "attaching is not allowed", "reason": "Forbidden",
        }],
    });
    let create = async |plural: &str, name: &str, spec: Value| {
        let body = json!({ "metadata": { "name": name }, "spec": spec });
        let path = format!("{GROUP}/{plural}");
        plane.api.post(&path, body).await.ok();
        plane.api.get(&format!("{path}/{name}")).await.ok();
    };
    create("validatingadmissionpolicies", "p", policy).await;
    let binding = json!({ "policyName": "p", "validationActions": ["Deny"] });
    create("validatingadmissionpolicybindings", "b", binding).await;
    let path = format!("{POD}/attach?container=main&stdout=1");
    let refused = plane.open(&path, "v5.channel.k8s.io").await.err().unwrap();
    assert_eq!(refused.status(), 403);
    let body = String::from_utf8(refused.into_body().unwrap_or_default()).unwrap();
    assert!(body.contains("attaching is not allowed"), "{body}");
    let path = format!("{POD}/exec?command=echo&stdout=1");
    plane.socket(&path, "v5.channel.k8s.io").await;
}

#[tokio::test]
async fn discovery_lists_the_subresources() {
    let plane = Plane::start().await;
    let resources = plane.api.get("/api/v1").await.ok();
    let found = |name: &str| {
        let mut all = resources["resources"].as_array().unwrap().iter();
        let found = all.find(|one| one["name"] == name).unwrap();
        (found["kind"].clone(), found["verbs"].clone())
    };
    let verbs = json!(["create", "get"]);
    for (name, kind) in [
        ("pods/exec", "PodExecOptions"),
        ("pods/attach", "PodAttachOptions"),
        ("pods/portforward", "PodPortForwardOptions"),
    ] {
        assert_eq!(found(name), (kind.into(), verbs.clone()));
    }
    for (name, kind) in [
        ("pods/proxy", "PodProxyOptions"),
        ("services/proxy", "ServiceProxyOptions"),
        ("nodes/proxy", "NodeProxyOptions"),
    ] {
        assert_eq!(found(name).0, kind);
    }
    let document = plane.api.get("/openapi/v3/api/v1").await.ok();
    let path = "/api/v1/namespaces/{namespace}/pods/{name}/exec";
    let post = &document["paths"][path]["post"];
    assert_eq!(post["operationId"], "connectCoreV1PostNamespacedPodExec");
    assert_eq!(post["x-kubernetes-action"], "connect");
}
