//! Invalid requests get the same responses as from Kubernetes.

use setpoint_tests::{Cluster, Kubectl};

use crate::web::manifest;

fn refused(kubectl: &Kubectl, manifest: &str, arguments: &str) -> String {
    let output = kubectl.with(arguments, manifest);
    assert!(!output.success, "accepted: {}", output.stdout);
    output.stderr
}

#[test]
fn invalid_requests_have_the_error_messages_of_kubernetes() {
    let cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    let good = manifest();

    let answer = refused(
        &kubectl,
        &good.replace("replicas: 3", "replicaz: 3"),
        "apply",
    );
    assert!(
        answer.contains(r#"strict decoding error: unknown field "spec.replicaz""#),
        "{answer}"
    );

    let answer = refused(
        &kubectl,
        &good.replace("replicas: 3", "replicas: three"),
        "apply",
    );
    assert!(
        answer.contains("cannot unmarshal string") && answer.contains("int32"),
        "{answer}"
    );

    let long = "x".repeat(254);
    let answer = refused(
        &kubectl,
        &good.replace(
            "name: web-frontend\n  namespace",
            &format!("name: {long}\n  namespace"),
        ),
        "apply",
    );
    assert!(answer.contains("must be no more than 253"), "{answer}");

    let elsewhere = good.replace("namespace: production", "namespace: nowhere");
    let answer = refused(&kubectl, &elsewhere, "apply");
    assert!(
        answer.contains(r#"namespaces "nowhere" not found"#),
        "{answer}"
    );

    let other = good
        .replacen("app: web-frontend", "app: another", 2)
        .replacen("app: another", "app: web-frontend", 1);
    let answer = refused(&kubectl, &other, "apply");
    assert!(
        answer.contains("`selector` does not match template `labels`"),
        "{answer}"
    );

    assert!(kubectl.with("apply", &good).success);
    let current = kubectl.ok("get deployment web-frontend -n production -o yaml");
    kubectl.ok("label deployment web-frontend -n production tier=web");
    let answer = refused(&kubectl, &current, "replace");
    assert!(answer.contains("the object has been modified; please apply your changes to the latest version and try again"), "{answer}");

    let answer = kubectl.fails("get deployment missing -n production");
    assert!(
        answer.contains(r#"Error from server (NotFound): deployments.apps "missing" not found"#),
        "{answer}"
    );

    let answer = kubectl.fails("get gizmos");
    assert!(
        answer.contains(r#"the server doesn't have a resource type "gizmos""#),
        "{answer}"
    );
}
