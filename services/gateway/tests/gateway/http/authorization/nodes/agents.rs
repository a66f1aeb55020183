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
    // A Node is the agent's if it is marked as simulated, and a real one's otherwise.
    for (name, runtime, expected) in [("sim-8", "simulated", true), ("sim-9", "process", false)] {
        let labels = json!({ "setpoint.dev/runtime": runtime });
        let node = json!({ "metadata": { "name": name, "labels": labels } });
        api.post("/api/v1/nodes", node).await.ok();
        api.get(&format!("/api/v1/nodes/{name}")).await.ok();
        let may = ask("users", &format!("system:node:{name}")).await;
        assert_eq!(may, expected, "{name}");
    }
    let bare = json!({ "metadata": { "name": "sim-10" } });
    api.post("/api/v1/nodes", bare).await.ok();
    api.get("/api/v1/nodes/sim-10").await.ok();
    assert!(!ask("users", "system:node:sim-10").await);
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
