//! Requests that need a second permission: an update that creates, and connections.

use axum::Router;
use http::header::{CONNECTION, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderName, Request};
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

/// The connections to a Pod: their subresources, paths, and protocols in a WebSocket and in SPDY.
const CONNECTIONS: [(&str, &str, &str, &str); 4] = [
    (
        "exec",
        "exec?command=cat&stdout=1",
        "v5.channel.k8s.io",
        "v4.channel.k8s.io",
    ),
    (
        "attach",
        "attach?stdout=1",
        "v5.channel.k8s.io",
        "v4.channel.k8s.io",
    ),
    (
        "portforward",
        "portforward?ports=7",
        "v4.channel.k8s.io",
        "portforward.k8s.io",
    ),
    (
        "portforward",
        "portforward",
        "SPDY/3.1+portforward.k8s.io",
        "portforward.k8s.io",
    ),
];

/// A way in which a client connects.
#[derive(Clone, Copy, Debug)]
enum Transport {
    WebSocket,
    /// SPDY, with this method.
    Spdy(&'static str),
}

/// Connects a user. Returns the status and the body of the response; `None` for the body of an upgrade.
async fn connect(
    plane: &Plane,
    user: &'static str,
    path: &str,
    transport: Transport,
    [websocket, spdy]: [&'static str; 2],
) -> (u16, Option<String>) {
    let acting = HeaderName::from_static("impersonate-user");
    let text = |body: Vec<u8>| String::from_utf8(body).unwrap();
    match transport {
        Transport::WebSocket => {
            let headers = [(SEC_WEBSOCKET_PROTOCOL, websocket), (acting, user)];
            match Client::open(plane.server.address, path, headers).await {
                Ok(_) => (101, None),
                Err(refused) => {
                    let status = refused.status().as_u16();
                    (status, refused.into_body().map(text))
                }
            }
        }
        Transport::Spdy(method) => {
            let request = Request::builder().method(method).uri(path);
            let request = request
                .header(CONNECTION, "Upgrade")
                .header(UPGRADE, "SPDY/3.1")
                .header("x-stream-protocol-version", spdy)
                .header(acting, user);
            let reply = plane.api.send(request, "").await;
            (reply.code.as_u16(), Some(text(reply.body.to_vec())))
        }
    }
}

/// Checks V1 and DG19: by GET, the verb of the request is `get`, and a connection is nonetheless a `create`.
#[tokio::test]
async fn a_connection_needs_the_permission_to_create_it_for_every_transport() {
    let with = |registry: Registry| registry.with_authorization(&[Mode::Rbac]);
    let plane = Plane::with(Router::new(), with).await;
    let connections = "pods/exec pods/attach pods/portforward";
    plane
        .api
        .grant("jane", json!([rule("get", "core", connections)]))
        .await;
    plane
        .api
        .grant("joe", json!([rule("get create", "core", connections)]))
        .await;
    plane
        .api
        .grant("whole", json!([rule("get create update", "core", "pods")]))
        .await;
    for (part, path, websocket, spdy) in CONNECTIONS {
        let path = format!("{POD}/{path}");
        for transport in [
            Transport::WebSocket,
            Transport::Spdy("GET"),
            Transport::Spdy("POST"),
        ] {
            let ask = async |user| connect(&plane, user, &path, transport, [websocket, spdy]).await;
            let (status, body) = ask("jane").await;
            let cannot = format!("cannot create resource \\\"pods/{part}\\\"");
            assert_eq!(status, 403, "{part} {transport:?}");
            assert!(body.unwrap().contains(&cannot), "{part} {transport:?}");
            // Rights on a Pod are none on a connection to it.
            for user in ["nobody", "whole"] {
                assert_eq!(ask(user).await.0, 403, "{user} {part} {transport:?}");
            }
            assert!(plane.agent.opened().is_empty());
        }
    }
    for (part, path, websocket, spdy) in CONNECTIONS {
        let path = format!("{POD}/{path}");
        let ask =
            async |transport| connect(&plane, "joe", &path, transport, [websocket, spdy]).await;
        assert_eq!(ask(Transport::WebSocket).await, (101, None), "{part}");
        for method in ["GET", "POST"] {
            // In this test, the connection of a request without a listener cannot be upgraded.
            let (status, body) = ask(Transport::Spdy(method)).await;
            assert_eq!(status, 400, "{part} {body:?}");
        }
    }
}
