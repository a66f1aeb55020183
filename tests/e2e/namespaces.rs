//! A namespace is deleted with its content.

use setpoint_tests::{Cluster, Size, eventually, fast_election};

use crate::workloads::MANAGER;

/// A ConfigMap that stays until its finalizer is removed.
const HELD: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: held, namespace: shop, finalizers: [example.com/held]}
"#;
const REMAINING: &str = "Some content in the namespace has finalizers remaining: example.com/held in 1 resource instances";
const BECAUSE: &str = "its namespace is being deleted and has no more Pods";

/// Checks K9.
#[test]
fn kubectl_deletes_a_namespace_although_the_leader_is_killed_before_its_end() {
    let mut cluster = Cluster::start(Size {
        process_nodes: 0,
        simulated_nodes: 2,
        ..Size::default()
    });
    let flags = vec!["--controllers=*,-deployment,-replicaset".to_owned()];
    let flags = [fast_election(), flags].concat();
    cluster.service(MANAGER, 0, &flags);
    cluster.service(MANAGER, 1, &flags);
    let kubectl = cluster.kubectl();
    kubectl.ok("create namespace shop");
    kubectl.ok("create deployment web -n shop --image=web --replicas=3");
    kubectl.ok("rollout status deployment/web -n shop --timeout=60s");
    let held = kubectl.with("create", HELD);
    assert!(held.success, "{}", held.stderr);

    kubectl.ok("delete namespace shop --wait=false");
    eventually("a condition names the finalizer", || {
        let path = r#"{.status.conditions[?(@.type=="NamespaceFinalizersRemaining")].message}"#;
        let message = kubectl.run(&format!("get namespace shop -o jsonpath={path}"));
        let is_named = message.stdout == REMAINING;
        is_named.then_some(()).ok_or(format!("{message:?}"))
    });
    assert_eq!(
        kubectl.ok("get all -n shop -o name"),
        "",
        "the rest is gone"
    );
    eventually("the reason is known", || {
        let why = cluster.setpoint_json(0, "why configmap/held -n shop")?;
        let is_known = why.to_string().contains(BECAUSE);
        is_known.then_some(()).ok_or(format!("{why:#}"))
    });

    let leader = cluster.leader("namespace-controller");
    cluster.process(&leader).kill();
    kubectl.ok(r#"patch configmap held -n shop --type=merge -p {"metadata":{"finalizers":null}}"#);
    kubectl.ok("wait namespace/shop --for=delete --timeout=60s");
    let gone = kubectl.run("get namespace shop");
    assert!(gone.stderr.contains("NotFound"), "{gone:?}");
}
