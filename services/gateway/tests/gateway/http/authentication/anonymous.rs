//! Requests without credentials.

use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};
use serde_json::json;
use setpoint_gateway::AuthenticationOptions;

use super::super::api::{Api, PROTOBUF};
use super::{WHOAMI, nobody};

/// Returns upstream's text.
fn forbidden(verb: &str, path: &str) -> String {
    format!("forbidden: User \"system:anonymous\" cannot {verb} path \"{path}\"")
}

/// Checks V20: health and the version are the only paths of the API that anonymous users may read.
#[tokio::test]
async fn nobody_reads_more_than_health_and_the_version() {
    let api = Api::with_rbac().await;
    let _background = api.run_background();
    let spec = json!({
        "user": "system:anonymous",
        "groups": ["system:unauthenticated"],
        "nonResourceAttributes": { "verb": "get", "path": "/version" },
    });
    api.until_allowed(spec).await;
    let get = async |path: &str| {
        let request = Request::get(path);
        api.send_over_tls(&nobody(), request, "").await
    };
    for path in ["/version", "/version/"] {
        get(path).await.ok();
    }
    // The process itself serves these before the API.
    for path in ["/healthz", "/livez", "/readyz"] {
        get(path).await.refused(404, "NotFound");
    }
    for path in [
        "/",
        "/api",
        "/apis",
        "/apis/apps/v1",
        "/api/v1",
        "/openapi/v2",
        "/openapi/v3",
        "/openid/v1/jwks",
        "/.well-known/openid-configuration",
        "/livez/etcd",
        "/metrics",
        "/logs",
        "/debug/pprof",
    ] {
        let message = get(path).await.refused(403, "Forbidden");
        assert_eq!(message, forbidden("get", path));
    }
    for path in [
        "/api/v1/namespaces",
        "/api/v1/namespaces/kube-public/configmaps/cluster-info",
        "/api/v1/namespaces/default/pods/a/exec?command=id",
        "/api/v1/nodes/n1/proxy/pods",
        "/apis/example.com/v1/things",
    ] {
        let message = get(path).await.refused(403, "Forbidden");
        assert!(
            message.contains("User \"system:anonymous\" cannot "),
            "{message}"
        );
    }
    let review = Request::post(WHOAMI).header(CONTENT_TYPE, "application/json");
    let message = api.send_over_tls(&nobody(), review, "{}").await;
    let message = message.refused(403, "Forbidden");
    assert!(
        message.contains("User \"system:anonymous\" cannot create"),
        "{message}"
    );
}

#[tokio::test]
async fn credentials_of_an_unknown_scheme_are_none_over_tls() {
    let api = Api::with_rbac().await;
    for authorization in ["Basic eDp5", "Bearer", "x"] {
        let request = Request::get("/api").header("authorization", authorization);
        let refused = api.send_over_tls(&nobody(), request, "").await;
        assert_eq!(refused.refused(403, "Forbidden"), forbidden("get", "/api"));
        // They make no administrator.
        let request = Request::get("/api").header("authorization", authorization);
        api.send(request, "").await.refused(401, "Unauthorized");
    }
}

#[tokio::test]
async fn a_token_behind_two_spaces_is_not_read_and_warned_of() {
    const WARNING: &str = "the provided Authorization header contains extra space before the bearer token, and is ignored";
    let api = Api::with_rbac().await;
    let request = || Request::get("/api").header("authorization", "Bearer  token");
    let reply = api.send_over_tls(&nobody(), request(), "").await;
    assert_eq!(reply.refused(403, "Forbidden"), forbidden("get", "/api"));
    assert_eq!(reply.warnings(), [WARNING]);
    let reply = api.send(request(), "").await;
    reply.refused(401, "Unauthorized");
    assert_eq!(reply.warnings(), [WARNING]);
}

#[tokio::test]
async fn anonymous_requests_can_be_refused() {
    let api = Api::with_options(AuthenticationOptions {
        anonymous: false,
        ..AuthenticationOptions::default()
    })
    .await;
    let request = Request::get("/version");
    let refused = api.send_over_tls(&nobody(), request, "").await;
    refused.refused(401, "Unauthorized");
    // Without TLS, a request without credentials is the administrator's.
    api.get("/api/v1/namespaces").await.ok();
}

#[tokio::test]
async fn a_refusal_has_the_format_that_the_client_prefers() {
    let api = Api::with_rbac().await;
    for client in [nobody(), Err("expired".to_owned())] {
        let request = Request::get("/api/v1/pods").header(ACCEPT, PROTOBUF);
        let reply = api.send_over_tls(&client, request, "").await;
        assert!(reply.body.starts_with(b"k8s\0"), "{:?}", reply.body);
    }
}
