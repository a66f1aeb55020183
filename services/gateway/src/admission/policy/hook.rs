//! A policy with its bindings, compiled.

use std::collections::HashMap;
use std::sync::Arc;

use setpoint_proto::admissionregistration::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};

use super::compiled::{self, Expressions};
use crate::admission::constraints::Constraints;
use crate::admission::environment::Types;
use crate::admission::hooks::version;

/// A policy, and its bindings in the order of their names.
pub(in crate::admission) struct Hook {
    pub policy: Arc<Policy>,
    pub bindings: Vec<Binding>,
}

/// A compiled policy.
pub(in crate::admission) struct Policy {
    pub object: ValidatingAdmissionPolicy,
    pub constraints: Result<Constraints, String>,
    pub expressions: Result<Expressions, String>,
}

/// A binding of a policy.
pub(in crate::admission) struct Binding {
    pub object: ValidatingAdmissionPolicyBinding,
    /// `None` if the binding selects all requests that its policy does.
    pub constraints: Option<Result<Constraints, String>>,
}

impl Hook {
    /// Returns the policies that have bindings. Those that are not among `before` are compiled.
    pub(in crate::admission) fn after(
        before: &[Self],
        policies: Vec<ValidatingAdmissionPolicy>,
        bindings: Vec<ValidatingAdmissionPolicyBinding>,
    ) -> Vec<Self> {
        let known = before.iter().map(|hook| &hook.policy);
        let known = known.map(|policy| (version(&policy.object.metadata), policy));
        let known: HashMap<_, _> = known.collect();
        let mut bound: HashMap<String, Vec<Binding>> = HashMap::new();
        for binding in bindings {
            let policy = binding.spec.policy_name.clone();
            bound.entry(policy).or_default().push(Binding::of(binding));
        }
        let hooks = policies.into_iter().filter_map(|object| {
            let bindings = bound.remove(&object.metadata.name)?;
            let policy = match known.get(&version(&object.metadata)) {
                Some(known) => Arc::clone(known),
                None => Arc::new(Policy::of(object)),
            };
            Some(Self { policy, bindings })
        });
        hooks.collect()
    }
}

impl Policy {
    fn of(object: ValidatingAdmissionPolicy) -> Self {
        let constraints = object.spec.match_constraints.as_ref();
        let missing = "policy contained no match constraints, a required field";
        Self {
            constraints: constraints.map_or(Err(missing.into()), Constraints::of),
            expressions: compiled::compile(&object.spec, Types::default()),
            object,
        }
    }
}

impl Binding {
    fn of(object: ValidatingAdmissionPolicyBinding) -> Self {
        let resources = object.spec.match_resources.as_ref();
        Self {
            constraints: resources.map(Constraints::of),
            object,
        }
    }
}
