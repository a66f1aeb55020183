//! ReplicationControllers.

use super::{cluster, create, names, until, value};

const WEB: &str = r#"
apiVersion: v1
kind: ReplicationController
metadata: {name: web}
spec:
  replicas: 3
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: web}]
"#;

#[test]
fn pods_are_replaced_released_and_scaled() {
    let cluster = cluster(2);
    let kubectl = cluster.kubectl();
    create(&kubectl, WEB);
    until(&kubectl, "rc/web", ".status.availableReplicas", "3");
    let first = names(&kubectl, "pods -l app=web").remove(0);
    kubectl.ok(&format!("label pod {first} --overwrite app=other"));
    until(
        &kubectl,
        &format!("pod/{first}"),
        ".metadata.ownerReferences",
        "",
    );
    until(&kubectl, "rc/web", ".status.availableReplicas", "3");
    kubectl.ok("scale rc web --replicas=1");
    until(&kubectl, "rc/web", ".status.replicas", "1");
    kubectl.ok("delete rc web");
    until(&kubectl, "pods", ".items[*].metadata.name", &first);
    let reasons = value(
        &kubectl,
        "events",
        ".items[?(@.involvedObject.kind=='ReplicationController')].reason",
    );
    assert!(reasons.contains("SuccessfulCreate"), "{reasons}");
}
