//! The users of requests, and what was decided about them.

use serde_json::json;
use setpoint_gateway::AuthorizationMode;

use super::{Audit, stages};
use crate::http::api::CONFIGMAPS;
use crate::http::authentication::nobody;

async fn with_rbac(audit: &Audit) -> crate::http::api::Api {
    let modes = [AuthorizationMode::Rbac];
    audit
        .api_with(|registry| registry.with_authorization(&modes))
        .await
}

#[tokio::test]
async fn a_request_that_is_not_allowed_says_so() {
    let audit = Audit::at("Metadata");
    let api = with_rbac(&audit).await;
    api.user("jane")
        .get(CONFIGMAPS)
        .await
        .refused(403, "Forbidden");
    let events = audit.events().await;
    assert_eq!(stages(&events), ["RequestReceived", "ResponseComplete"]);
    let event = &events[1];
    assert_eq!(event["user"]["username"], "system:admin");
    assert_eq!(event["impersonatedUser"]["username"], "jane");
    assert_eq!(
        event["annotations"]["authorization.k8s.io/decision"],
        "forbid"
    );
    assert_eq!(event["annotations"]["authorization.k8s.io/reason"], "");
    assert_eq!(event["responseStatus"]["code"], 403);
    assert_eq!(event["responseStatus"]["status"], "Failure");
    let message = event["responseStatus"]["message"].as_str().unwrap();
    assert!(
        message.contains(r#"User "jane" cannot list resource "configmaps""#),
        "{message}"
    );
}

#[tokio::test]
async fn the_reason_names_the_binding_that_allows_a_request() {
    let audit = Audit::at("Metadata");
    let api = with_rbac(&audit).await;
    let rule = json!([{ "verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"] }]);
    api.grant("jane", rule).await;
    audit.forget().await;
    api.user("jane").get(CONFIGMAPS).await.ok();
    let event = Audit::only(&audit.events().await, "ResponseComplete");
    assert_eq!(
        event["annotations"]["authorization.k8s.io/decision"],
        "allow"
    );
    let reason = event["annotations"]["authorization.k8s.io/reason"]
        .as_str()
        .unwrap();
    assert!(
        reason.starts_with("RBAC: allowed by ClusterRoleBinding"),
        "{reason}"
    );
    assert!(reason.contains("of-jane"), "{reason}");
}

/// As upstream: one event, without a user.
#[tokio::test]
async fn a_failed_login_is_recorded() {
    let audit = Audit::at("Metadata");
    let api = with_rbac(&audit).await;
    let reply = api
        .identity(&nobody(), &[("authorization", "Bearer wrong")])
        .await;
    reply.refused(401, "Unauthorized");
    let events = audit.events().await;
    assert_eq!(stages(&events), ["ResponseStarted"]);
    assert_eq!(events[0]["user"], json!({}));
    assert_eq!(events[0]["responseStatus"]["code"], 401);
    assert_eq!(events[0]["responseStatus"]["reason"], "Unauthorized");
    assert_eq!(
        events[0]["auditID"],
        reply.headers["audit-id"].to_str().unwrap()
    );
    assert!(!events[0].to_string().contains("wrong"));
}

#[tokio::test]
async fn writes_of_the_gateway_itself_are_recorded() {
    let audit = Audit::at("Request");
    let api = audit.api().await;
    let _running = api.run_background();
    api.eventually("/api/v1/namespaces/kube-system", |reply| reply.code == 200)
        .await;
    let events = audit.events().await;
    let is_own = |event: &&serde_json::Value| {
        event["user"]["username"] == "system:apiserver"
            && event["stage"] == "ResponseComplete"
            && event["objectRef"]["name"] == "kube-system"
    };
    let own = events.iter().find(is_own).unwrap();
    assert_eq!(own["verb"], "create");
    assert_eq!(own["requestURI"], "/api/v1/namespaces");
    assert_eq!(own["responseStatus"]["code"], 201);
    assert_eq!(own["requestObject"]["metadata"]["name"], "kube-system");
}
