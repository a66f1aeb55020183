//! `binding`: a Pod is given its node, once.

use jiff::Timestamp;
use setpoint_codec::Object;
use setpoint_model::condition;
use setpoint_proto::core::{Binding, Pod, PodCondition};
use setpoint_proto::meta::Status;
use setpoint_proto::{ApiError, Reason};

use super::state::State;
use super::strategy::typed_mut;
use super::update::Precondition;
use super::{Answer, Call, Registry, Target, errors, metadata};

impl Registry {
    /// Gives a Pod its node, says so in its conditions, and answers with a `Status`.
    pub(super) async fn bind(
        &self,
        call: &Call,
        target: &Target,
        object: Box<dyn Object>,
    ) -> Result<Answer, ApiError> {
        let node = node_of(&*object, target)?;
        let precondition = Precondition::of(&*object);
        let whole = Target::whole(target.kind, &target.key());
        let now = Timestamp::now();
        let mut propose = |old: &State, slot: &mut Option<Box<dyn Object>>| {
            precondition.check(target, old)?;
            let pod = slot.insert(old.object.clone_box());
            assign(typed_mut(&mut **pod), &node, now).map_err(|why| errors::conflict(target, why))
        };
        let amended = self.amend(call, &whole, None, 0, &mut propose).await?;
        let status = Status {
            status: "Success".into(),
            code: 201,
            ..Default::default()
        };
        Ok(Answer::made(
            Box::new(status),
            amended.into_answer().revision,
        ))
    }
}

fn node_of(object: &dyn Object, pod: &Target) -> Result<String, ApiError> {
    let bad = |message: String| ApiError::new(Reason::BadRequest, message);
    let Some(binding) = object.downcast_ref::<Binding>() else {
        return Err(bad(format!(
            "expected v1 Binding, found {}",
            object.kind().kind
        )));
    };
    let mut meta = binding.metadata.clone();
    if !meta.name.is_empty() && meta.name != pod.name {
        return Err(bad(
            "name in URL does not match name in Binding object".into()
        ));
    }
    metadata::settle(&mut meta, pod)?;
    let target = &binding.target;
    if !["", "Node"].contains(&target.kind.as_str()) {
        return Err(bad(format!(
            "target.kind: Unsupported value: {:?}: supported values: \"Node\", \"<empty>\"",
            target.kind
        )));
    }
    if target.name.is_empty() {
        return Err(bad("target.name: Required value".into()));
    }
    Ok(target.name.clone())
}

fn assign(pod: &mut Pod, node: &str, now: Timestamp) -> Result<(), String> {
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
    use setpoint_codec::kinds;
    use setpoint_proto::core::PodSchedulingGate;

    use super::*;

    #[test]
    fn a_pod_is_bound_once() {
        let mut pod = Pod::default();
        pod.metadata.name = "web".into();
        assign(&mut pod, "node-1", Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(pod.spec.node_name, "node-1");
        assert!(condition::is_true(&pod.status.conditions, "PodScheduled"));
        let error = assign(&mut pod, "node-2", Timestamp::UNIX_EPOCH).unwrap_err();
        assert_eq!(error, r#"pod web is already assigned to node "node-1""#);
    }

    #[test]
    fn a_gated_or_ending_pod_is_not_bound() {
        let mut pod = Pod::default();
        pod.spec.scheduling_gates = vec![PodSchedulingGate::default()];
        assert!(assign(&mut pod, "node-1", Timestamp::UNIX_EPOCH).is_err());
        let mut pod = Pod::default();
        pod.metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH.into());
        assert!(assign(&mut pod, "node-1", Timestamp::UNIX_EPOCH).is_err());
    }

    #[test]
    fn a_binding_names_a_node() {
        let kind = kinds().by_resource("pods").unwrap();
        let pod = Target::new(kind, "default", "web", "binding").unwrap();
        let mut binding = Binding::default();
        assert!(node_of(&binding, &pod).is_err());
        binding.target.name = "node-1".into();
        assert_eq!(node_of(&binding, &pod).unwrap(), "node-1");
        binding.target.kind = "Pod".into();
        assert!(node_of(&binding, &pod).is_err());
        assert!(node_of(&Pod::default(), &pod).is_err());
    }
}
