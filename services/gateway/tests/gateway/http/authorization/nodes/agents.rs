//! Agents of simulated nodes act as their own nodes.

use serde_json::json;

use super::super::super::api::Api;

/// Checks V13: the rule is about the user who acts as another, which a user who is impersonated cannot do in turn, so
/// that a review answers for it.
#[tokio::test]
async fn an_agent_may_act_as_its_own_nodes_and_nobody_else() {
    let api = Api::with_nodes().await;
    let ask = async |resource: &str, name: &str| {
        let spec = json!({
            "user": "system:setpoint:simulated-nodes:sim",
            "groups": ["system:setpoint:simulated-nodes"],
            "resourceAttributes": { "verb": "impersonate", "resource": resource, "name": name },
        });
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let review = api.post(path, json!({ "spec": spec })).await.ok();
        review["status"]["allowed"] == true
    };
    assert!(ask("users", "system:node:sim-7").await);
    assert!(ask("groups", "system:nodes").await);
    for (resource, name) in [
        ("users", "system:node:a"),
        ("users", "system:node:other-7"),
        ("users", "system:admin"),
        ("groups", "system:masters"),
        ("serviceaccounts", "default"),
    ] {
        assert!(!ask(resource, name).await, "{resource} {name}");
    }
}
