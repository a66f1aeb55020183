//! PersistentVolumes and claims.

use setpoint_tests::{Kubectl, eventually};

use super::{cluster, create, names, until, until_some, value};

const STATEFUL_SET: &str = r#"
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: main, image: "db:1", volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"#;

const STATIC: &str = r#"
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  capacity: {storage: 5Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: manual
  hostPath: {path: /disks/one}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: archive}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: manual
  resources: {requests: {storage: 3Gi}}
---
apiVersion: v1
kind: Pod
metadata: {name: archiver}
spec:
  containers: [{name: main, image: "archiver:1"}]
  volumes: [{name: archive, persistentVolumeClaim: {claimName: archive}}]
"#;

/// Returns the cells of a table, without the header.
fn rows(kubectl: &Kubectl, resource: &str) -> Vec<Vec<String>> {
    let table = kubectl.ok(&format!("get {resource} --no-headers"));
    let row = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    table.lines().map(row).collect()
}

/// Returns the uid of a claim and the name of its volume.
fn identity(kubectl: &Kubectl, claim: &str) -> (String, String) {
    let of = |path: &str| value(kubectl, &format!("pvc/{claim}"), path);
    (of(".metadata.uid"), of(".spec.volumeName"))
}

#[test]
fn a_stateful_set_with_claims_comes_up_and_finds_its_volumes_again() {
    let cluster = cluster(3);
    let kubectl = cluster.kubectl();
    eventually("the default class exists", || {
        let classes = kubectl.run("get sc --no-headers").stdout;
        let is_default = classes.starts_with("standard (default)");
        is_default.then_some(()).ok_or(classes)
    });
    let class = &rows(&kubectl, "sc")[0];
    let expected = [
        "standard",
        "(default)",
        "setpoint.dev/local-path",
        "Delete",
        "WaitForFirstConsumer",
        "false",
    ];
    assert_eq!(class[..6], expected);
    create(&kubectl, STATEFUL_SET);
    kubectl.ok("rollout status statefulset/db --timeout=60s");
    for claim in ["data-db-0", "data-db-1"] {
        let (uid, volume) = identity(&kubectl, claim);
        assert_eq!(volume, format!("pvc-{uid}"));
        let pod = format!("pod/{}", claim.trim_start_matches("data-"));
        let node = value(&kubectl, &pod, ".spec.nodeName");
        let there = value(
            &kubectl,
            &format!("pv/{volume}"),
            ".spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].values[0]",
        );
        assert_eq!(there, node);
    }
    let claims = rows(&kubectl, "pvc");
    let volumes = rows(&kubectl, "pv");
    assert_eq!((claims.len(), volumes.len()), (2, 2));
    for claim in &claims {
        assert_eq!(claim[1], "Bound");
        assert_eq!(claim[3..6], ["1Gi", "RWO", "standard"]);
    }
    for volume in &volumes {
        assert_eq!(volume[1..5], ["1Gi", "RWO", "Delete", "Bound"]);
        assert!(volume[5].starts_with("default/data-db-"), "{volume:?}");
    }

    let before = identity(&kubectl, "data-db-1");
    kubectl.ok("delete statefulset db");
    until(&kubectl, "pods", ".items[*].metadata.name", "");
    assert_eq!(names(&kubectl, "pvc"), ["data-db-0", "data-db-1"]);
    create(&kubectl, STATEFUL_SET);
    kubectl.ok("rollout status statefulset/db --timeout=60s");
    assert_eq!(
        identity(&kubectl, "data-db-1"),
        before,
        "its data is there again"
    );

    let retention = r#"{"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete","whenScaled":"Delete"}}}"#;
    kubectl.ok(&format!("patch statefulset db -p {retention}"));
    kubectl.ok("scale statefulset db --replicas=1");
    until(&kubectl, "pvc", ".items[*].metadata.name", "data-db-0");
    kubectl.ok("delete statefulset db");
    until(&kubectl, "pvc", ".items[*].metadata.name", "");
    until(&kubectl, "pv", ".items[*].metadata.name", "");
}

/// A volume whose folder nobody can remove, since its node is gone.
const LEFT: &str = "apiVersion: v1
kind: PersistentVolume
metadata:
  name: left
  annotations: {setpoint.dev/node: gone}
  finalizers: [setpoint.dev/local-path]
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  hostPath: {path: /tmp/left}
";

#[test]
fn a_static_volume_is_bound_and_a_claim_in_use_waits_for_its_pod() {
    let cluster = cluster(1);
    let kubectl = cluster.kubectl();
    create(&kubectl, STATIC);
    until(&kubectl, "pod/archiver", ".status.phase", "Running");
    assert_eq!(
        value(&kubectl, "pvc/archive", ".status.capacity.storage"),
        "5Gi"
    );
    let volume = &rows(&kubectl, "pv")[0];
    let expected = [
        "disk",
        "5Gi",
        "RWO",
        "Retain",
        "Bound",
        "default/archive",
        "manual",
    ];
    assert_eq!(volume[..7], expected);

    create(&kubectl, LEFT);
    kubectl.ok("delete pvc archive --wait=false");
    kubectl.ok("delete pv disk left --wait=false");
    until_some(&kubectl, "pvc/archive", ".metadata.deletionTimestamp");
    assert_eq!(rows(&kubectl, "pvc")[0][1], "Terminating");
    let finalizers = value(&kubectl, "pvc/archive", ".metadata.finalizers[*]");
    assert_eq!(finalizers, "kubernetes.io/pvc-protection");
    kubectl.ok("delete pod archiver --now");
    until(&kubectl, "pvc", ".items[*].metadata.name", "");
    until(&kubectl, "pv", ".items[*].metadata.name", "");
}

#[test]
fn a_pod_whose_claims_are_not_bound_waits_and_says_so() {
    let cluster = cluster(1);
    let kubectl = cluster.kubectl();
    let (_, rest) = STATIC.split_once("---").expect("it has several objects");
    create(&kubectl, rest);
    eventually("the Pod waits for its claim", || {
        let conditions = value(&kubectl, "pod/archiver", ".status.conditions[*].message");
        let waits = conditions.contains("pod has unbound immediate PersistentVolumeClaims");
        waits.then_some(()).ok_or(conditions)
    });
    let (volume, _) = STATIC.split_once("---").expect("it has several objects");
    create(&kubectl, volume);
    until(&kubectl, "pvc/archive", ".status.phase", "Bound");
    until(&kubectl, "pod/archiver", ".status.phase", "Running");
}
