//! A webhook that converts between the versions of a kind, as a process: `conversion_webhook.py`.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use setpoint_tests::{Cluster, Kubectl, eventually};

use super::{Operator, apply, beside, field};

const NAME: &str = "endpoints.endpoints.example.com";

/// Makes a certificate for 127.0.0.1, which is its own CA. Returns it in base64.
fn make_certificate(directory: &Path) -> String {
    let made = Command::new("openssl")
        .args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2".split(' '))
        .args("-subj /CN=webhook -addext subjectAltName=IP:127.0.0.1".split(' '))
        .args(["-keyout", "webhook.key", "-out", "webhook.crt"])
        .current_dir(directory)
        .output()
        .expect("tests/prepare has installed openssl");
    assert!(made.status.success(), "{made:?}");
    let encoded = Command::new("base64")
        .args(["-w0", "webhook.crt"])
        .current_dir(directory)
        .output();
    let encoded = encoded.expect("base64 is one of the coreutils").stdout;
    String::from_utf8(encoded).expect("base64 is ASCII")
}

fn start(cluster: &Cluster) -> Operator {
    let mut command = Command::new("python3");
    command
        .arg(beside("conversion_webhook.py"))
        .arg("0")
        .args(["webhook.crt", "webhook.key"])
        .current_dir(cluster.directory());
    Operator::start(cluster, "conversion-webhook", command)
}

/// Waits until the webhook serves. Returns its port.
fn port(webhook: &Operator) -> u16 {
    eventually("the webhook serves", || {
        let log = webhook.log();
        let port = log.trim().strip_prefix("serving ");
        port.and_then(|port| port.parse().ok()).ok_or(log)
    })
}

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
    let ca = make_certificate(cluster.directory());
    let mut webhook = start(&cluster);
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
