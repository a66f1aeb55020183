//! Tokens of ServiceAccounts in Secrets.

use setpoint_tests::{Cluster, Kubectl, Size};

use super::{MANAGER, create, flags, until, until_some, value};

const TRACKING: &str = "-n kube-system cm/kube-apiserver-legacy-service-account-token-tracking";
const INVALID_SINCE: &str = r".metadata.labels.kubernetes\.io/legacy-token-invalid-since";
const LISTED: &str = ".secrets[*].name";

/// Starts a cluster whose controllers take a token for unused after a second.
fn cluster() -> Cluster {
    let mut cluster = Cluster::start(Size {
        process_nodes: 0,
        simulated_nodes: 0,
        ..Size::default()
    });
    let period = "--legacy-service-account-token-cleaner-clean-up-period=1s".to_owned();
    cluster.service(MANAGER, 0, &[flags(), vec![period]].concat());
    cluster
}

/// Creates a Secret for the account `robot`.
fn secret(kubectl: &Kubectl, name: &str, labels: &str) {
    create(
        kubectl,
        &format!(
            "apiVersion: v1
kind: Secret
type: kubernetes.io/service-account-token
metadata:
  name: {name}
  labels: {{{labels}}}
  annotations: {{kubernetes.io/service-account.name: robot}}
"
        ),
    );
}

#[test]
fn a_token_that_nobody_uses_is_marked_invalid_and_deleted() {
    let cluster = cluster();
    let kubectl = cluster.kubectl();
    until_some(&kubectl, TRACKING, ".data.since");
    let since = r#"{"data":{"since":"2020-01-01"}}"#;
    kubectl.ok(&format!("patch {TRACKING} -p {since}"));
    create(
        &kubectl,
        "apiVersion: v1
kind: ServiceAccount
metadata: {name: robot}
secrets: [{name: in-pod}, {name: unused}, {name: invalid}]
",
    );
    // Before its Secret, which could be marked in the meantime.
    create(
        &kubectl,
        "apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  serviceAccountName: robot
  containers: [{name: web, image: web}]
  volumes: [{name: token, secret: {secretName: in-pod}}]
",
    );
    secret(&kubectl, "in-pod", "");
    let long_ago = "kubernetes.io/legacy-token-invalid-since: '2020-01-02'";
    secret(&kubectl, "invalid", long_ago);
    secret(&kubectl, "unused", "");
    secret(&kubectl, "manual", "");
    until_some(&kubectl, "secret/unused", INVALID_SINCE);
    until(
        &kubectl,
        "secret/invalid --ignore-not-found",
        ".metadata.name",
        "",
    );
    until(&kubectl, "sa/robot", LISTED, "in-pod unused");
    for kept in ["in-pod", "manual"] {
        assert_eq!(
            value(&kubectl, &format!("secret/{kept}"), INVALID_SINCE),
            ""
        );
    }
    // Without the Pod, it is looked at again when its account changes.
    kubectl.ok("delete pod web --grace-period=0 --force");
    kubectl.ok("annotate sa robot seen=true");
    until_some(&kubectl, "secret/in-pod", INVALID_SINCE);
}
