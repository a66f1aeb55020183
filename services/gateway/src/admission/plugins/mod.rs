//! The built-in admission plugins, under upstream's names, one file each.
//!
//! The order is the one that upstream recommends (`AllOrderedPlugins` of kube-apiserver). Policies, webhooks and then
//! quotas come after it: they are later steps of a write. Four plugins are no plugins upstream:
//! `CustomResourceLifecycle` is a part of the handler of custom resources, `ServiceIPAllocator` of the storage of
//! Services, `RoleEscalation` of that of roles and bindings (it is there in the mode RBAC only), and `LeaseTerm` is
//! Setpoint's own.
//!
//! Plugins that are on by default in Kubernetes 1.36 and not here:
//!
//! * `ClusterTrustBundleAttest` is of a kind that is not served.
//! * `TaintNodesByCondition` taints a new Node as not ready until the node-lifecycle-controller has seen it: a cluster
//!   without that controller could not run anything.
//! * `StorageObjectInUseProtection` needs no other object: it is in the preparation of claims and volumes.
//! * `NodeDeclaredFeatureValidator`, `PodGroupProtection`, `PodGroupWorkloadExists` and `JobValidation` are of features
//!   that are disabled by default, or of kinds that are not served.

mod certificates;
mod custom_resource_lifecycle;
mod default_class;
mod default_ingress_class;
mod default_storage_class;
mod default_toleration_seconds;
mod deny_service_external_ips;
#[warn(clippy::arithmetic_side_effects)]
mod lease_term;
mod limit_ranger;
mod namespace_lifecycle;
mod node_restriction;
mod ordered;
mod owner_references_permission_enforcement;
mod persistent_volume_claim_resize;
mod pod_resize_validator;
mod pod_security;
mod pod_topology_labels;
mod priority;
mod replica_announcement;
mod resource_quota;
mod role_escalation;
mod runtime_class;
mod selection;
mod service_account;
mod service_ip_allocator;
#[cfg(test)]
mod tests;

use futures::future::BoxFuture;
use setpoint_codec::Object;
use setpoint_proto::ApiError;
use setpoint_store::cache::AtLeast;

use super::{Attributes, Reader, Reservation};
pub(crate) use ordered::Plugins;
pub use selection::Selection;

/// A step of a plugin that is under way.
pub(crate) type Step<'a> = BoxFuture<'a, Result<(), ApiError>>;
/// A check that is under way, with the warnings for the user of the request.
pub(crate) type Warning<'a> = BoxFuture<'a, Result<Vec<String>, ApiError>>;
/// A reservation that is being made.
pub(crate) type Reserving<'a> = BoxFuture<'a, Result<Reservation, ApiError>>;

/// A part of admission that depends on other objects. It writes nothing itself.
///
/// Each method returns `None` if there is nothing to wait for: the request does not concern the plugin, or the step is
/// done.
pub(crate) trait Plugin: Send + Sync {
    /// Completes an object that has its defaults from other objects. Called again if policies or webhooks have changed
    /// a new object, so it must leave alone what it has set before (upstream: `MutationInterface`).
    ///
    /// # Errors
    /// Above all `Forbidden` if the object names one that does not exist.
    fn admit<'a>(
        &'a self,
        _request: Attributes<'a>,
        _object: &'a mut dyn Object,
        _reader: &'a dyn Reader,
    ) -> Option<Step<'a>> {
        None
    }

    /// Checks the valid object of a request, which does not change any more except by reservations (upstream:
    /// `ValidationInterface`).
    ///
    /// # Errors
    /// Above all `Forbidden`.
    fn check<'a>(&'a self, _request: Attributes<'a>, _reader: &'a dyn Reader) -> Option<Step<'a>> {
        None
    }

    /// As [`Self::check`], which comes before it, with warnings for the user of the request.
    ///
    /// # Errors
    /// Those of [`Self::check`].
    fn check_and_warn<'a>(
        &'a self,
        _request: Attributes<'a>,
        _reader: &'a dyn Reader,
    ) -> Option<Warning<'a>> {
        None
    }

    /// Reserves what the write of an object needs and others may not have, before each attempt to commit it. It may set
    /// values in the object. The first attempt may depend on a cache that is stale; a later one reads at least what
    /// `at` says.
    ///
    /// # Errors
    /// `Forbidden` or `Invalid` if it cannot be had.
    fn reserve<'a>(
        &'a self,
        _request: Attributes<'a>,
        _object: &'a mut dyn Object,
        _at: AtLeast,
        _reader: &'a dyn Reader,
    ) -> Option<Reserving<'a>> {
        None
    }

    /// Returns what ends in the transaction that removes the old object of a request.
    ///
    /// # Errors
    /// Those of the reader.
    fn release<'a>(
        &'a self,
        _request: Attributes<'a>,
        _reader: &'a dyn Reader,
    ) -> Option<Reserving<'a>> {
        None
    }
}
