//! Volumes of Pods whose containers are processes, and the directories of PersistentVolumes.

use std::path::Path;

use nix::unistd::Uid;
use serde_json::Value;
use setpoint_tests::{Cluster, Kubectl, Size, eventually};

use crate::web::text;

/// Returns a Pod that mounts all kinds of volumes, and has the claim `data`.
fn pod(name: &str, script: &str) -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  restartPolicy: Never
  nodeName: node-0
  volumes:
  - {{name: words, configMap: {{name: words}}}}
  - {{name: keys, secret: {{secretName: keys}}}}
  - {{name: scratch, emptyDir: {{}}}}
  - {{name: data, persistentVolumeClaim: {{claimName: data}}}}
  containers:
  - name: main
    image: sh
    command: [sh, -c, '{script}']
    env: [{{name: NAME, valueFrom: {{fieldRef: {{fieldPath: metadata.name}}}}}}]
    volumeMounts:
    - {{name: words, mountPath: /tmp/setpoint-e2e/words}}
    - {{name: keys, mountPath: /tmp/setpoint-e2e/keys}}
    - {{name: scratch, mountPath: /tmp/setpoint-e2e/scratch, subPathExpr: logs/$(NAME)}}
    - {{name: data, mountPath: /tmp/setpoint-e2e/data}}
"
    )
}

const OBJECTS: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: words}
data: {greeting: hello}
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {key: hush}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: ''
  volumeName: pv-data
  resources: {requests: {storage: 1Mi}}
";

/// Creates the volume of the claim, bound to it as the controller of volumes would.
fn bind(kubectl: &Kubectl, folder: &str) {
    let claim = kubectl.json("get pvc data");
    let uid = text(&claim, "/metadata/uid");
    let volume = format!(
        "apiVersion: v1
kind: PersistentVolume
metadata:
  name: pv-data
  annotations: {{setpoint.dev/node: node-0}}
  labels: {{setpoint.dev/node: node-0}}
  finalizers: [setpoint.dev/local-path]
spec:
  accessModes: [ReadWriteOnce]
  capacity: {{storage: 1Mi}}
  persistentVolumeReclaimPolicy: Delete
  claimRef: {{apiVersion: v1, kind: PersistentVolumeClaim, namespace: default, name: data, uid: {uid}}}
  hostPath: {{path: {folder}/pv-data, type: DirectoryOrCreate}}
  nodeAffinity:
    required:
      nodeSelectorTerms:
      - matchExpressions: [{{key: kubernetes.io/hostname, operator: In, values: [node-0]}}]
"
    );
    let applied = kubectl.with("create", &volume);
    assert!(applied.success, "{}", applied.stderr);
    phase(kubectl, "pvc/data", "Bound");
}

fn phase(kubectl: &Kubectl, object: &str, phase: &str) {
    let patch = format!("{{\"status\":{{\"phase\":\"{phase}\"}}}}");
    kubectl.ok(&format!(
        "patch {object} --subresource=status --type=merge -p {patch}"
    ));
}

fn ended(kubectl: &Kubectl, name: &str) -> String {
    eventually(&format!("{name} has ended"), || {
        let pod: Value = kubectl.json(&format!("get pod {name}"));
        let phase = text(&pod, "/status/phase").to_owned();
        match phase.as_str() {
            "Succeeded" => Ok(()),
            _ => Err(format!("{phase}: {}", kubectl.run("get events").stdout)),
        }
    });
    kubectl.ok(&format!("logs {name}"))
}

/// Checks K14 and K16.
#[test]
fn a_process_has_its_volumes_and_a_persistent_one_outlives_its_pod() {
    if !Uid::effective().is_root() {
        eprintln!("SKIPPED: only an agent that is root mounts volumes for processes");
        return;
    }
    let cluster = Cluster::start(Size {
        process_nodes: 1,
        simulated_nodes: 0,
        ..Size::default()
    });
    let kubectl = cluster.kubectl();
    let applied = kubectl.with("apply", OBJECTS);
    assert!(applied.success, "{}", applied.stderr);
    let at = "cd /tmp/setpoint-e2e";
    let writer = format!(
        "{at}; cat words/greeting; echo; cat keys/key; echo; echo kept > data/file; echo part > scratch/file; ls words"
    );
    let applied = kubectl.with("create", &pod("writer", &writer));
    assert!(applied.success, "{}", applied.stderr);
    eventually("the Pod waits for its claim, with the reason", || {
        let events = kubectl.run("get events").stdout;
        let waits = events.contains("FailedMount") && events.contains("PVC is not bound");
        waits.then_some(()).ok_or(events)
    });
    let node = kubectl.json("get node node-0");
    let folder = text(&node, "/metadata/annotations/setpoint.dev~1local-path").to_owned();
    bind(&kubectl, &folder);
    assert_eq!(ended(&kubectl, "writer"), "hello\nhush\ngreeting\n");
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("Linux has mounts");
    assert!(
        !mounts.contains("setpoint-e2e"),
        "only the process has them"
    );
    kubectl.ok("delete pod writer");
    let created = kubectl.with(
        "create",
        &pod("reader", &format!("{at}; cat data/file; ls scratch")),
    );
    assert!(created.success, "{}", created.stderr);
    assert_eq!(
        ended(&kubectl, "reader"),
        "kept\n",
        "and its scratch is empty"
    );
    the_directory_is_removed_with_its_volume(&kubectl, &Path::new(&folder).join("pv-data"));
    let _ = std::fs::remove_dir_all("/tmp/setpoint-e2e");
}

fn the_directory_is_removed_with_its_volume(kubectl: &Kubectl, path: &Path) {
    assert!(path.join("file").exists());
    kubectl.ok("delete pod reader");
    let finalizers = "[{\"op\":\"remove\",\"path\":\"/metadata/finalizers\"}]";
    kubectl.ok("delete pvc data --wait=false");
    kubectl.run(&format!("patch pvc data --type=json -p {finalizers}"));
    phase(kubectl, "pv/pv-data", "Released");
    kubectl.ok("delete pv pv-data --wait=false");
    // The protection by the controller of volumes ends.
    let only_ours = "{\"metadata\":{\"finalizers\":[\"setpoint.dev/local-path\"]}}";
    kubectl.run(&format!("patch pv pv-data --type=merge -p {only_ours}"));
    eventually("the volume is gone, and its directory", || {
        let listed = kubectl.run("get pv pv-data");
        let gone = !listed.success && !path.exists();
        gone.then_some(()).ok_or(listed.stdout)
    });
}
