//! Hard constraints that this scheduler does not evaluate.
//!
//! A Pod that has one is not bound: no node is known to satisfy it.

use setpoint_proto::core::PodSpec;

/// Returns the fields of such constraints.
pub fn constraints(spec: &PodSpec) -> Vec<&'static str> {
    let affinity = spec.affinity.as_ref();
    let pods = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
    let anti = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    let spread = &spec.topology_spread_constraints;
    [
        (
            pods.is_some_and(|pods| {
                let required = &pods.required_during_scheduling_ignored_during_execution;
                !required.is_empty()
            }),
            "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution",
        ),
        (
            anti.is_some_and(|pods| {
                let required = &pods.required_during_scheduling_ignored_during_execution;
                !required.is_empty()
            }),
            "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
        ),
        (
            spread
                .iter()
                .any(|constraint| constraint.when_unsatisfiable != "ScheduleAnyway"),
            "spec.topologySpreadConstraints with whenUnsatisfiable: DoNotSchedule",
        ),
        (!spec.resource_claims.is_empty(), "spec.resourceClaims"),
        (spec.scheduling_group.is_some(), "spec.schedulingGroup"),
    ]
    .into_iter()
    .filter_map(|(present, field)| present.then_some(field))
    .collect()
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::{
        Affinity, PodAffinity, PodAffinityTerm, PodAntiAffinity, PodResourceClaim,
        PodSchedulingGroup, TopologySpreadConstraint, WeightedPodAffinityTerm,
    };

    use super::*;

    fn spread(when_unsatisfiable: &str) -> PodSpec {
        PodSpec {
            topology_spread_constraints: vec![TopologySpreadConstraint {
                when_unsatisfiable: when_unsatisfiable.into(),
                ..Default::default()
            }],
            ..Default::default()
        }
    }

    fn affinity(required: usize, preferred: usize) -> PodSpec {
        let required = vec![PodAffinityTerm::default(); required];
        let preferred = vec![WeightedPodAffinityTerm::default(); preferred];
        PodSpec {
            affinity: Some(Affinity {
                pod_affinity: Some(PodAffinity {
                    required_during_scheduling_ignored_during_execution: required.clone(),
                    preferred_during_scheduling_ignored_during_execution: preferred.clone(),
                }),
                pod_anti_affinity: Some(PodAntiAffinity {
                    required_during_scheduling_ignored_during_execution: required,
                    preferred_during_scheduling_ignored_during_execution: preferred,
                }),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    /// Checks F5.
    #[test]
    fn required_constraints_are_named_and_preferred_ones_are_not() {
        let required = constraints(&affinity(1, 1));
        assert!(required[0].starts_with("spec.affinity.podAffinity.required"));
        assert!(required[1].starts_with("spec.affinity.podAntiAffinity.required"));
        assert_eq!(required.len(), 2);
        assert!(constraints(&affinity(0, 1)).is_empty());

        let spread = |when: &str| constraints(&spread(when)).len();
        assert_eq!((spread("DoNotSchedule"), spread("ScheduleAnyway")), (1, 0));

        let devices = PodSpec {
            resource_claims: vec![PodResourceClaim::default()],
            scheduling_group: Some(PodSchedulingGroup::default()),
            ..Default::default()
        };
        let fields = ["spec.resourceClaims", "spec.schedulingGroup"];
        assert_eq!(constraints(&devices), fields);
        assert!(constraints(&PodSpec::default()).is_empty());
    }
}
