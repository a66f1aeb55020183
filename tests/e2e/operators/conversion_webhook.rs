//! A webhook that converts between the versions of a kind, as a process: `conversion_webhook.py`.

use serde_json::{Value, json};
use setpoint_tests::{Cluster, Kubectl};

use super::{apply, field, make_certificate, port, start_server};

const NAME: &str = "endpoints.endpoints.example.com";

fn definition(port: u16, ca: &str) -> Value {
    let version = |name: &str, storage: bool, properties: Value| {
        json!({
            "name": name, "served": true, "storage": storage,
            "schema": { "openAPIV3Schema": { "type": "object", "properties": properties } },
        })
    };
    let text = json!({ "type": "string" });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": NAME },
        "spec": {
            "group": "endpoints.example.com",
            "scope": "Namespaced",
            "names": { "plural": "endpoints", "kind": "Endpoint" },
            "versions": [
                version("v1", true, json!({ "hostPort": text })),
                version("v2", false, json!({ "host": text, "port": { "type": "integer" } })),
            ],
            "conversion": {
                "strategy": "Webhook",
                "webhook": {
                    "conversionReviewVersions": ["v1"],
                    "clientConfig": { "url": format!("https://127.0.0.1:{port}/convert"), "caBundle": ca },
                },
            },
        },
    })
}

#[test]
fn a_webhook_converts_objects_and_a_broken_one_loses_none() {
    let cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    let ca = make_certificate(cluster.directory(), "IP:127.0.0.1");
    let mut webhook = start_server(&cluster, "conversion_webhook.py");
    apply(&kubectl, &definition(port(&webhook), &ca).to_string());
    kubectl.ok(&format!(
        "wait crd/{NAME} --for=condition=Established --timeout=30s"
    ));
    it_converts_in_both_directions(&kubectl);
    webhook.process.kill();
    it_fails_clearly_without_the_webhook(&kubectl);
    webhook.process.restart();
}

fn it_converts_in_both_directions(kubectl: &Kubectl) {
    let first = "apiVersion: endpoints.example.com/v1\nkind: Endpoint\nmetadata: {name: one}\nhostPort: a:1\n";
    let second = "apiVersion: endpoints.example.com/v2\nkind: Endpoint\nmetadata: {name: two}\nhost: b\nport: 2\n";
    apply(kubectl, first);
    apply(kubectl, second);
    assert_eq!(
        field(kubectl, "endpoints.v2.endpoints.example.com/one", ".host"),
        "a"
    );
    assert_eq!(
        field(
            kubectl,
            "endpoints.v1.endpoints.example.com/two",
            ".hostPort"
        ),
        "b:2"
    );
    let hosts = "get endpoints.v2.endpoints.example.com -o jsonpath={.items[*].host}";
    assert_eq!(kubectl.ok(hosts), "a b");
}

fn it_fails_clearly_without_the_webhook(kubectl: &Kubectl) {
    let refused = kubectl.fails("get endpoints.v2.endpoints.example.com/one");
    assert!(
        refused.contains("conversion webhook for endpoints.example.com/v1, Kind=Endpoint failed"),
        "{refused}"
    );
    let stored = field(
        kubectl,
        "endpoints.v1.endpoints.example.com/one",
        ".hostPort",
    );
    assert_eq!(stored, "a:1");
    kubectl.ok(&format!("delete crd {NAME} --timeout=60s"));
}
