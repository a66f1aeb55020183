//! Hard constraints that this scheduler does not evaluate.
//!
//! A Pod that has one is not bound: no node is known to satisfy it.

use setpoint_proto::core::PodSpec;

/// Returns the fields of such constraints.
pub fn constraints(spec: &PodSpec) -> Vec<&'static str> {
    [
        (!spec.resource_claims.is_empty(), "spec.resourceClaims"),
        (spec.scheduling_group.is_some(), "spec.schedulingGroup"),
    ]
    .into_iter()
    .filter_map(|(present, field)| present.then_some(field))
    .collect()
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::{PodResourceClaim, PodSchedulingGroup};

    use super::*;

    /// Checks F5.
    #[test]
    fn constraints_that_are_not_evaluated_are_named() {
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
