//! Workloads whose Pods run.

use serde_json::Value;

use super::expect;
use crate::snapshot::{Snapshot, is_true, number, text};
use crate::workload::{BOUNDS, REQUEST, SLICE, Shape, TARGET, Workload};

/// The share by which the load of Pods may differ from the target of an autoscaler.
const TOLERANCE: f64 = 0.1;

pub fn deployment(workload: &Workload, object: &Value, snapshot: &Snapshot) -> Vec<String> {
    let mut findings = replicas(
        workload,
        object,
        &[
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
        ],
    );
    for condition in ["Available", "Progressing"] {
        expect(&mut findings, condition, is_true(object, condition), true);
    }
    let sets: Vec<_> = snapshot.controlled("replicasets", object).collect();
    let limit = number(object, "/spec/revisionHistoryLimit");
    let old = sets
        .iter()
        .filter(|set| number(set, "/spec/replicas") == 0)
        .count();
    if i64::try_from(old).unwrap_or(i64::MAX) > limit.saturating_add(1) {
        findings.push(format!(
            "{old} ReplicaSets without replicas, of at most {limit}"
        ));
    }
    let desired = number(object, "/spec/replicas");
    let active = sets
        .iter()
        .filter(|set| number(set, "/spec/replicas") > 0)
        .count();
    expect(
        &mut findings,
        "number of active ReplicaSets",
        active,
        usize::from(desired > 0),
    );
    findings.extend(autoscaled(workload, object, snapshot));
    let pods = sets
        .iter()
        .map(|set| snapshot.controlled("pods", set).count())
        .sum();
    findings.extend(pod_count(pods, desired));
    findings
}

pub fn replica_set(workload: &Workload, object: &Value, snapshot: &Snapshot) -> Vec<String> {
    let mut findings = replicas(
        workload,
        object,
        &["replicas", "readyReplicas", "availableReplicas"],
    );
    let pods = snapshot.controlled("pods", object).count();
    findings.extend(pod_count(pods, number(object, "/spec/replicas")));
    findings
}

pub fn stateful_set(workload: &Workload, object: &Value, snapshot: &Snapshot) -> Vec<String> {
    let mut findings = replicas(
        workload,
        object,
        &[
            "replicas",
            "readyReplicas",
            "availableReplicas",
            "updatedReplicas",
        ],
    );
    let revision = |which| text(object, which);
    let update = revision("/status/updateRevision");
    if number(object, "/spec/replicas") > 0 {
        expect(
            &mut findings,
            "currentRevision",
            revision("/status/currentRevision"),
            update,
        );
    }
    let mut names: Vec<_> = snapshot
        .controlled("pods", object)
        .map(|pod| text(pod, "/metadata/name").to_owned())
        .collect();
    let mut wanted: Vec<_> = (0..number(object, "/spec/replicas"))
        .map(|ordinal| format!("{}-{ordinal}", workload.name))
        .collect();
    names.sort();
    wanted.sort();
    expect(&mut findings, "the names of its Pods", names, wanted);
    findings.extend(revisions(object, snapshot));
    findings
}

pub fn daemon_set(workload: &Workload, object: &Value, snapshot: &Snapshot) -> Vec<String> {
    let mut findings = seen(object);
    let Shape::Slice(slice) = workload.shape else {
        return findings;
    };
    let label = format!("/metadata/labels/{SLICE}");
    let nodes = snapshot.of("nodes").iter();
    let mut wanted: Vec<_> = nodes
        .filter(|node| text(node, &label) == slice.to_string())
        .map(|node| text(node, "/metadata/name").to_owned())
        .collect();
    let desired = i64::try_from(wanted.len()).unwrap_or(i64::MAX);
    for field in [
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "updatedNumberScheduled",
        "numberReady",
        "numberAvailable",
    ] {
        expect(
            &mut findings,
            field,
            number(object, &format!("/status/{field}")),
            desired,
        );
    }
    expect(
        &mut findings,
        "numberMisscheduled",
        number(object, "/status/numberMisscheduled"),
        0,
    );
    let pods = snapshot.controlled("pods", object);
    let mut nodes: Vec<_> = pods
        .map(|pod| text(pod, "/spec/nodeName").to_owned())
        .collect();
    nodes.sort();
    wanted.sort();
    expect(&mut findings, "the nodes of its Pods", nodes, wanted);
    findings.extend(revisions(object, snapshot));
    findings
}

/// Compares the numbers of a status with the declared number of replicas, and with that of the spec.
fn replicas(workload: &Workload, object: &Value, fields: &[&str]) -> Vec<String> {
    let mut findings = seen(object);
    let desired = number(object, "/spec/replicas");
    if let Shape::Replicas {
        replicas: Some(declared),
        load,
        ..
    } = workload.shape
        && !matches!(load, Some((_, true)))
    {
        expect(&mut findings, "spec.replicas", desired, declared);
    }
    for field in fields {
        expect(
            &mut findings,
            field,
            number(object, &format!("/status/{field}")),
            desired,
        );
    }
    findings
}

