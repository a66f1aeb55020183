//! The policies that have bindings, compiled once for each of their versions.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use prost::Message;
use setpoint_codec::kind_of;
use setpoint_proto::admissionregistration::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::{ApiError, Resource};
use setpoint_store::cache::Cache;
use tokio::sync::Mutex;

use super::compiled::{self, Expressions};
use super::constraints::Constraints;
use super::environment::Types;
use crate::heavy::heavy;
use crate::registry::{AtLeast, Cached, Filter, errors};

/// The policies with their bindings, as the cache had them last.
#[derive(Default)]
pub(crate) struct Hooks {
    newest: RwLock<Arc<Snapshot>>,
    /// Held while policies are compiled, so that a burst of requests compiles them once.
    compiling: Mutex<()>,
}

/// The policies and bindings at one time.
#[derive(Default)]
pub(crate) struct Snapshot {
    policies: Vec<Arc<Cached>>,
    bindings: Vec<Arc<Cached>>,
    /// The policies that have bindings, in the order of their names.
    pub(super) hooks: Vec<Hook>,
}

/// A policy, and its bindings in the order of their names.
pub(super) struct Hook {
    pub policy: Arc<Policy>,
    pub bindings: Vec<Binding>,
}

/// A compiled policy.
pub(super) struct Policy {
    pub object: ValidatingAdmissionPolicy,
    pub constraints: Result<Constraints, String>,
    pub expressions: Result<Expressions, String>,
}

/// A binding of a policy.
pub(super) struct Binding {
    pub object: ValidatingAdmissionPolicyBinding,
    /// `None` if the binding selects all requests that its policy does.
    pub constraints: Option<Result<Constraints, String>>,
}

impl Hooks {
    /// Returns the policies that the cache has; `None` if there are no bindings.
    ///
    /// # Errors
    /// If the cache is not there yet, or has a policy that cannot be decoded.
    pub(super) async fn current(&self, cache: &Cache) -> Result<Option<Arc<Snapshot>>, ApiError> {
        let bindings = listed::<ValidatingAdmissionPolicyBinding>(cache).await?;
        if bindings.is_empty() {
            return Ok(None);
        }
        let policies = listed::<ValidatingAdmissionPolicy>(cache).await?;
        let known = self.newest.read().clone();
        if known.is_of(&policies, &bindings) {
            return Ok(Some(known));
        }
        let _compiling = self.compiling.lock().await;
        let known = self.newest.read().clone();
        if known.is_of(&policies, &bindings) {
            return Ok(Some(known));
        }
        let bytes = policies.iter().map(|policy| policy.raw.len()).sum();
        let made = heavy(bytes, || Snapshot::after(&known, policies, bindings)).await?;
        let made = Arc::new(made);
        *self.newest.write() = made.clone();
        Ok(Some(made))
    }
}

impl Snapshot {
    fn is_of(&self, policies: &[Arc<Cached>], bindings: &[Arc<Cached>]) -> bool {
        let same = |a: &[Arc<Cached>], b: &[Arc<Cached>]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b))
        };
        same(&self.bindings, bindings) && same(&self.policies, policies)
    }

    /// Compiles the policies that have changed since `before`.
    fn after(
        before: &Self,
        policies: Vec<Arc<Cached>>,
        bindings: Vec<Arc<Cached>>,
    ) -> Result<Self, ApiError> {
        let compiled = before.hooks.iter();
        let compiled = compiled.map(|hook| (meta(&hook.policy.object), hook.policy.clone()));
        let compiled: HashMap<_, _> = compiled.collect();
        let mut bound: HashMap<String, Vec<Binding>> = HashMap::new();
        for binding in &bindings {
            let binding = Binding::of(decode(binding)?);
            let policy = binding.object.spec.policy_name.clone();
            bound.entry(policy).or_default().push(binding);
        }
        let mut hooks = Vec::new();
        for policy in &policies {
            let Some(bindings) = bound.remove(&policy.key.name) else {
                continue;
            };
            let object = decode(policy)?;
            let policy = match compiled.get(&meta(&object)) {
                Some(known) => known.clone(),
                None => Arc::new(Policy::of(object)),
            };
            hooks.push(Hook { policy, bindings });
        }
        Ok(Self {
            policies,
            bindings,
            hooks,
        })
    }
}

/// Returns what identifies what a policy says: the uid, and the generation of its spec.
fn meta(policy: &ValidatingAdmissionPolicy) -> (String, i64) {
    let ObjectMeta {
        uid, generation, ..
    } = &policy.metadata;
    (uid.clone(), *generation)
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

async fn listed<T: Resource>(cache: &Cache) -> Result<Vec<Arc<Cached>>, ApiError> {
    let all = Filter::all(kind_of::<T>(), "");
    Ok(cache.list(&all, AtLeast::Any).await?.items)
}

fn decode<T: Message + Default>(cached: &Cached) -> Result<T, ApiError> {
    errors::readable(T::decode(cached.raw.as_ref()))
}
