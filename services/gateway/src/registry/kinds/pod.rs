//! The rules of a Pod: it starts out Pending, and little of its spec may change later.

mod status;

use std::collections::BTreeSet;

use jiff::Timestamp;
use setpoint_model::{condition, names, pod};
use setpoint_proto::core::{Pod, PodCondition, PodSpec, Toleration};

use crate::registry::path::Path;
use crate::registry::podspec;
use crate::registry::problems::Problems;
use crate::registry::strategy::Rules;

/// How long a Pod may take to stop when nobody says.
const GRACE: i64 = 30;

const FEW_FIELDS: &str = "pod updates may not change fields other than \
    `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

impl Rules for Pod {
    const COUNTS_GENERATIONS: bool = true;

    fn fill_defaults(&mut self) {
        podspec::fill_defaults(&mut self.spec);
        podspec::fill_pod_defaults(&mut self.spec);
    }

    fn prepare_create(&mut self) {
        self.status = Default::default();
        self.status.phase = "Pending".into();
        self.status.qos_class = podspec::qos_class(&self.spec).into();
        if !self.spec.scheduling_gates.is_empty() {
            self.status.conditions.push(gated());
        }
    }

    fn prepare_update(&mut self, old: &Self) {
        self.status = old.status.clone();
    }

    /// Old agents send owners that they read wrong, and no class: both stay.
    fn prepare_status_update(&mut self, old: &Self) {
        self.spec.clone_from(&old.spec);
        let owners = &old.metadata.owner_references;
        self.metadata.owner_references.clone_from(owners);
        status::keep_unsaid(&mut self.status, &old.status);
    }

    fn validate_status_update(&self, old: &Self, problems: &mut Problems) {
        status::validate_update(self, old, problems);
    }

    fn intent_changed(&self, old: &Self) -> bool {
        self.spec != old.spec
    }

    /// An agent that does not say which generation it observed has observed the first.
    fn is_met(&self) -> Option<bool> {
        let observed = self.status.observed_generation.max(1) >= self.metadata.generation;
        Some(observed && condition::is_true(&self.status.conditions, "Ready"))
    }

    fn check_name(name: &str) -> Vec<String> {
        names::validate_dns_subdomain(name)
    }

    fn validate(&self, problems: &mut Problems) {
        podspec::validate(&self.spec, &Path::root("spec"), problems);
    }

    fn validate_update(&self, old: &Self, problems: &mut Problems) {
        let spec = Path::root("spec");
        let (new, old) = (&self.spec, &old.spec);
        if new.containers.len() != old.containers.len() {
            let detail = "pod updates may not add or remove containers";
            problems.forbidden(&spec.field("containers"), detail);
            return;
        }
        validate_deadline(new, old, &spec, problems);
        if !only_adds(&new.tolerations, &old.tolerations) {
            let detail = "existing toleration can not be modified except its tolerationSeconds";
            problems.forbidden(&spec.field("tolerations"), detail);
        }
        if *new != *old && with_what_may_change(old, new) != *new {
            problems.forbidden(&spec, FEW_FIELDS);
        }
    }
}

/// Says of a Pod with gates why nobody schedules it.
fn gated() -> PodCondition {
    PodCondition {
        r#type: "PodScheduled".into(),
        status: condition::FALSE.into(),
        reason: "SchedulingGated".into(),
        message: "Scheduling is blocked due to non-empty scheduling gates".into(),
        last_transition_time: Timestamp::now().into(),
        ..Default::default()
    }
}

fn validate_deadline(new: &PodSpec, old: &PodSpec, spec: &Path<'_>, problems: &mut Problems) {
    let path = spec.field("activeDeadlineSeconds");
    match (new.active_deadline_seconds, old.active_deadline_seconds) {
        (Some(new), Some(old)) if new > old => {
            problems.invalid(
                &path,
                new,
                format!("must be less than or equal to previous value {old}"),
            );
        }
        (None, Some(_)) => {
            problems.invalid(
                &path,
                "",
                "must not update from a positive integer to nil value",
            );
        }
        _ => {}
    }
}

/// The old spec with everything that an update may set taken from the new one.
fn with_what_may_change(old: &PodSpec, new: &PodSpec) -> PodSpec {
    let mut spec = old.clone();
    let images = |containers: &mut [_], from: &[_]| {
        let pairs = containers.iter_mut().zip(from);
        pairs.for_each(
            |(container, from): (
                &mut setpoint_proto::core::Container,
                &setpoint_proto::core::Container,
            )| {
                container.image.clone_from(&from.image);
            },
        );
    };
    images(&mut spec.containers, &new.containers);
    images(&mut spec.init_containers, &new.init_containers);
    spec.active_deadline_seconds = new.active_deadline_seconds;
    spec.tolerations.clone_from(&new.tolerations);
    if old
        .termination_grace_period_seconds
        .is_some_and(|grace| grace < 0)
    {
        spec.termination_grace_period_seconds = new.termination_grace_period_seconds;
    }
    if new
        .scheduling_gates
        .iter()
        .all(|gate| old.scheduling_gates.contains(gate))
    {
        spec.scheduling_gates.clone_from(&new.scheduling_gates);
    }
    spec
}

