//! The plugins of a gateway, in their order.

use std::sync::Arc;

use setpoint_codec::{KindTable, Object};
use setpoint_pod_security::Configuration;
use setpoint_proto::ApiError;
use setpoint_store::cache::AtLeast;

use super::certificates::{CertificateApproval, CertificateSigning, CertificateSubjectRestriction};
use super::deny_service_external_ips::DenyServiceExternalIps;
use super::node_restriction::NodeRestriction;
use super::owner_references_permission_enforcement::OwnerReferencesPermissionEnforcement;
use super::pod_security::PodSecurity;
use super::role_escalation::RoleEscalation;
use super::selection::Selection;
use super::service_ip_allocator::ServiceIpAllocator;
use super::{
    Plugin, custom_resource_lifecycle, default_ingress_class, default_storage_class,
    default_toleration_seconds, lease_term, limit_ranger, namespace_lifecycle,
    persistent_volume_claim_resize, pod_resize_validator, pod_topology_labels, priority,
    replica_announcement, resource_quota, runtime_class, service_account,
};
use crate::admission::{Attributes, Reader, Reservation};
use crate::request::authorization::Authorizer;
use crate::service_ranges::ServiceRanges;

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

    /// Turns it off unless a setting turns it on.
    fn optional(self) -> Self {
        Self {
            is_enabled: false,
            ..self
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
        Named::new("PodSecurity", PodSecurity::default()),
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
            CertificateSubjectRestriction,
        ),
        Named::new(
            "DefaultIngressClass",
            default_ingress_class::DefaultIngressClass,
        ),
        Named::new("DenyServiceExternalIPs", DenyServiceExternalIps).optional(),
        Named::new("PodTopologyLabels", pod_topology_labels::PodTopologyLabels),
        Named::new(
            "PodResizeValidator",
            pod_resize_validator::PodResizeValidator,
        ),
        Named::new("ServiceIPAllocator", ServiceIpAllocator::default()),
        Named::new("ResourceQuota", resource_quota::Quotas::default()),
        Named::new(
            "ReplicaAnnouncement",
            replica_announcement::ReplicaAnnouncement,
        ),
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
        let restriction = NodeRestriction::new(authorizer());
        self.insert_after("ServiceAccount", Named::new("NodeRestriction", restriction));
        let enforcement = OwnerReferencesPermissionEnforcement::new(authorizer(), kinds.clone());
        let enforcement = Named::new("OwnerReferencesPermissionEnforcement", enforcement);
        self.insert_after("DefaultStorageClass", enforcement.optional());
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

    /// Sets the configuration of Pod security.
    pub(crate) fn set_pod_security(&mut self, configuration: Configuration) {
        let mut plugins = self.ordered.iter_mut();
        if let Some(plugin) = plugins.find(|one| one.name == "PodSecurity") {
            plugin.plugin = Box::new(PodSecurity::new(configuration));
        }
    }

    /// Sets the ranges of the addresses and node ports of Services.
    pub(crate) fn set_service_ranges(&mut self, ranges: ServiceRanges) {
        let mut plugins = self.ordered.iter_mut();
        if let Some(plugin) = plugins.find(|one| one.name == "ServiceIPAllocator") {
            plugin.plugin = Box::new(ServiceIpAllocator::new(ranges));
        }
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

    /// Returns the names of all plugins, and whether each is on.
    #[cfg(test)]
    pub(super) fn names(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let plugins = self.ordered.iter();
        plugins.map(|one| (one.name, one.is_enabled))
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

    /// Checks the valid object of a request. Adds warnings for its user.
    ///
    /// # Errors
    /// The first one of a plugin.
    pub(crate) async fn check(
        &self,
        request: Attributes<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        for plugin in self.enabled() {
            if let Some(step) = plugin.check(request, &*self.reader) {
                step.await?;
            }
            if let Some(step) = plugin.check_and_warn(request, &*self.reader) {
                warnings.extend(step.await?);
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
