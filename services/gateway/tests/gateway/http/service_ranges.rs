//! The settings of the addresses and node ports of Services.

use std::sync::Arc;

use serde_json::{Value, json};
use setpoint_gateway::in_process;
use setpoint_gateway::registry::Registry;
use setpoint_store::Memory;
use setpoint_store::cache::Settings;

use crate::http::api::Api;

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn service(name: &str, spec: Value) -> Value {
    let mut service =
        json!({ "metadata": { "name": name }, "spec": { "ports": [{ "port": 80 }] } });
    for (key, value) in spec.as_object().unwrap() {
        service["spec"][key] = value.clone();
    }
    service
}

#[tokio::test]
async fn services_get_addresses_and_node_ports_of_the_ranges_of_the_settings() {
    let with = |registry: Registry| {
        let registry = registry.with_service_range_texts("172.20.0.0/29", "31000-31001");
        registry.unwrap()
    };
    let store = Arc::new(Memory::default());
    let registry = in_process::registry_with(store, Settings::default(), with).await;
    let api = Api::over(registry).await;
    let _background = api.run_background();
    let path = format!("{SERVICES}/kubernetes");
    let own = api.eventually(&path, |reply| reply.code == 200);
    assert_eq!(own.await.json()["spec"]["clusterIP"], "172.20.0.1");
    let range = "/apis/networking.k8s.io/v1/servicecidrs/kubernetes";
    let range = api
        .eventually(range, |reply| reply.code == 200)
        .await
        .json();
    assert_eq!(range["spec"]["cidrs"], json!(["172.20.0.0/29"]));

    let mut addresses: Vec<String> = Vec::new();
    for number in 0..5 {
        let created = api.post(SERVICES, service(&format!("s{number}"), json!({})));
        let address = created.await.ok()["spec"]["clusterIP"].clone();
        addresses.push(address.as_str().unwrap().to_owned());
    }
    addresses.sort();
    let expected = [2, 3, 4, 5, 6].map(|host| format!("172.20.0.{host}"));
    assert_eq!(addresses, expected);
    let full = api.post(SERVICES, service("sixth", json!({}))).await;
    assert!(
        full.refused(500, "InternalError")
            .ends_with("range is full")
    );

    let other = service("other", json!({ "clusterIP": "10.96.0.9" }));
    let refused = api.post(SERVICES, other).await.refused(422, "Invalid");
    assert!(
        refused.contains("the provided network does not match the current range"),
        "{refused}"
    );
    api.delete(&format!("{SERVICES}/s0")).await.ok();
    let port = service(
        "port",
        json!({
            "type": "NodePort", "ports": [{ "port": 80, "nodePort": 30000 }],
        }),
    );
    let refused = api.post(SERVICES, port).await.refused(422, "Invalid");
    assert!(
        refused.contains("The range of valid ports is 31000-31001"),
        "{refused}"
    );
    let port = api.post(SERVICES, service("port", json!({ "type": "NodePort" })));
    let port = port.await.ok()["spec"]["ports"][0]["nodePort"].as_i64();
    assert!([Some(31_000), Some(31_001)].contains(&port));
}
