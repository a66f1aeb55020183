//! A policy with its bindings, compiled.

use std::collections::HashMap;
use std::sync::Arc;

use setpoint_kinds::expressions::{self, Expressions, Mutations, Types};
use setpoint_proto::admissionregistration::{
    MatchResources, MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, ParamKind, ParamRef,
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use setpoint_proto::meta::ObjectMeta;

use crate::admission::constraints::Constraints;
use crate::admission::hooks::version;

/// A policy, and its bindings in the order of their names. `E` are the expressions of its kind.
pub(in crate::admission) struct Hook<E> {
    pub policy: Arc<Policy<E>>,
    pub bindings: Vec<Binding>,
}

/// A compiled policy.
pub(in crate::admission) struct Policy<E> {
    pub name: String,
    version: (String, i64),
    /// Whether what fails counts as admitted.
    pub ignores_failures: bool,
    pub param_kind: Option<ParamKind>,
    pub constraints: Result<Constraints, String>,
    pub expressions: Result<E, String>,
}

/// A binding of a policy.
pub(in crate::admission) struct Binding {
    pub name: String,
    policy: String,
    pub param_ref: Option<ParamRef>,
    /// `None` if the binding selects all requests that its policy does.
    pub constraints: Option<Result<Constraints, String>>,
    /// The actions that follow if a validation does not hold.
    pub actions: Vec<String>,
}

/// A policy of one of the two kinds.
pub(in crate::admission) trait Declared {
    /// Its compiled expressions.
    type Expressions;

    fn meta(&self) -> &ObjectMeta;
    fn failure_policy(&self) -> Option<&str>;
    fn param_kind(&self) -> Option<&ParamKind>;
    fn constraints(&self) -> Option<&MatchResources>;
    fn compile(&self) -> Result<Self::Expressions, String>;
}

/// Implements [`Declared`]: the two kinds of policies differ in how they are `$compile`d.
macro_rules! declared {
    ($policy:ident, $expressions:ident, $compile:expr) => {
        impl Declared for $policy {
            type Expressions = $expressions;

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn failure_policy(&self) -> Option<&str> {
                self.spec.failure_policy.as_deref()
            }

            fn param_kind(&self) -> Option<&ParamKind> {
                self.spec.param_kind.as_ref()
            }

            fn constraints(&self) -> Option<&MatchResources> {
                self.spec.match_constraints.as_ref()
            }

            fn compile(&self) -> Result<$expressions, String> {
                $compile(&self.spec)
            }
        }
    };
}
declared!(ValidatingAdmissionPolicy, Expressions, |spec| {
    expressions::compile(spec, Types::default())
});
declared!(
    MutatingAdmissionPolicy,
    Mutations,
    expressions::compile_mutations
);

impl<E> Hook<E> {
    /// Returns the policies that have bindings. Those that are not among `before` are compiled.
    pub(in crate::admission) fn after<P: Declared<Expressions = E>>(
        before: &[Self],
        policies: &[P],
        bindings: impl IntoIterator<Item = impl Into<Binding>>,
    ) -> Vec<Self> {
        let known = before.iter().map(|hook| &hook.policy);
        let known: HashMap<_, _> = known.map(|policy| (&policy.version, policy)).collect();
        let mut bound: HashMap<String, Vec<Binding>> = HashMap::new();
        for binding in bindings {
            let binding: Binding = binding.into();
            let policy = binding.policy.clone();
            bound.entry(policy).or_default().push(binding);
        }
        let hooks = policies.iter().filter_map(|declared| {
            let bindings = bound.remove(&declared.meta().name)?;
            let policy = match known.get(&version(declared.meta())) {
                Some(known) => Arc::clone(known),
                None => Arc::new(Policy::of(declared)),
            };
            Some(Self { policy, bindings })
        });
        hooks.collect()
    }
}

impl<E> Policy<E> {
    fn of<P: Declared<Expressions = E>>(declared: &P) -> Self {
        let missing = "policy contained no match constraints, a required field";
        let constraints = declared.constraints();
        Self {
            name: declared.meta().name.clone(),
            version: version(declared.meta()),
            ignores_failures: declared.failure_policy() == Some("Ignore"),
            param_kind: declared.param_kind().cloned(),
            constraints: constraints.map_or(Err(missing.into()), Constraints::of),
            expressions: declared.compile(),
        }
    }
}

impl From<ValidatingAdmissionPolicyBinding> for Binding {
    fn from(binding: ValidatingAdmissionPolicyBinding) -> Self {
        let resources = binding.spec.match_resources.as_ref();
        Self {
            constraints: resources.map(Constraints::of),
            name: binding.metadata.name,
            policy: binding.spec.policy_name,
            param_ref: binding.spec.param_ref,
            actions: binding.spec.validation_actions,
        }
    }
}

impl From<MutatingAdmissionPolicyBinding> for Binding {
    fn from(binding: MutatingAdmissionPolicyBinding) -> Self {
        let resources = binding.spec.match_resources.as_ref();
        Self {
            constraints: resources.map(Constraints::of),
            name: binding.metadata.name,
            policy: binding.spec.policy_name,
            param_ref: binding.spec.param_ref,
            actions: Vec::new(),
        }
    }
}