/// Returns a finding if the status is of an older generation, or the object is being deleted.
fn seen(object: &Value) -> Vec<String> {
    let mut findings = Vec::new();
    let generation = number(object, "/metadata/generation");
    expect(
        &mut findings,
        "observedGeneration",
        number(object, "/status/observedGeneration"),
        generation,
    );
    expect(
        &mut findings,
        "deletionTimestamp",
        text(object, "/metadata/deletionTimestamp"),
        "",
    );
    findings
}

fn pod_count(pods: usize, desired: i64) -> Option<String> {
    let pods = i64::try_from(pods).unwrap_or(i64::MAX);
    (pods != desired).then(|| format!("it controls {pods} Pods, not {desired}"))
}

/// Returns a finding if more ControllerRevisions than the history and the live ones are kept.
fn revisions(object: &Value, snapshot: &Snapshot) -> Option<String> {
    let count = snapshot.controlled("controllerrevisions", object).count();
    let limit = number(object, "/spec/revisionHistoryLimit");
    let most = limit.saturating_add(2);
    (i64::try_from(count).unwrap_or(i64::MAX) > most)
        .then(|| format!("it has {count} ControllerRevisions with a history of {limit}"))
}

/// Compares the replicas of an autoscaled Deployment with its load.
fn autoscaled(workload: &Workload, object: &Value, snapshot: &Snapshot) -> Vec<String> {
    let Shape::Replicas {
        load: Some((load, true)),
        ..
    } = workload.shape
    else {
        return Vec::new();
    };
    let mut hpas = snapshot.of("horizontalpodautoscalers").iter();
    let Some(hpa) = hpas.find(|hpa| super::is(workload, hpa)) else {
        return vec!["its HorizontalPodAutoscaler is missing".to_owned()];
    };
    let mut findings = Vec::new();
    for condition in ["AbleToScale", "ScalingActive"] {
        expect(&mut findings, condition, is_true(hpa, condition), true);
    }
    let replicas = number(object, "/spec/replicas");
    expect(
        &mut findings,
        "desiredReplicas",
        number(hpa, "/status/desiredReplicas"),
        replicas,
    );
    // Loads and numbers are small: they are exact in a float.
    let ratio = load as f64 / (replicas * REQUEST * TARGET) as f64 * 100.0;
    // Downscaling waits for five minutes, and is not waited for.
    if ratio > 1.0 + TOLERANCE && replicas < BOUNDS.1 {
        findings.push(format!(
            "{replicas} replicas are too few for a load of {load}m"
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::workload::Kind;

    fn deployed(status: i64, sets: &[i64]) -> (Value, Snapshot) {
        let conditions = json!([
            {"type": "Available", "status": "True"}, {"type": "Progressing", "status": "True"},
        ]);
        let object = json!({
            "metadata": {"name": "web", "uid": "web", "generation": 2},
            "spec": {"replicas": 2, "revisionHistoryLimit": 10},
            "status": {
                "observedGeneration": 2, "conditions": conditions, "replicas": status,
                "updatedReplicas": status, "readyReplicas": status, "availableReplicas": status,
            },
        });
        let mut snapshot = Snapshot::default();
        let owned = |uid: &str, owner: &str| json!({"uid": uid, "ownerReferences": [{"uid": owner, "controller": true}]});
        for (n, replicas) in sets.iter().enumerate() {
            let set = format!("set-{n}");
            let spec = json!({"replicas": replicas});
            snapshot.add(
                "replicasets",
                json!({"metadata": owned(&set, "web"), "spec": spec}),
            );
            for _ in 0..*replicas {
                snapshot.add("pods", json!({"metadata": owned("pod", &set)}));
            }
        }
        (object, snapshot)
    }

    fn findings(status: i64, sets: &[i64]) -> usize {
        let (object, snapshot) = deployed(status, sets);
        let workload = Workload {
            kind: Kind::Deployment,
            namespace: "soak-0",
            name: "web".to_owned(),
            image: 1,
            shape: Shape::Replicas {
                replicas: Some(2),
                strategy: "Recreate",
                load: None,
            },
        };
        deployment(&workload, &object, &snapshot).len()
    }

    #[test]
    fn a_deployment_has_its_pods_in_one_replica_set() {
        assert_eq!(findings(2, &[2, 0]), 0);
        assert_eq!(findings(1, &[2, 0]), 4, "the numbers of its status");
        assert_eq!(findings(2, &[1, 1]), 1, "two active ReplicaSets");
        assert_eq!(findings(2, &[2, 1]), 2, "and a Pod too many");
        assert_eq!(findings(2, &[3]), 1, "a doubled Pod");
        assert_eq!(
            findings(2, &[2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            1,
            "twelve old sets"
        );
    }
}
