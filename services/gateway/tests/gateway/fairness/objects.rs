//! The objects that configure priority and fairness.

use serde_json::{Value, json};

use super::{Fair, LEVELS, SCHEMAS, level, schema, status};
use crate::http::api::Reply;

fn condition(reply: &Reply) -> Value {
    reply.json()["status"]["conditions"][0].clone()
}

#[tokio::test]
async fn a_schema_says_whether_its_level_exists() {
    let fair = Fair::start(10, 5).await;
    let api = &fair.api;
    let path = format!("{SCHEMAS}/dangling");
    api.post(SCHEMAS, schema("dangling", "absent")).await.ok();
    let reply = api
        .eventually(&path, |reply| status(&reply.json()) == "True")
        .await;
    let found = condition(&reply);
    assert_eq!(found["type"], "Dangling");
    assert_eq!(found["reason"], "NotFound");
    assert_eq!(
        found["message"],
        r#"This FlowSchema references the PriorityLevelConfiguration object named "absent" but there is no such object"#
    );
    api.post(LEVELS, level("absent", 5)).await.ok();
    let reply = api
        .eventually(&path, |reply| status(&reply.json()) == "False")
        .await;
    assert_eq!(condition(&reply)["reason"], "Found");
}

#[tokio::test(start_paused = true)]
async fn the_suggested_objects_come_back_and_are_kept() {
    let fair = Fair::start(10, 5).await;
    let api = &fair.api;
    let (schema, level) = (
        format!("{SCHEMAS}/service-accounts"),
        format!("{LEVELS}/system"),
    );
    api.delete(&schema).await.ok();
    api.eventually(&schema, |reply| reply.code == 200).await;
    let before = api.get(&level).await.ok();
    let change = json!({ "spec": { "limited": { "nominalConcurrencyShares": 77 } } });
    api.patch(&level, "merge-patch+json", change.clone())
        .await
        .ok();
    api.eventually(&level, |reply| reply.json()["spec"] == before["spec"])
        .await;
    let own =
        json!({ "metadata": { "annotations": { "apf.kubernetes.io/autoupdate-spec": "false" } } });
    api.patch(&level, "merge-patch+json", own).await.ok();
    api.patch(&level, "merge-patch+json", change).await.ok();
    tokio::time::sleep(std::time::Duration::from_secs(100)).await;
    let after = api.get(&level).await.ok();
    assert_eq!(after["spec"]["limited"]["nominalConcurrencyShares"], 77);
}

#[tokio::test]
async fn the_objects_of_every_cluster_are_upstreams_and_those_of_the_services() {
    let fair = Fair::start(10, 5).await;
    let list = fair.api.get(SCHEMAS).await.ok();
    let rows = list["items"].as_array().unwrap().iter().map(|schema| {
        let spec = &schema["spec"];
        let method = spec["distinguisherMethod"]["type"].as_str().unwrap_or("-");
        let level = spec["priorityLevelConfiguration"]["name"].as_str().unwrap();
        let name = schema["metadata"]["name"].as_str().unwrap();
        format!("{} {name} {level} {method}", spec["matchingPrecedence"])
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|row| row.split(' ').next().unwrap().parse::<u32>().unwrap());
    let expected = "\
1 exempt exempt -
2 probes exempt -
100 system-leader-election leader-election ByUser
101 setpoint-leader-election leader-election ByUser
300 tenants tenants ByUser
400 system-node-high node-high ByUser
401 setpoint-simulated-node-high node-high ByUser
500 system-nodes system ByUser
501 setpoint-simulated-nodes system ByUser
800 kube-controller-manager workload-high ByNamespace
800 kube-scheduler workload-high ByNamespace
801 setpoint-services workload-high ByUser
900 kube-system-service-accounts workload-high ByNamespace
9000 service-accounts workload-low ByUser
9900 global-default global-default ByUser
10000 catch-all catch-all ByUser";
    assert_eq!(rows.join("\n"), expected);
}
