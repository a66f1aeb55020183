//! An operator of kopf: `cronbackup.py`.

use std::process::Command;

use setpoint_tests::{Cluster, Kubectl};

use super::{Operator, apply, beside, define, field, until, until_gone};
use crate::clients::client;

const JOB: &str = "cronjob/backup-nightly";
const RESUMED: &str = "Resuming is processed: 1 succeeded";

fn backup(schedule: &str) -> String {
    format!(
        "apiVersion: backups.example.com/v1
kind: CronBackup
metadata: {{name: nightly}}
spec: {{schedule: \"{schedule}\", target_database: shop}}
"
    )
}

fn operator(cluster: &Cluster) -> Option<Operator> {
    let mut command = Command::new(client("kopf")?);
    command
        .args(["run", "--standalone", "--namespace=default"])
        .arg(beside("cronbackup.py"));
    Some(Operator::start(cluster, "cronbackup", command))
}

#[test]
fn an_operator_of_kopf_keeps_a_cron_job_for_each_backup() {
    let mut cluster = Cluster::bare();
    cluster.start_housekeeping();
    let kubectl = cluster.kubectl();
    define(&kubectl, "cronbackup.yaml");
    let Some(mut operator) = operator(&cluster) else {
        return;
    };
    operator.logs("Initial authentication has finished", 1);
    it_creates_a_child_and_a_message(&kubectl);
    it_replaces_the_child_and_mends_drift(&kubectl);
    it_resumes_without_writes(&kubectl, &mut operator);
    it_survives_a_restart_of_the_gateway(&kubectl, &mut cluster);
    it_cleans_up_what_was_deleted_without_it(&kubectl, &mut operator);
}

fn it_creates_a_child_and_a_message(kubectl: &Kubectl) {
    apply(kubectl, &backup("0 2 * * *"));
    until(kubectl, JOB, ".spec.schedule", "0 2 * * *");
    let uid = field(kubectl, "cronbackup/nightly", ".metadata.uid");
    assert_eq!(field(kubectl, JOB, ".metadata.ownerReferences[*].uid"), uid);
    has_message(kubectl, "shop at 0 2 * * *");
    assert!(kubectl.ok("get cb").contains("shop at 0 2 * * *"));
    let finalizers = field(kubectl, "cronbackup/nightly", ".metadata.finalizers");
    assert_eq!(finalizers, r#"["kopf.zalando.org/KopfFinalizerMarker"]"#);
}

fn has_message(kubectl: &Kubectl, message: &str) {
    until(
        kubectl,
        "cronbackup/nightly",
        ".status.reconcile.message",
        message,
    );
}

fn it_replaces_the_child_and_mends_drift(kubectl: &Kubectl) {
    let uid = field(kubectl, JOB, ".metadata.uid");
    apply(kubectl, &backup("0 3 * * *"));
    until(kubectl, JOB, ".spec.schedule", "0 3 * * *");
    has_message(kubectl, "shop at 0 3 * * *");
    kubectl.ok(&format!(
        r#"patch {JOB} -p {{"spec":{{"schedule":"@hourly"}}}}"#
    ));
    until(kubectl, JOB, ".spec.schedule", "0 3 * * *");
    assert_eq!(field(kubectl, JOB, ".metadata.uid"), uid);
    kubectl.ok(&format!("delete {JOB}"));
    until(kubectl, JOB, ".spec.schedule", "0 3 * * *");
}

fn it_resumes_without_writes(kubectl: &Kubectl, operator: &mut Operator) {
    let versions = |kubectl: &Kubectl| {
        [JOB, "cronbackup/nightly"]
            .map(|object| field(kubectl, object, ".metadata.resourceVersion"))
    };
    operator.process.kill();
    let before = versions(kubectl);
    operator.process.restart();
    operator.logs(RESUMED, 1);
    assert_eq!(versions(kubectl), before);
    assert_eq!(kubectl.ok("get cronjobs -o name").lines().count(), 1);
}

fn it_survives_a_restart_of_the_gateway(kubectl: &Kubectl, cluster: &mut Cluster) {
    cluster.process("gateway-0").restart();
    cluster.wait_until_ready();
    apply(kubectl, &backup("0 4 * * *"));
    has_message(kubectl, "shop at 0 4 * * *");
    until(kubectl, JOB, ".spec.schedule", "0 4 * * *");
}

fn it_cleans_up_what_was_deleted_without_it(kubectl: &Kubectl, operator: &mut Operator) {
    operator.process.kill();
    kubectl.ok("delete cronbackup nightly --wait=false");
    let deleted = field(kubectl, "cronbackup/nightly", ".metadata.deletionTimestamp");
    assert_ne!(deleted, "", "the finalizer keeps the object");
    operator.process.restart();
    until_gone(kubectl, "cronbackup/nightly");
    until_gone(kubectl, JOB);
}
