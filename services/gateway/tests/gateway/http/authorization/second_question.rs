//! Requests that need a second permission: an update that creates, and connections.

use axum::Router;
use http::HeaderName;
use http::header::SEC_WEBSOCKET_PROTOCOL;
use serde_json::json;
use setpoint_gateway::AuthorizationMode as Mode;
use setpoint_gateway::registry::Registry;

use super::super::api::{Api, CONFIGMAPS};
use super::super::streams::{Client, POD, Plane};
use super::rule;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

#[tokio::test]
async fn an_update_that_creates_needs_the_permission_to_create() {
    let api = Api::with_rbac().await;
    let leases = rule("update", "coordination.k8s.io", "leases");
    api.grant("jane", json!([leases, rule("patch", "core", "configmaps")]))
        .await;
    let jane = api.user("jane");
    let lease = json!({ "metadata": { "name": "a" }, "spec": {} });
    let refused = jane.put(&format!("{LEASES}/a"), lease.clone()).await;
    assert_eq!(
        refused.refused(403, "Forbidden"),
        "leases.coordination.k8s.io \"a\" is forbidden: User \"jane\" cannot create resource \"leases\" in API group \
        \"coordination.k8s.io\" in the namespace \"default\""
    );
    api.put(&format!("{LEASES}/a"), lease).await.ok();
    let lease = api.get(&format!("{LEASES}/a")).await.ok();
    jane.put(&format!("{LEASES}/a"), lease).await.ok();
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "a": "b" } });
    let path = format!("{CONFIGMAPS}/a?fieldManager=x");
    let apply = "application/apply-patch+yaml";
    let refused = jane.send("PATCH", &path, apply, map.clone()).await;
    let refused = refused.refused(403, "Forbidden");
    assert!(
        refused.contains("cannot create resource \"configmaps\""),
        "{refused}"
    );
    api.configmap("a").await;
    let path = format!("{path}&force=true");
    jane.send("PATCH", &path, apply, map).await.ok();
}

#[tokio::test]
async fn a_connection_needs_the_permission_to_create_it_for_every_method() {
    let with = |registry: Registry| registry.with_authorization(&[Mode::Rbac]);
    let plane = Plane::with(Router::new(), with).await;
    plane
        .api
        .grant("jane", json!([rule("get", "core", "pods/exec")]))
        .await;
    plane
        .api
        .grant("joe", json!([rule("get create", "core", "pods/exec")]))
        .await;
    let path = format!("{POD}/exec?command=cat&stdout=1");
    let open = async |user: &'static str| {
        let headers = [
            (SEC_WEBSOCKET_PROTOCOL, "v5.channel.k8s.io"),
            (HeaderName::from_static("impersonate-user"), user),
        ];
        Client::open(plane.server.address, &path, headers).await
    };
    let refused = open("jane").await.err().unwrap();
    assert_eq!(refused.status(), 403);
    let body = String::from_utf8(refused.into_body().unwrap_or_default()).unwrap();
    assert!(
        body.contains("cannot create resource \\\"pods/exec\\\""),
        "{body}"
    );
    let refused = open("nobody").await.err().unwrap();
    let body = String::from_utf8(refused.into_body().unwrap_or_default()).unwrap();
    assert!(
        body.contains("cannot get resource \\\"pods/exec\\\""),
        "{body}"
    );
    assert!(open("joe").await.is_ok());
}
