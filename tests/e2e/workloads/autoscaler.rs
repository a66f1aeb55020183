//! HorizontalPodAutoscalers on the CPU usage of simulated Pods and of processes.

use std::fs;

use setpoint_tests::Size;

use super::{cluster, cluster_of, create, until, until_some, value};

const WEB: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {setpoint.dev/simulated-load: 420m}}
    spec:
      containers: [{name: main, image: web, resources: {requests: {cpu: 100m}}}]
"#;

/// The object in the version that has metrics of every kind.
const HPA: &str = "horizontalpodautoscalers.v2.autoscaling/web";

/// Checks H1: 3 Pods at 140 % of their request, against a target of 70 %, become 6. Checks H2: only the scale is
/// written.
#[test]
fn a_deployment_is_scaled_to_its_load() {
    let cluster = cluster(3);
    let kubectl = cluster.kubectl();
    create(&kubectl, WEB);
    kubectl.ok("rollout status deployment/web --timeout=60s");
    kubectl.ok("autoscale deployment web --cpu-percent=70 --min=1 --max=10");
    until(&kubectl, "deployment/web", ".spec.replicas", "6");
    until(&kubectl, HPA, ".status.desiredReplicas", "6");
    until_some(
        &kubectl,
        HPA,
        ".status.currentMetrics[0].resource.current.averageUtilization",
    );
    let able = ".status.conditions[?(@.type=='AbleToScale')].status";
    assert_eq!(value(&kubectl, HPA, able), "True");
    until(
        &kubectl,
        "events",
        ".items[?(@.reason=='SuccessfulRescale')].message",
        "New size: 6; reason: cpu resource utilization (percentage of request) above target",
    );
    let managers = value(
        &kubectl,
        "deployment/web --show-managed-fields",
        ".metadata.managedFields[?(@.subresource=='scale')].manager",
    );
    assert_eq!(managers, "horizontalpodautoscaler-controller");
}

/// A Pod that computes until a file exists, and then sleeps.
const BUSY: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: busy}
spec:
  selector: {matchLabels: {app: busy}}
  template:
    metadata: {labels: {app: busy}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: main
        image: sh
        command: [sh, -c, "until [ -e FILE ]; do :; done; while :; do sleep 1; done"]
        resources: {requests: {cpu: 20m}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: busy}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: busy}
  minReplicas: 1
  maxReplicas: 2
  behavior: {scaleDown: {stabilizationWindowSeconds: 0}}
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
"#;

#[test]
fn a_busy_process_is_scaled_up_and_an_idle_one_down() {
    let cluster = cluster_of(Size {
        process_nodes: 1,
        simulated_nodes: 0,
        ..Size::default()
    });
    let kubectl = cluster.kubectl();
    let file = cluster.directory().join("idle");
    create(&kubectl, &BUSY.replace("FILE", &file.to_string_lossy()));
    until(&kubectl, "deployment/busy", ".status.readyReplicas", "2");
    fs::write(&file, "").expect("it is writable");
    until(&kubectl, "deployment/busy", ".spec.replicas", "1");
    until(&kubectl, "deployment/busy", ".status.replicas", "1");
}

/// An autoscaler with the minimum of 3, and a client that keeps setting 1: flap detection names both, and the field.
#[test]
fn a_client_that_undoes_the_writes_of_an_autoscaler_is_named() {
    let cluster = cluster(2);
    let kubectl = cluster.kubectl();
    create(&kubectl, WEB);
    kubectl.ok("autoscale deployment web --cpu-percent=1000 --min=3 --max=10");
    until_some(&kubectl, HPA, ".status.desiredReplicas");
    for _ in 0..3 {
        until(&kubectl, "deployment/web", ".spec.replicas", "3");
        kubectl.ok(
            r#"patch deployment web --subresource=scale --field-manager=operator -p {"spec":{"replicas":1}}"#,
        );
    }
    until(&kubectl, "deployment/web", ".spec.replicas", "3");
    until(
        &kubectl,
        "events --field-selector reason=FieldFlapping",
        ".items[0].message",
        "horizontalpodautoscaler-controller and operator undo each other's writes of spec.replicas",
    );
}

/// The conflict of an autoscaler and a manifest that sets replicas, and the way out: a manifest without them.
#[test]
fn an_applied_manifest_leaves_the_replicas_to_the_autoscaler() {
    let cluster = cluster(2);
    let kubectl = cluster.kubectl();
    let apply =
        |manifest: &str| kubectl.with("apply --server-side --field-manager=gitops", manifest);
    assert!(apply(WEB).success);
    kubectl.ok("autoscale deployment web --cpu-percent=70 --min=1 --max=10");
    until(&kubectl, "deployment/web", ".spec.replicas", "6");
    let refused = apply(WEB);
    let conflict = r#"conflict with "horizontalpodautoscaler-controller" with subresource "scale""#;
    assert!(refused.stderr.contains(conflict), "{}", refused.stderr);
    assert!(
        refused.stderr.contains(".spec.replicas"),
        "{}",
        refused.stderr
    );

    let without = WEB.replace("  replicas: 3\n", "");
    for _ in 0..2 {
        let applied = apply(&without);
        assert!(applied.success, "{}", applied.stderr);
        assert_eq!(value(&kubectl, "deployment/web", ".spec.replicas"), "6");
    }
}
