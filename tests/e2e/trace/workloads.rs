//! A Job and its Pods are one trace, and so is the tick of a HorizontalPodAutoscaler that scales, with what follows
//! from it.

use setpoint_tests::Size;
use setpoint_tests::trace::Trace;

use super::watched::{POD, Path, Watched};
use crate::workloads::{CONTROLLERS, MANAGER, create};

const JOB: &str = r#"
apiVersion: batch/v1
kind: Job
metadata: {name: two}
spec:
  completions: 2
  parallelism: 2
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: job, command: ["true"]}]
"#;

const LOADED: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {setpoint.dev/simulated-load: 140m}}
    spec:
      containers: [{name: main, image: web, resources: {requests: {cpu: 100m}}}]
"#;

#[test]
fn a_job_and_a_tick_of_an_autoscaler_are_one_trace_each() {
    let mut watched = Watched::start(Size {
        process_nodes: 0,
        simulated_nodes: 2,
        ..Size::default()
    });
    // With the default leases, no delay makes a tick part of a takeover.
    let flags = CONTROLLERS.map(str::to_owned);
    watched.cluster.service(MANAGER, 0, &flags);
    for controller in ["job-controller", "horizontalpodautoscaler-controller"] {
        watched.cluster.leader(controller);
    }
    a_job(&watched);
    a_tick(&watched);
}

fn a_job(watched: &Watched) {
    create(&watched.kubectl, JOB);
    watched
        .kubectl
        .ok("wait --for=condition=complete job/two --timeout=60s");
    let to_a_pod: Path<'_> = &[
        ("gateway", "POST /apis/batch/v1/namespaces/{namespace}/jobs"),
        (MANAGER, "reconcile"),
        (MANAGER, "Create"),
    ];
    let pod = [to_a_pod, &POD[2..7]].concat();
    let trace = watched.trace_with(&pod, 2, |trace| counts(trace, "PUT jobs") >= 2);
    assert_whole(&trace);
    assert_only_one(watched, &trace, "default/two");
}

/// Returns the number of spans of the gateway with this name.
fn counts(trace: &Trace, name: &str) -> usize {
    let spans = trace.spans.iter();
    spans.filter(|span| span.is(&("gateway", name))).count()
}

fn a_tick(watched: &Watched) {
    create(&watched.kubectl, LOADED);
    watched
        .kubectl
        .ok("rollout status deployment/web --timeout=60s");
    watched
        .kubectl
        .ok("autoscale deployment web --cpu-percent=70 --min=1 --max=10");
    let to_the_set: Path<'_> = &[
        (MANAGER, "reconcile"),
        (MANAGER, "Scale"),
        ("gateway", "PUT deployments"),
        ("deployment-controller", "reconcile"),
        ("deployment-controller", "Scale"),
        ("gateway", "PATCH replicasets"),
    ];
    let pod = [to_the_set, POD].concat();
    let trace = watched.trace_with(&pod, 1, |_| true);
    assert_whole(&trace);
}

/// Asserts that the trace has one root, and that no parent is missing.
fn assert_whole(trace: &Trace) {
    assert_eq!(trace.roots().len(), 1, "{}", trace.tree());
    assert!(trace.orphans().is_empty(), "{}", trace.tree());
}

/// Asserts that no other trace reconciles the object.
fn assert_only_one(watched: &Watched, trace: &Trace, object: &str) {
    let about = |other: &Trace| {
        let mut objects = other.spans.iter();
        objects.any(|span| span.tag("setpoint.object").is_some_and(|tag| tag == object))
    };
    assert!(about(trace), "{}", trace.tree());
    for other in watched.jaeger.traces() {
        assert!(other.id == trace.id || !about(&other), "{}", other.tree());
    }
}
