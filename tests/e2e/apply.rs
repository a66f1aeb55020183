//! Server-side apply with the stock kubectl.

use setpoint_tests::{Cluster, Kubectl};

use crate::web::text;

fn manifest(replicas: u32) -> String {
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: {replicas}
  selector:
    matchLabels: {{app: web}}
  template:
    metadata:
      labels: {{app: web}}
    spec:
      containers:
      - name: web
        image: nginx:1.25
"
    )
}

fn settings(size: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings}}\ndata: {{size: \"{size}\"}}\n"
    )
}

fn revision(kubectl: &Kubectl) -> String {
    text(
        &kubectl.json("get deployment web"),
        "/metadata/resourceVersion",
    )
    .to_owned()
}

#[test]
fn kubectl_applies_server_side_with_owners_conflicts_and_diffs() {
    let cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    let apply = |manager: &str, replicas: u32| {
        let arguments = format!("apply --server-side --field-manager={manager}");
        kubectl.with(&arguments, &manifest(replicas))
    };
    let applied = apply("alice", 1);
    assert_eq!(
        applied.stdout, "deployment.apps/web serverside-applied\n",
        "{}",
        applied.stderr
    );
    let before = revision(&kubectl);
    assert!(apply("alice", 1).success);
    assert_eq!(revision(&kubectl), before, "the same again writes nothing");

    let conflict = apply("bob", 2);
    let expected = r#"Apply failed with 1 conflict: conflict with "alice": .spec.replicas"#;
    assert!(
        !conflict.success && conflict.stderr.contains(expected),
        "{}",
        conflict.stderr
    );
    assert!(apply("bob --force-conflicts", 2).success);
    let shown = kubectl.ok("get deployment web -o yaml --show-managed-fields");
    assert!(
        shown.contains("manager: alice") && shown.contains("manager: bob"),
        "{shown}"
    );

    let diff = |manager: &str, replicas: u32| {
        let arguments = format!("diff --server-side --field-manager={manager}");
        kubectl.with(&arguments, &manifest(replicas))
    };
    let same = diff("bob", 2);
    assert!(
        same.success && same.stdout.is_empty(),
        "{}{}",
        same.stdout,
        same.stderr
    );
    let other = diff("bob", 5);
    assert!(
        other.stdout.contains("+  replicas: 5"),
        "{}{}",
        other.stdout,
        other.stderr
    );
    let other = kubectl.with("diff", &manifest(5));
    assert!(
        other.stdout.contains("+  replicas: 5"),
        "{}{}",
        other.stdout,
        other.stderr
    );
}

#[test]
fn an_object_applied_client_side_is_applied_server_side_next() {
    let cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    let applied = kubectl.with("apply", &settings("1"));
    assert!(applied.success, "{}", applied.stderr);
    let applied = kubectl.with("apply --server-side", &settings("2"));
    assert_eq!(
        applied.stdout, "configmap/settings serverside-applied\n",
        "{}",
        applied.stderr
    );
    let object = kubectl.json("get configmap settings --show-managed-fields");
    assert_eq!(text(&object, "/data/size"), "2");
    let managers = object["metadata"]["managedFields"]
        .as_array()
        .expect("managers");
    let names = managers.iter().map(|entry| text(entry, "/manager"));
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    // kubectl keeps the annotation by a manager of its own.
    assert_eq!(names, ["kubectl", "kubectl-last-applied"], "{object}");
    let again = kubectl.with("apply --server-side --dry-run=server", &settings("3"));
    assert!(again.success, "{}", again.stderr);
    assert_eq!(
        text(&kubectl.json("get configmap settings"), "/data/size"),
        "2"
    );
}
