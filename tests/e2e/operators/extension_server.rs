//! An API server behind an APIService, as a process: `extension_server.py`.

use serde_json::{Value, json};
use setpoint_tests::{Cluster, Kubectl, eventually};

use super::{Operator, apply, field, make_certificate, port, start_server};

const NAME: &str = "v1alpha1.wardle.example.com";
const FLUNDER: &str = "apiVersion: wardle.example.com/v1alpha1
kind: Flunder
metadata: {name: one}
spec: {reference: a}
";

fn registration(port: u16, ca: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": { "name": "extension", "namespace": "default" },
                "spec": { "type": "ExternalName", "externalName": "localhost" },
            },
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": { "name": NAME },
                "spec": {
                    "group": "wardle.example.com", "version": "v1alpha1",
                    "groupPriorityMinimum": 2000, "versionPriority": 200, "caBundle": ca,
                    "service": { "namespace": "default", "name": "extension", "port": port },
                },
            },
        ],
    })
}

#[test]
fn kubectl_works_with_the_kind_of_another_api_server() {
    let cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    let ca = make_certificate(cluster.directory(), "DNS:extension.default.svc");
    let mut server = start_server(&cluster, "extension_server.py");
    apply(&kubectl, &registration(port(&server), &ca).to_string());
    kubectl.ok(&format!(
        "wait apiservice/{NAME} --for=condition=Available --timeout=30s"
    ));
    it_is_discovered(&kubectl);
    its_objects_are_read_and_written(&kubectl);
    it_is_missing_while_the_server_is(&kubectl, &mut server);
}

fn folded(table: &str) -> Vec<String> {
    let fold = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    table.lines().map(fold).collect()
}

fn it_is_discovered(kubectl: &Kubectl) {
    let row = &folded(&kubectl.ok("get apiservices"));
    let row = row.iter().find(|row| row.starts_with(NAME));
    let row = row.expect("it is listed");
    assert!(
        row.starts_with(&format!("{NAME} default/extension True ")),
        "{row}"
    );
    let kinds = folded(&kubectl.ok("api-resources --api-group=wardle.example.com"));
    let heads = "NAME SHORTNAMES APIVERSION NAMESPACED KIND";
    assert_eq!(
        kinds,
        [
            heads,
            "flunders fl wardle.example.com/v1alpha1 true Flunder"
        ]
    );
}

fn its_objects_are_read_and_written(kubectl: &Kubectl) {
    apply(kubectl, FLUNDER);
    apply(kubectl, &FLUNDER.replace("reference: a", "reference: b"));
    assert_eq!(field(kubectl, "flunder/one", ".spec.reference"), "b");
    assert_eq!(
        field(kubectl, "fl/one", ".metadata.annotations.user"),
        "system:admin"
    );
    let listed = folded(&kubectl.ok("get flunders --all-namespaces"));
    assert!(listed[1].starts_with("default one "), "{listed:?}");
    // It is watched until it is gone.
    let deleted = kubectl.ok("delete flunder one --timeout=60s");
    assert!(deleted.contains("\"one\" deleted"), "{deleted}");
    assert!(kubectl.ok("get flunders").is_empty());
}

fn it_is_missing_while_the_server_is(kubectl: &Kubectl, server: &mut Operator) {
    server.process.kill();
    // It is refused at once, and after the next check for another reason.
    let refused = kubectl.fails("get --raw /apis/wardle.example.com/v1alpha1/flunders");
    assert!(refused.contains("ServiceUnavailable"), "{refused}");
    eventually("the server is known to be gone", || {
        let row = kubectl.ok(&format!("get apiservice {NAME}"));
        row.contains("False (FailedDiscoveryCheck)")
            .then_some(())
            .ok_or(row)
    });
    kubectl.ok(&format!("delete apiservice {NAME}"));
    let refused = kubectl.fails("get --raw /apis/wardle.example.com");
    assert!(refused.contains("NotFound"), "{refused}");
}
