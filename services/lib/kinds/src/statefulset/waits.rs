//! The reasons for which a StatefulSet waits: the ordinal that blocks the others, and an update in progress. Pure.

use setpoint_model::owner::controller_of;
use setpoint_proto::apps::StatefulSet;
use setpoint_proto::core::Pod;
use setpoint_proto::setpoint::{ObjectRef, Wait};

use crate::waits::wait;

/// Returns what a StatefulSet waits for, given its Pods that are not ready. What these wait for is explained with them.
pub(super) fn waits(set: &StatefulSet, pods: &[(ObjectRef, Pod)]) -> Vec<Wait> {
    let blocked = blocked(set, pods).or_else(|| unavailable(set));
    blocked.into_iter().chain(update(set)).collect()
}

/// Returns the wait for the lowest ordinal that is not ready, if it blocks others.
fn blocked(set: &StatefulSet, pods: &[(ObjectRef, Pod)]) -> Option<Wait> {
    let of_set = |pod: &Pod| {
        let owner = controller_of(&pod.metadata);
        owner.is_some_and(|owner| owner.uid == set.metadata.uid)
    };
    let ordinal = |name: &str| name.rsplit_once('-')?.1.parse::<i64>().ok();
    let ordered = set.spec.pod_management_policy == "OrderedReady";
    let mut pods: Vec<_> = pods.iter().filter(|(_, pod)| of_set(pod)).collect();
    pods.sort_by_key(|(reference, _)| ordinal(&reference.name));
    let (reference, _) = pods.first().filter(|_| ordered)?;
    let message = format!(
        "{} is not ready; creates, deletes and updates of other ordinals wait for it",
        reference.name
    );
    Some(Wait {
        on: Some(reference.clone()),
        ..wait("OrderedReady", message)
    })
}

fn unavailable(set: &StatefulSet) -> Option<Wait> {
    let (status, seconds) = (&set.status, set.spec.min_ready_seconds);
    let missing = status
        .ready_replicas
        .saturating_sub(status.available_replicas);
    (missing > 0 && seconds > 0).then(|| {
        let message = format!("{missing} Pods were not ready for {seconds}s yet");
        wait("MinReadySeconds", message)
    })
}

/// Returns the wait for Pods of an old revision.
fn update(set: &StatefulSet) -> Option<Wait> {
    let (spec, status) = (&set.spec, &set.status);
    let replicas = spec.replicas.unwrap_or_default();
    let updated = status.updated_replicas;
    if status.current_revision == status.update_revision || updated >= replicas {
        return None;
    }
    let rolling = spec.update_strategy.rolling_update.as_ref();
    let partition = rolling.and_then(|rolling| rolling.partition).unwrap_or(0);
    let of = format!(
        "{updated} of {replicas} Pods have the revision {}",
        status.update_revision
    );
    Some(match spec.update_strategy.r#type.as_str() {
        "OnDelete" => wait(
            "OnDelete",
            format!("{of}; others get it when they are deleted"),
        ),
        _ if updated >= replicas.saturating_sub(partition) => wait(
            "Partition",
            format!("{of}; the partition {partition} keeps the others"),
        ),
        _ => wait("Updating", of),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use setpoint_model::Key;
    use setpoint_proto::meta::OwnerReference;

    use super::*;

    fn set(json: Value) -> StatefulSet {
        let mut set: StatefulSet = serde_json::from_value(json).unwrap();
        set.metadata.uid = "u".into();
        set
    }

    fn pod(name: &str) -> (ObjectRef, Pod) {
        let mut pod = Pod::default();
        pod.metadata.owner_references.push(OwnerReference {
            uid: "u".into(),
            controller: Some(true),
            ..Default::default()
        });
        (Key::new("production", name).in_resource("pods"), pod)
    }

    fn found(json: Value, pods: &[(ObjectRef, Pod)]) -> Vec<(String, String)> {
        let found = waits(&set(json), pods).into_iter();
        found.map(|wait| (wait.reason, wait.message)).collect()
    }

    #[test]
    fn the_lowest_ordinal_that_is_not_ready_blocks_the_others() {
        let ordered = json!({"spec": {"replicas": 11, "podManagementPolicy": "OrderedReady"}});
        let pods = [pod("web-10"), pod("web-2")];
        let waits = waits(&set(ordered), &pods);
        assert_eq!(waits[0].reason, "OrderedReady");
        assert_eq!(waits[0].on, Some(pods[1].0.clone()));
        let parallel = json!({"spec": {"replicas": 11, "podManagementPolicy": "Parallel"}});
        assert_eq!(found(parallel, &pods), []);
    }

    #[test]
    fn ready_pods_may_not_be_available_yet() {
        let json = json!({
            "spec": {"replicas": 2, "minReadySeconds": 30},
            "status": {"readyReplicas": 2, "availableReplicas": 1},
        });
        let message = "1 Pods were not ready for 30s yet".to_owned();
        assert_eq!(found(json, &[]), [("MinReadySeconds".to_owned(), message)]);
    }

    #[test]
    fn an_update_waits_for_pods_a_partition_or_the_user() {
        let json = |strategy: Value| {
            json!({
                "spec": {"replicas": 3, "updateStrategy": strategy},
                "status": {"currentRevision": "a", "updateRevision": "b", "updatedReplicas": 1},
            })
        };
        let reason = |strategy| found(json(strategy), &[])[0].0.clone();
        let rolling =
            |partition| json!({"type": "RollingUpdate", "rollingUpdate": {"partition": partition}});
        assert_eq!(reason(rolling(0)), "Updating");
        assert_eq!(reason(rolling(2)), "Partition");
        assert_eq!(reason(json!({"type": "OnDelete"})), "OnDelete");
    }
}
