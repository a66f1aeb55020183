//! Dependants are collected with their owners.

use setpoint_tests::{Cluster, Size, eventually, fast_election};

use crate::workloads::MANAGER;

const SERVICE: &str = "garbage-collector-controller";
const BECAUSE: &str = "its owner waits for the deletion of its dependants";

/// Returns a ConfigMap of the owner, and one whose owner is in another namespace.
fn dependants(owner: &str, elsewhere: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: ConfigMap
metadata:
  name: held
  finalizers: [example.com/held]
  ownerReferences:
  - {{apiVersion: v1, kind: ConfigMap, name: owner, uid: {owner}, blockOwnerDeletion: true}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: stray
  ownerReferences:
  - {{apiVersion: v1, kind: ConfigMap, name: elsewhere, uid: {elsewhere}}}
"#
    )
}

/// Checks D13, K2.
#[test]
fn kubectl_deletes_an_owner_in_the_foreground_although_the_leader_is_killed_before_its_end() {
    let mut cluster = Cluster::start(Size {
        process_nodes: 0,
        ..Size::default()
    });
    let flags = ["--controllers", "garbage-collector"].map(str::to_owned);
    cluster.service(MANAGER, 0, &[fast_election(), flags.into()].concat());
    let kubectl = cluster.kubectl();
    kubectl.ok("create configmap owner");
    kubectl.ok("create configmap elsewhere -n kube-system");
    let uid = |name: &str| {
        kubectl.ok(&format!(
            "get configmap {name} -o jsonpath={{.metadata.uid}}"
        ))
    };
    let (owner, elsewhere) = (uid("owner"), uid("elsewhere -n kube-system"));
    let created = kubectl.with("create", &dependants(&owner, &elsewhere));
    assert!(created.success, "{}", created.stderr);
    eventually("the owner in another namespace is reported", || {
        let events = kubectl.run("get events").stdout;
        let is_reported = events.contains("OwnerRefInvalidNamespace");
        is_reported.then_some(()).ok_or(events)
    });

    kubectl.ok("delete configmap owner --cascade=foreground --wait=false");
    eventually("the reason of the deletion is known", || {
        let why = cluster.setpoint_json(0, "why configmap/held -n default")?;
        let is_known = why.to_string().contains(BECAUSE);
        is_known.then_some(()).ok_or(format!("{why:#}"))
    });
    let leader = cluster.leader(SERVICE);
    cluster.process(&leader).kill();
    kubectl.ok(r#"patch configmap held --type=merge -p {"metadata":{"finalizers":null}}"#);
    kubectl.ok("wait configmap/owner --for=delete --timeout=60s");
    let gone = kubectl.run("get configmap held");
    assert!(gone.stderr.contains("NotFound"), "{gone:?}");
}
