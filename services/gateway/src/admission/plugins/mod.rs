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
//! * `PodSecurity` enforces the levels of Pod security standards, which are not there yet.
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
#[warn(clippy::arithmetic_side_effects)]
mod lease_term;
mod limit_ranger;
mod namespace_lifecycle;
mod node_restriction;
mod owner_references_permission_enforcement;
mod persistent_volume_claim_resize;
mod pod_resize_validator;
mod pod_topology_labels;
mod priority;
mod resource_quota;
mod role_escalation;
mod runtime_class;
mod selection;
mod service_account;
mod service_ip_allocator;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures::future::BoxFuture;
use setpoint_codec::{KindTable, Object};
use setpoint_proto::ApiError;
use setpoint_store::cache::AtLeast;

use super::{Attributes, Reader, Reservation};
use crate::request::authorization::Authorizer;
use certificates::{CertificateApproval, CertificateSigning};
use node_restriction::NodeRestriction;
use owner_references_permission_enforcement::OwnerReferencesPermissionEnforcement;
use role_escalation::RoleEscalation;
pub use selection::Selection;

/// A step of a plugin that is under way.
pub(crate) type Step<'a> = BoxFuture<'a, Result<(), ApiError>>;
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

/// A plugin with its name.
struct Named {
    name: &'static str,
    is_enabled: bool,
    plugin: Box<dyn Plugin>,
}

impl Named {
    fn new(name: &'static str, plugin: impl Plugin + 'static) -> Self {
        Self {
            name,
            is_enabled: true,
            plugin: Box::new(plugin),
        }
    }
}

/// Returns the plugins that ask no authorizer, in their order.
fn ordered() -> Vec<Named> {
    vec![
        Named::new(
            "NamespaceLifecycle",
            namespace_lifecycle::NamespaceLifecycle,
        ),
        Named::new(
            "CustomResourceLifecycle",
            custom_resource_lifecycle::CustomResourceLifecycle,
        ),
        Named::new("LimitRanger", limit_ranger::LimitRanger),
        Named::new("ServiceAccount", service_account::Accounts),
        Named::new("Priority", priority::Priority),
        Named::new(
            "DefaultTolerationSeconds",
            default_toleration_seconds::DefaultTolerationSeconds,
        ),
        Named::new(
            "DefaultStorageClass",
            default_storage_class::DefaultStorageClass,
        ),
        Named::new(
            "PersistentVolumeClaimResize",
            persistent_volume_claim_resize::PersistentVolumeClaimResize,
        ),
        Named::new("RuntimeClass", runtime_class::Classes),
        Named::new(
            "CertificateSubjectRestriction",
            certificates::CertificateSubjectRestriction,
        ),
        Named::new(
            "DefaultIngressClass",
            default_ingress_class::DefaultIngressClass,
        ),
        Named::new("PodTopologyLabels", pod_topology_labels::PodTopologyLabels),
        Named::new(
            "PodResizeValidator",
            pod_resize_validator::PodResizeValidator,
        ),
        Named::new(
            "ServiceIPAllocator",
            service_ip_allocator::ServiceIpAllocator::default(),
        ),
        Named::new("ResourceQuota", resource_quota::Quotas::default()),
        Named::new("LeaseTerm", lease_term::LeaseTerm),
    ]
}

/// The plugins of a gateway, and what they read from.
pub(crate) struct Plugins {
    ordered: Vec<Named>,
    reader: Box<dyn Reader>,
}

impl Plugins {
    /// Returns all plugins that ask no authorizer.
    pub(crate) fn new(reader: impl Reader + 'static) -> Self {
        Self {
            ordered: ordered(),
            reader: Box::new(reader),
        }
    }

    /// Adds the plugins that ask an authorizer.
    pub(crate) fn ask(&mut self, authorizer: &Arc<Authorizer>, kinds: &Arc<KindTable>) {
        let authorizer = || authorizer.clone();
        let restriction = Named {
            is_enabled: authorizer().limits_nodes(),
            ..Named::new("NodeRestriction", NodeRestriction::new(authorizer()))
        };
        self.insert_after("ServiceAccount", restriction);
        let enforcement = OwnerReferencesPermissionEnforcement::new(authorizer(), kinds.clone());
        let enforcement = Named {
            is_enabled: false,
            ..Named::new("OwnerReferencesPermissionEnforcement", enforcement)
        };
        self.insert_after("DefaultStorageClass", enforcement);
        let signing = CertificateSigning {
            authorizer: authorizer(),
        };
        self.insert_after("RuntimeClass", Named::new("CertificateSigning", signing));
        let approval = CertificateApproval {
            authorizer: authorizer(),
        };
        self.insert_after("RuntimeClass", Named::new("CertificateApproval", approval));
        if authorizer().rbac().is_some() {
            let escalation = RoleEscalation::new(authorizer());
            self.ordered.push(Named::new("RoleEscalation", escalation));
        }
    }

    /// Inserts a plugin behind another, or at the end.
    fn insert_after(&mut self, name: &str, plugin: Named) {
        let before = self.ordered.iter().position(|one| one.name == name);
        let at = before.map_or(self.ordered.len(), |before| before + 1);
        self.ordered.insert(at, plugin);
    }

    /// Turns plugins on and off.
    pub(crate) fn select(&mut self, selection: &Selection) {
        for plugin in &mut self.ordered {
            plugin.is_enabled = selection.includes(plugin.name, plugin.is_enabled);
        }
    }

    /// Adds a plugin behind the others.
    #[cfg(test)]
    pub(crate) fn push(&mut self, plugin: Box<dyn Plugin>) {
        self.ordered.push(Named {
            name: "",
            is_enabled: true,
            plugin,
        });
    }

    fn enabled(&self) -> impl Iterator<Item = &dyn Plugin> {
        let enabled = self.ordered.iter().filter(|one| one.is_enabled);
        enabled.map(|one| &*one.plugin)
    }

    /// Completes an object that has its defaults.
    ///
    /// # Errors
    /// The first one of a plugin.
    pub(crate) async fn admit(
        &self,
        request: Attributes<'_>,
        object: &mut dyn Object,
    ) -> Result<(), ApiError> {
        for plugin in self.enabled() {
            if let Some(step) = plugin.admit(request, &mut *object, &*self.reader) {
                step.await?;
            }
        }
        Ok(())
    }

    /// Checks the valid object of a request.
    ///
    /// # Errors
    /// The first one of a plugin.
    pub(crate) async fn check(&self, request: Attributes<'_>) -> Result<(), ApiError> {
        for plugin in self.enabled() {
            if let Some(step) = plugin.check(request, &*self.reader) {
                step.await?;
            }
        }
        Ok(())
    }

    /// Reserves what the write of an object needs.
    ///
    /// # Errors
    /// The first one of a plugin.
    pub(crate) async fn reserve(
        &self,
        request: Attributes<'_>,
        object: &mut dyn Object,
        at: AtLeast,
    ) -> Result<Reservation, ApiError> {
        let mut reservation = Reservation::default();
        for plugin in self.enabled() {
            if let Some(step) = plugin.reserve(request, &mut *object, at, &*self.reader) {
                reservation.add(step.await?);
            }
        }
        Ok(reservation)
    }

    /// Returns what ends with the object that a request removes.
    ///
    /// # Errors
    /// The first one of a plugin.
    pub(crate) async fn release(&self, request: Attributes<'_>) -> Result<Reservation, ApiError> {
        let mut reservation = Reservation::default();
        for plugin in self.enabled() {
            if let Some(step) = plugin.release(request, &*self.reader) {
                reservation.add(step.await?);
            }
        }
        Ok(reservation)
    }
}
