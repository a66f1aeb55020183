//! Assigns a Pod to a node.

use jiff::Timestamp;
use setpoint_model::condition;
use setpoint_proto::core::{Pod, PodCondition};

/// Assigns the Pod to a node and sets its condition.
///
/// # Errors
/// The reason why it cannot be assigned.
pub(super) fn assign(pod: &mut Pod, node: &str, now: Timestamp) -> Result<(), String> {
    let name = &pod.metadata.name;
    if pod.metadata.deletion_timestamp.is_some() {
        return Err(format!(
            "pod {name} is being deleted, cannot be assigned to a host"
        ));
    }
    if !pod.spec.node_name.is_empty() {
        return Err(format!(
            "pod {name} is already assigned to node {:?}",
            pod.spec.node_name
        ));
    }
    if !pod.spec.scheduling_gates.is_empty() {
        return Err(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    node.clone_into(&mut pod.spec.node_name);
    let scheduled = PodCondition {
        r#type: "PodScheduled".into(),
        status: "True".into(),
        last_transition_time: now.into(),
        ..Default::default()
    };
    condition::set(&mut pod.status.conditions, scheduled);
    Ok(())
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::PodSchedulingGate;

    use super::*;

    #[test]
    fn a_bound_pod_cannot_be_bound_again() {
        let mut pod = Pod::default();
        pod.metadata.name = "web".into();
        assign(&mut pod, "node-1", Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(pod.spec.node_name, "node-1");
        assert!(condition::is_true(&pod.status.conditions, "PodScheduled"));
        let error = assign(&mut pod, "node-2", Timestamp::UNIX_EPOCH).unwrap_err();
        assert_eq!(error, r#"pod web is already assigned to node "node-1""#);
    }

    #[test]
    fn a_pod_with_gates_or_a_deletion_timestamp_cannot_be_bound() {
        let mut pod = Pod::default();
        pod.spec.scheduling_gates = vec![PodSchedulingGate::default()];
        assert!(assign(&mut pod, "node-1", Timestamp::UNIX_EPOCH).is_err());
        let mut pod = Pod::default();
        pod.metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH.into());
        assert!(assign(&mut pod, "node-1", Timestamp::UNIX_EPOCH).is_err());
    }
}
