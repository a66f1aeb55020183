//! StatefulSets.

use setpoint_tests::eventually;

use super::{cluster, create, names, until, value};

const WEB: &str = r#"
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  serviceName: web
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: "web:1"}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
"#;

#[test]
fn pods_have_stable_names_and_are_updated_from_the_last_one() {
    let cluster = cluster(3);
    let kubectl = cluster.kubectl();
    create(&kubectl, WEB);
    kubectl.ok("rollout status statefulset/web --timeout=60s");
    let pods = || names(&kubectl, "pods -l app=web");
    assert_eq!(pods(), ["web-0", "web-1", "web-2"]);
    assert_eq!(value(&kubectl, "pod/web-1", ".spec.hostname"), "web-1");

    let uid = value(&kubectl, "pod/web-1", ".metadata.uid");
    kubectl.ok("delete pod web-1 --wait=false");
    eventually("another Pod has its name", || {
        let found = value(&kubectl, "pod/web-1", ".metadata.uid");
        let replaced = !found.is_empty() && found != uid;
        replaced.then_some(()).ok_or(found)
    });
    until(
        &kubectl,
        "statefulset/web",
        ".status.availableReplicas",
        "3",
    );
    assert_eq!(pods(), ["web-0", "web-1", "web-2"]);

    let partition = r#"{"spec":{"updateStrategy":{"rollingUpdate":{"partition":2}}}}"#;
    kubectl.ok(&format!("patch statefulset web -p {partition}"));
    kubectl.ok("set image statefulset/web main=web:2");
    until(&kubectl, "pod/web-2", ".spec.containers[0].image", "web:2");
    until(
        &kubectl,
        "statefulset/web",
        ".status.availableReplicas",
        "3",
    );
    assert_eq!(
        value(&kubectl, "pod/web-1", ".spec.containers[0].image"),
        "web:1"
    );
    kubectl.ok(&format!(
        "patch statefulset web -p {}",
        partition.replace('2', "0")
    ));
    kubectl.ok("rollout status statefulset/web --timeout=60s");
    kubectl.ok("rollout undo statefulset/web");
    kubectl.ok("rollout status statefulset/web --timeout=60s");
    assert_eq!(
        value(
            &kubectl,
            "pods -l app=web",
            ".items[*].spec.containers[0].image"
        ),
        "web:1 web:1 web:1"
    );
    assert_eq!(
        kubectl
            .ok("rollout history statefulset/web")
            .trim()
            .lines()
            .count(),
        4
    );

    kubectl.ok("scale statefulset web --replicas=1");
    until(
        &kubectl,
        "pods -l app=web",
        ".items[*].metadata.name",
        "web-0",
    );
}

#[test]
fn claims_are_made_for_each_pod_and_kept_when_it_goes() {
    let cluster = cluster(1);
    let kubectl = cluster.kubectl();
    create(&kubectl, &WEB.replace("replicas: 3", "replicas: 1"));
    until(&kubectl, "pvc", ".items[*].metadata.name", "data-web-0");
    let claim = value(
        &kubectl,
        "pod/web-0",
        ".spec.volumes[?(@.name=='data')].persistentVolumeClaim.claimName",
    );
    assert_eq!(claim, "data-web-0");
    kubectl.ok("delete statefulset web");
    until(&kubectl, "pods", ".items[*].metadata.name", "");
    assert_eq!(names(&kubectl, "pvc"), ["data-web-0"]);
}
