//! What must hold when the cluster has come to rest: what was declared is there, and nothing else.

mod jobs;
mod left_over;
mod workloads;

use serde_json::Value;

use crate::snapshot::{Snapshot, name, text};
use crate::workload::{Kind, Shape, Workload};

/// Returns what does not hold, each with the name of the object.
pub fn problems(declared: &[Workload], snapshot: &Snapshot) -> Vec<String> {
    let mut problems = left_over::problems(declared, snapshot);
    for workload in declared {
        match (find(workload, snapshot), &workload.shape) {
            (None, Shape::Run(run)) if run.ttl => {}
            (None, _) => problems.push(format!("{} is missing", workload.path())),
            (Some(object), _) => problems.extend(check(workload, object, snapshot)),
        }
    }
    problems
}

fn find<'a>(workload: &Workload, snapshot: &'a Snapshot) -> Option<&'a Value> {
    let mut objects = snapshot.of(workload.kind.resource().1).iter();
    objects.find(|object| is(workload, object))
}

fn is(workload: &Workload, object: &Value) -> bool {
    text(object, "/metadata/name") == workload.name
        && text(object, "/metadata/namespace") == workload.namespace
}

/// Returns what does not hold for a workload.
fn check(workload: &Workload, object: &Value, snapshot: &Snapshot) -> Vec<String> {
    let mut findings = match workload.kind {
        Kind::Deployment => workloads::deployment(workload, object, snapshot),
        Kind::ReplicaSet => workloads::replica_set(workload, object, snapshot),
        Kind::StatefulSet => workloads::stateful_set(workload, object, snapshot),
        Kind::DaemonSet => workloads::daemon_set(workload, object, snapshot),
        Kind::Job => jobs::job(workload, object, snapshot),
        Kind::CronJob => jobs::cron_job(object, snapshot),
    };
    let name = name(workload.kind.resource().1, object);
    findings
        .iter_mut()
        .for_each(|finding| *finding = format!("{name}: {finding}"));
    findings
}

/// Adds a finding if a value is not the wanted one.
fn expect<T: PartialEq + std::fmt::Debug>(
    findings: &mut Vec<String>,
    what: &str,
    found: T,
    wanted: T,
) {
    if found != wanted {
        findings.push(format!("{what} is {found:?}, not {wanted:?}"));
    }
}
