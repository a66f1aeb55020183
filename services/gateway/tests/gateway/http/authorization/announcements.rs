//! Leases that announce replicas: who may write which.

use serde_json::{Value, json};
use setpoint_gateway::AuthorizationMode as Mode;

use super::super::api::Api;
use super::{User, registry, rule};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/setpoint-replicas/leases";
const USER: &str = "setpoint.dev/user";

/// Starts a gateway in which all users may write Leases, as far as roles are asked.
async fn start() -> Api {
    let api = Api::over(registry(&[Mode::Node, Mode::Rbac]).await).await;
    let namespace = json!({ "metadata": { "name": "setpoint-replicas" } });
    api.post("/api/v1/namespaces", namespace).await.ok();
    let leases = rule(
        "get create update patch delete",
        "coordination.k8s.io",
        "leases",
    );
    api.cluster_role("announced", json!([leases])).await;
    api.bind_everywhere("announced", "Group:system:authenticated")
        .await;
    let asked = json!({ "verb": "get", "group": "coordination.k8s.io", "resource": "leases" });
    let groups = ["system:authenticated"];
    api.until_allowed(json!({ "groups": groups, "resourceAttributes": asked }))
        .await;
    api
}

fn lease(name: &str, service: &str) -> Value {
    json!({ "metadata": { "name": name, "labels": { "setpoint.dev/service": service } } })
}

fn service<'a>(api: &'a Api, name: &'a str) -> User<'a> {
    User {
        api,
        name,
        groups: &["system:setpoint"],
    }
}

/// Checks V13, too: an agent writes its own announcement only.
#[tokio::test]
async fn a_replica_announces_the_service_that_it_is_and_writes_its_own_lease_only() {
    let api = start().await;
    let (a, b) = (api.node_a(), api.node_b());
    let scheduler = service(&api, "system:setpoint:scheduler");
    let manager = service(&api, "system:setpoint:controller-manager");
    let nobody = api.user("jane");
    let created = a.post(LEASES, lease("agent-0", "node-agent")).await.ok();
    assert_eq!(created["metadata"]["annotations"][USER], "system:node:a");
    // The proxy of a machine is a client by the certificate of its node.
    a.post(LEASES, lease("proxy-of-a", "proxy")).await.ok();
    scheduler
        .post(LEASES, lease("scheduler-0", "scheduler"))
        .await
        .ok();
    for (user, service) in [
        (&a, "scheduler"),
        (&scheduler, "node-agent"),
        (&scheduler, "controller-manager"),
        (&manager, "scheduler"),
        (&nobody, "scheduler"),
        (&nobody, "jane"),
    ] {
        let refused = user.post(LEASES, lease("other", service)).await;
        let refused = refused.refused(403, "Forbidden");
        assert!(refused.contains("announces replicas of"), "{refused}");
    }
    let path = |name: &str| format!("{LEASES}/{name}");
    for (user, name, service) in [
        (&b, "agent-0", "node-agent"),
        (&scheduler, "agent-0", "scheduler"),
        (&a, "scheduler-0", "node-agent"),
        (&manager, "scheduler-0", "controller-manager"),
        (&a, "agent-0", "scheduler"),
        (&nobody, "agent-0", "node-agent"),
    ] {
        let mut stolen = lease(name, service);
        stolen["metadata"]["annotations"] = json!({ USER: user.name });
        let merge = "application/merge-patch+json";
        let refused = user.send("PATCH", &path(name), merge, stolen).await;
        refused.refused(403, "Forbidden");
    }
    for (user, name) in [(&b, "agent-0"), (&manager, "agent-0"), (&a, "scheduler-0")] {
        let path = path(name);
        let refused = user.send("DELETE", &path, super::TYPE, Value::Null);
        refused.await.refused(403, "Forbidden");
    }
    let mut renewed = api.get(&path("agent-0")).await.ok();
    renewed["spec"]["leaseDurationSeconds"] = 40.into();
    renewed["metadata"]["annotations"] = json!({});
    let renewed = a.put(&path("agent-0"), renewed).await.ok();
    assert_eq!(renewed["metadata"]["annotations"][USER], "system:node:a");
    for (user, name) in [(&a, "agent-0"), (&scheduler, "scheduler-0")] {
        user.send("DELETE", &path(name), super::TYPE, Value::Null)
            .await
            .ok();
    }
}

/// As the Leases of an earlier version, which have no user.
#[tokio::test]
async fn a_lease_without_a_user_becomes_that_of_the_first_of_its_service() {
    let api = start().await;
    api.post(LEASES, lease("agent-0", "node-agent")).await.ok();
    let path = format!("{LEASES}/agent-0");
    let merge = "application/merge-patch+json";
    let renewed = json!({ "spec": { "leaseDurationSeconds": 40 } });
    let scheduler = service(&api, "system:setpoint:scheduler");
    scheduler
        .send("PATCH", &path, merge, renewed.clone())
        .await
        .refused(403, "Forbidden");
    api.node_a()
        .send("PATCH", &path, merge, renewed.clone())
        .await
        .ok();
    api.node_b()
        .send("PATCH", &path, merge, renewed)
        .await
        .refused(403, "Forbidden");
}
