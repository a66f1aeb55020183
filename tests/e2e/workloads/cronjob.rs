//! CronJobs.

use setpoint_tests::{Cluster, Kubectl, Size, WallClock};

use super::{MANAGER, create, flags, names, until, until_some};

const TICKER: &str = r#"
apiVersion: batch/v1
kind: CronJob
metadata: {name: ticker}
spec:
  schedule: "* * * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, image: job, command: ["true"]}]
"#;

/// Checks J1.
#[test]
fn a_tick_has_one_job_whatever_restarts() {
    let Some(clock) = WallClock::new() else {
        return;
    };
    let mut cluster = Cluster::start(Size {
        process_nodes: 0,
        simulated_nodes: 1,
        ..Size::default()
    });
    cluster.service_by(&clock, MANAGER, 0, &flags());
    let kubectl = cluster.kubectl();
    create(&kubectl, TICKER);
    kubectl.ok("create job by-hand --from=cronjob/ticker");
    kubectl.ok("wait --for=condition=complete job/by-hand --timeout=60s");
    clock.set(60);
    wake(&kubectl, "a");
    until_some(&kubectl, "cronjob/ticker", ".status.lastSuccessfulTime");
    kubectl.ok(r#"patch cronjob ticker -p {"spec":{"suspend":true}}"#);
    let jobs = names(&kubectl, "jobs");
    cluster.process("controller-manager-0").kill();
    cluster.process("controller-manager-0").restart();
    cluster.leader("cronjob-controller");
    wake(&kubectl, "b");
    until(&kubectl, "cronjob/ticker", ".status.active", "");
    assert_eq!(names(&kubectl, "jobs"), jobs);
    kubectl.ok("delete cronjob ticker");
    until(&kubectl, "jobs", ".items[*].metadata.name", "");
}

/// Causes a reconcile. The controller waits for the next tick by its monotonic clock, which has not been set.
fn wake(kubectl: &Kubectl, value: &str) {
    kubectl.ok(&format!("annotate cronjob ticker --overwrite wake={value}"));
}
