//! The policies and webhooks of the cache, compiled once for each of their versions.

use std::sync::{Arc, LazyLock};

use parking_lot::RwLock;
use prost::Message;
use setpoint_codec::{Kind, kind_of};
use setpoint_kinds::expressions::{Expressions, Mutations};
use setpoint_proto::admissionregistration::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, MutatingWebhookConfiguration,
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
};
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::{ApiError, Resource};
use setpoint_store::cache::Cache;
use setpoint_store::cache::Cached;
use tokio::sync::Mutex;

use super::policy::Hook;
use super::webhook::Configuration;
use crate::errors;
use crate::heavy::heavy;

/// The kinds that hooks are made from.
static SOURCES: LazyLock<[&'static Kind; 6]> = LazyLock::new(|| {
    [
        kind_of::<ValidatingAdmissionPolicy>(),
        kind_of::<ValidatingAdmissionPolicyBinding>(),
        kind_of::<MutatingAdmissionPolicy>(),
        kind_of::<MutatingAdmissionPolicyBinding>(),
        kind_of::<MutatingWebhookConfiguration>(),
        kind_of::<ValidatingWebhookConfiguration>(),
    ]
});

/// The hooks, as the cache had them last.
#[derive(Default)]
pub(crate) struct Hooks {
    newest: RwLock<Arc<Snapshot>>,
    /// Held while expressions are compiled, so that a burst of requests compiles them once.
    compiling: Mutex<()>,
}

/// The hooks at one time, in the order of their names.
#[derive(Default)]
pub(crate) struct Snapshot {
    sources: Vec<Arc<Cached>>,
    /// The policies that have bindings.
    pub(super) policies: Vec<Hook<Expressions>>,
    pub(super) mutating_policies: Vec<Hook<Mutations>>,
    pub(super) mutating: Vec<Arc<Configuration>>,
    pub(super) validating: Vec<Arc<Configuration>>,
}

impl Hooks {
    /// Returns the hooks that the cache has; `None` if there are none.
    ///
    /// # Errors
    /// If the cache is not there yet, or has an object that cannot be decoded.
    pub(super) async fn current(&self, cache: &Cache) -> Result<Option<Arc<Snapshot>>, ApiError> {
        let sources = cache.all_of(&*SOURCES).await?;
        if sources.is_empty() {
            return Ok(None);
        }
        let newest = self.made_from(sources).await?;
        Ok(Some(newest).filter(|newest| !newest.is_empty()))
    }

    async fn made_from(&self, sources: Vec<Arc<Cached>>) -> Result<Arc<Snapshot>, ApiError> {
        let known = self.newest.read().clone();
        if known.is_of(&sources) {
            return Ok(known);
        }
        let _compiling = self.compiling.lock().await;
        let known = self.newest.read().clone();
        if known.is_of(&sources) {
            return Ok(known);
        }
        let bytes = sources.iter().map(|source| source.raw.len()).sum();
        let made = heavy(bytes, || Snapshot::after(&known, sources)).await?;
        let made = Arc::new(made);
        *self.newest.write() = made.clone();
        Ok(made)
    }
}

impl Snapshot {
    fn is_empty(&self) -> bool {
        self.policies.is_empty() && !self.mutates() && self.validating.is_empty()
    }

    /// Returns whether some hook may change objects.
    pub(super) fn mutates(&self) -> bool {
        !self.mutating_policies.is_empty() || !self.mutating.is_empty()
    }

    fn is_of(&self, sources: &[Arc<Cached>]) -> bool {
        let pairs = self.sources.iter().zip(sources);
        self.sources.len() == sources.len() && { pairs }.all(|(a, b)| Arc::ptr_eq(a, b))
    }

    /// Compiles what has changed since `before`.
    fn after(before: &Self, sources: Vec<Arc<Cached>>) -> Result<Self, ApiError> {
        let policies = decoded::<ValidatingAdmissionPolicy>(&sources)?;
        let bindings = decoded::<ValidatingAdmissionPolicyBinding>(&sources)?;
        let mutating_policies = decoded::<MutatingAdmissionPolicy>(&sources)?;
        let mutating_bindings = decoded::<MutatingAdmissionPolicyBinding>(&sources)?;
        let mutating = decoded::<MutatingWebhookConfiguration>(&sources)?;
        let validating = decoded::<ValidatingWebhookConfiguration>(&sources)?;
        Ok(Self {
            policies: Hook::after(&before.policies, &policies, bindings),
            mutating_policies: Hook::after(
                &before.mutating_policies,
                &mutating_policies,
                mutating_bindings,
            ),
            mutating: Configuration::after(&before.mutating, &mutating),
            validating: Configuration::after(&before.validating, &validating),
            sources,
        })
    }
}

/// Returns what identifies what an object says: its uid, and the generation of its intent.
pub(super) fn version(meta: &ObjectMeta) -> (String, i64) {
    (meta.uid.clone(), meta.generation)
}

fn decoded<T: Resource + Message + Default>(sources: &[Arc<Cached>]) -> Result<Vec<T>, ApiError> {
    let own = sources
        .iter()
        .filter(|source| source.kind == kind_of::<T>());
    own.map(|source| errors::readable(T::decode(source.raw.as_ref())))
        .collect()
}
