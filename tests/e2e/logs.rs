//! `kubectl logs` with containers that run as processes.

use serde_json::Value;
use setpoint_tests::{Cluster, Kubectl, Size, eventually};

use crate::web::text;

const POD: &str = "apiVersion: v1
kind: Pod
metadata: {name: talker}
spec:
  restartPolicy: Never
  containers:
  - name: short
    image: sh
    command: [sh, -c, 'echo one; echo two; echo three']
  - name: long
    image: sh
    command: [sh, -c, 'echo begun; sleep 2; echo done']
";

/// Waits until each container has been started; before that it has no log.
fn until_started(kubectl: &Kubectl) {
    eventually("both containers have been started", || {
        let pod = kubectl.json("get pod talker");
        let statuses = pod["status"]["containerStatuses"].as_array();
        let started = |status: &&Value| !text(status, "/containerID").is_empty();
        let started = statuses.into_iter().flatten().filter(started).count();
        (started == 2)
            .then_some(())
            .ok_or(pod["status"].to_string())
    });
}

#[test]
fn kubectl_logs_returns_the_output_of_containers() {
    let cluster = Cluster::start(Size {
        process_nodes: 1,
        simulated_nodes: 0,
        ..Size::default()
    });
    let kubectl = cluster.kubectl();
    let applied = kubectl.with("apply", POD);
    assert!(applied.success, "{}", applied.stderr);
    until_started(&kubectl);
    assert_eq!(kubectl.ok("logs talker -c long --follow"), "begun\ndone\n");
    kubectl.ok("wait pod/talker --for=jsonpath={.status.phase}=Succeeded --timeout=60s");
    assert_eq!(kubectl.ok("logs talker -c short"), "one\ntwo\nthree\n");
    assert_eq!(kubectl.ok("logs talker -c short --tail=2"), "two\nthree\n");
    assert_eq!(kubectl.ok("logs talker -c short --limit-bytes=5"), "one\nt");
    for (asked, why) in [
        (
            "logs talker -c nobody",
            "container nobody is not valid for pod talker",
        ),
        (
            "logs talker -c short --previous",
            "previous terminated container \"short\" in pod \"talker\" not found",
        ),
        ("logs nobody", "pods \"nobody\" not found"),
        (
            "logs talker -c short --timestamps",
            "does not record timestamps of log lines",
        ),
    ] {
        let refused = kubectl.fails(asked);
        assert!(refused.contains(why), "{asked}: {refused}");
    }
    let raw = "get --raw /api/v1/namespaces/default/pods/talker/log";
    let refused = kubectl.fails(raw);
    let why = "a container name must be specified for pod talker, choose one of: [short long]";
    assert!(refused.contains(why), "{refused}");
}