fn only_adds(new: &[Toleration], old: &[Toleration]) -> bool {
    fn kept(one: &Toleration) -> [&str; 4] {
        [&one.key, &one.operator, &one.value, &one.effect]
    }
    let new: BTreeSet<_> = new.iter().map(kept).collect();
    old.iter().map(kept).all(|old| new.contains(&old))
}

/// How many seconds a Pod gets to stop: none if nothing of it can be running.
pub(in crate::registry) fn grace_of(pod: &Pod, asked: Option<i64>) -> i64 {
    if pod.spec.node_name.is_empty() || pod::is_terminal(pod) {
        return 0;
    }
    let grace = asked
        .or(pod.spec.termination_grace_period_seconds)
        .unwrap_or(GRACE);
    // A negative grace is an old way to say "at once, but let the agent do it".
    if grace < 0 { 1 } else { grace }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::Resource as _;
    use setpoint_proto::core::{Container, PodSchedulingGate};

    use super::*;
    use crate::registry::metadata;

    fn pod() -> Pod {
        let mut pod = Pod::default();
        pod.meta_mut().name = "web".into();
        pod.spec.node_name = "node-1".into();
        pod.spec.containers = vec![Container {
            name: "web".into(),
            image: "nginx:1.25".into(),
            ..Default::default()
        }];
        pod.fill_defaults();
        pod
    }

    fn complaints(change: impl FnOnce(&mut Pod)) -> String {
        let old = pod();
        let mut new = old.clone();
        change(&mut new);
        let mut problems = Problems::default();
        new.validate_update(&old, &mut problems);
        problems.to_string()
    }

    const NONE: &str = "[]";

    #[test]
    fn an_image_may_change() {
        assert_eq!(
            complaints(|pod| pod.spec.containers[0].image = "nginx:1.26".into()),
            NONE
        );
    }

    #[test]
    fn a_toleration_may_be_added_but_not_taken() {
        let toleration = Toleration {
            key: "a".into(),
            operator: "Exists".into(),
            ..Default::default()
        };
        assert_eq!(
            complaints(|pod| pod.spec.tolerations.push(toleration.clone())),
            NONE
        );
        assert!(!only_adds(&[], &[toleration]));
    }

    #[test]
    fn other_fields_may_not_change() {
        let command = complaints(|pod| pod.spec.containers[0].command = vec!["sh".into()]);
        assert!(command.starts_with("spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`"));
        let gate = PodSchedulingGate {
            name: "later".into(),
        };
        assert!(complaints(|pod| pod.spec.scheduling_gates.push(gate)).contains("Forbidden"));
        assert!(complaints(|pod| pod.spec.node_name = "node-2".into()).contains("Forbidden"));
        let containers = complaints(|pod| pod.spec.containers.clear());
        assert_eq!(
            containers,
            "spec.containers: Forbidden: pod updates may not add or remove containers"
        );
    }

    /// Checks F40: each entry of long lists is looked at once.
    #[test]
    fn as_many_tolerations_and_finalizers_as_fit_into_a_request_are_checked_at_once() {
        let toleration = |n: usize| Toleration {
            key: format!("t{n}"),
            ..Default::default()
        };
        let tolerations: Vec<_> = (0..60_000).map(toleration).collect();
        let reversed: Vec<_> = tolerations.iter().rev().cloned().collect();
        assert!(only_adds(&reversed, &tolerations));
        let mut old = pod().metadata;
        old.finalizers = (0..60_000).map(|n| format!("a.io/{n}")).collect();
        old.deletion_timestamp = Some(Default::default());
        let mut new = old.clone();
        new.finalizers.reverse();
        let mut problems = Problems::default();
        metadata::validate_update(&new, &old, &mut problems);
        assert_eq!(problems.to_string(), NONE);
    }

    #[test]
    fn a_deadline_may_only_come_closer() {
        assert_eq!(
            complaints(|pod| pod.spec.active_deadline_seconds = Some(5)),
            NONE
        );
        let (mut old, mut new) = (pod(), pod());
        old.spec.active_deadline_seconds = Some(5);
        new.spec.active_deadline_seconds = Some(6);
        let mut problems = Problems::default();
        new.validate_update(&old, &mut problems);
        assert!(
            problems
                .to_string()
                .contains("must be less than or equal to previous value 5")
        );
    }

    #[test]
    fn only_a_bound_and_living_pod_has_grace() {
        let mut pod = pod();
        assert_eq!(grace_of(&pod, None), 30);
        assert_eq!(grace_of(&pod, Some(3)), 3);
        assert_eq!(grace_of(&pod, Some(-1)), 1);
        pod.status.phase = "Succeeded".into();
        assert_eq!(grace_of(&pod, None), 0);
        pod.status.phase = "Running".into();
        pod.spec.node_name.clear();
        assert_eq!(grace_of(&pod, Some(3)), 0);
    }

    #[test]
    fn a_new_pod_is_pending_whatever_its_creator_says() {
        let mut pod = pod();
        pod.status.phase = "Running".into();
        pod.prepare_create();
        assert_eq!(
            (pod.status.phase.as_str(), pod.status.qos_class.as_str()),
            ("Pending", "BestEffort")
        );
    }
}
