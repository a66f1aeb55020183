//! kubectl in a namespace with a Pod security standard.

use setpoint_tests::{Cluster, Size, eventually};

const POD: &str = "apiVersion: v1
kind: Pod
metadata: {name: web, namespace: guarded}
spec:
  containers:
  - {name: web, image: web}
";

const ALLOWED: &str = "apiVersion: v1
kind: Pod
metadata: {name: allowed, namespace: guarded}
spec:
  securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: web
    image: web
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
";

const LACKS: &str = "violate PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false";
const LABEL: &str = "pod-security.kubernetes.io/enforce";

#[test]
fn a_restricted_namespace_refuses_pods_and_warns_of_workloads() {
    let cluster = Cluster::start(Size {
        process_nodes: 0,
        simulated_nodes: 1,
        ..Size::default()
    });
    let kubectl = cluster.kubectl();
    kubectl.ok("create namespace guarded");
    kubectl.ok(&format!("label namespace guarded {LABEL}=restricted"));
    eventually("a Pod is refused", || {
        let refused = kubectl.with("create --dry-run=server", POD);
        let expected = "pods \"web\" is forbidden: violates PodSecurity \"restricted:latest\"";
        let is_refused = !refused.success && refused.stderr.contains(expected);
        is_refused.then_some(()).ok_or(refused.stderr)
    });
    let allowed = kubectl.with("create", ALLOWED);
    assert!(allowed.success, "{}", allowed.stderr);
    assert!(!allowed.stderr.contains("Warning"), "{}", allowed.stderr);
    let created = kubectl.run("create deployment web --image=web --namespace=guarded");
    assert!(created.success, "{}", created.stderr);
    let warning = format!("Warning: would {LACKS}");
    assert!(created.stderr.contains(&warning), "{}", created.stderr);
    eventually("the Deployment says why it has no Pods", || {
        let web = kubectl.json("get deployment web --namespace=guarded");
        let why = web["status"]["conditions"].to_string();
        let is_told = why.contains("ReplicaFailure") && why.contains("violates PodSecurity");
        is_told.then_some(()).ok_or(why)
    });
    let relabelled = kubectl.run(&format!("label namespace default {LABEL}=strict"));
    let expected = "must be one of privileged, baseline, restricted";
    assert!(
        relabelled.stderr.contains(expected),
        "{}",
        relabelled.stderr
    );
}
