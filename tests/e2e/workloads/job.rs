//! Jobs.

use super::{MANAGER, cluster, create, flags, names, until, until_some, value};

/// Returns a Job of Pods that run a command, with more fields of its spec.
fn job(name: &str, fields: &str, command: &str) -> String {
    format!(
        "apiVersion: batch/v1
kind: Job
metadata: {{name: {name}}}
spec:
  {fields}
  template:
    spec:
      restartPolicy: Never
      containers: [{{name: main, image: job, command: {command}}}]
"
    )
}

const FAILED: &str = ".status.conditions[?(@.type=='Failed')].reason";

#[test]
fn jobs_complete_and_fail_by_their_policies() {
    let cluster = cluster(2);
    let kubectl = cluster.kubectl();
    let indexed = "completions: 5\n  parallelism: 2\n  completionMode: Indexed";
    create(&kubectl, &job("indexed", indexed, "[\"true\"]"));
    kubectl.ok("wait --for=condition=complete job/indexed --timeout=60s");
    let status = |field| value(&kubectl, "job/indexed", field);
    assert_eq!(status(".status.completedIndexes"), "0-4");
    assert_eq!(status(".status.succeeded"), "5");
    let pods = "pods -l batch.kubernetes.io/job-name=indexed";
    let finalizers = value(&kubectl, pods, ".items[*].metadata.finalizers");
    assert_eq!(finalizers, "", "all Pods are counted");

    let policy =
        "podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [42]}}]}";
    create(&kubectl, &job("refused", policy, "[sh, -c, exit 42]"));
    until(&kubectl, "job/refused", FAILED, "PodFailurePolicy");
    assert_eq!(value(&kubectl, "job/refused", ".status.failed"), "1");

    create(&kubectl, &job("failing", "backoffLimit: 0", "[\"false\"]"));
    until(&kubectl, "job/failing", FAILED, "BackoffLimitExceeded");

    create(&kubectl, &job("suspended", "suspend: true", "[\"true\"]"));
    until(
        &kubectl,
        "job/suspended",
        ".status.conditions[0].type",
        "Suspended",
    );
    kubectl.ok(r#"patch job suspended -p {"spec":{"suspend":false}}"#);
    kubectl.ok("wait --for=condition=complete job/suspended --timeout=60s");

    create(
        &kubectl,
        &job("short", "ttlSecondsAfterFinished: 0", "[\"true\"]"),
    );
    until(
        &kubectl,
        "jobs --field-selector metadata.name=short",
        ".items[*].metadata.name",
        "",
    );
}

/// Checks J4.
#[test]
fn each_pod_of_a_job_is_counted_once_while_its_controllers_are_killed() {
    let mut cluster = cluster(2);
    cluster.service(MANAGER, 1, &flags());
    let kubectl = cluster.kubectl();
    let parallel = "completions: 40\n  parallelism: 4";
    create(&kubectl, &job("many", parallel, "[sleep, \"0.1\"]"));
    for _ in 0..2 {
        let leader = cluster.leader("job-controller");
        until_some(&kubectl, "job/many", ".status.succeeded");
        cluster.process(&leader).kill();
        cluster.process(&leader).restart();
    }
    kubectl.ok("wait --for=condition=complete job/many --timeout=60s");
    assert_eq!(value(&kubectl, "job/many", ".status.succeeded"), "40");
    let pods = names(&kubectl, "pods -l batch.kubernetes.io/job-name=many");
    assert_eq!(pods.len(), 40, "each has succeeded, and is counted");
}
