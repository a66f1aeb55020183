//! Lets users grant only permissions that they have themselves (upstream: the storages of roles and bindings, which are
//! based on policy).
//!
//! A role may be written by whom has all of its rules, or the verb `escalate` on it; a binding by whom has all rules of
//! its role, or the verb `bind` on that.

use std::sync::Arc;

use setpoint_codec::{Kind, Object, kind_of};
use setpoint_kinds::Identity;
use setpoint_model::Key;
use setpoint_proto::ApiError;
use setpoint_proto::rbac::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef,
};

use super::{Plugin, Step};
use crate::admission::{Attributes, Operation, Reader};
use crate::errors;
use crate::request::authorization::{Authorizer, everything, is_master};
use crate::request::{self, Resource};

const AGGREGATION: &str = "must have cluster-admin privileges to use the aggregationRule";

/// The plugin.
pub(in crate::admission) struct RoleEscalation {
    authorizer: Arc<Authorizer>,
}

impl Plugin for RoleEscalation {
    fn check<'a>(&'a self, request: Attributes<'a>, reader: &'a dyn Reader) -> Option<Step<'a>> {
        let object = request.object?;
        let writes = [Operation::Create, Operation::Update].contains(&request.operation);
        if !writes || is_master(&request.context.user) {
            return None;
        }
        if let Some((role, namespace)) = role_of(object) {
            let step = self.check_binding(request, role, namespace, reader);
            return Some(Box::pin(step));
        }
        let rules = rules_of(object)?;
        Some(Box::pin(self.check_role(request, rules)))
    }
}

impl RoleEscalation {
    /// Returns the plugin.
    pub(in crate::admission) const fn new(authorizer: Arc<Authorizer>) -> Self {
        Self { authorizer }
    }

    async fn check_role(
        &self,
        request: Attributes<'_>,
        rules: &[PolicyRule],
    ) -> Result<(), ApiError> {
        let target = request.target;
        // The name of an object that is created is not in its URL.
        let name = match request.operation {
            Operation::Create => String::new(),
            _ => target.name.clone(),
        };
        let resource = Resource {
            group: target.served.group.clone(),
            version: "*".into(),
            resource: target.served.plural.clone(),
            namespace: target.namespace.clone(),
            name,
            ..Resource::default()
        };
        if self.may(&request.context.user, "escalate", resource) || changes_owners_only(request) {
            return Ok(());
        }
        self.confirm(request, rules).await?;
        let is_aggregated = [request.object, request.old]
            .into_iter()
            .flatten()
            .any(has_aggregation);
        match is_aggregated && self.confirm(request, &everything()).await.is_err() {
            true => Err(errors::forbidden(target, AGGREGATION, None)),
            false => Ok(()),
        }
    }

    async fn check_binding(
        &self,
        request: Attributes<'_>,
        role: &RoleRef,
        namespace: &str,
        reader: &dyn Reader,
    ) -> Result<(), ApiError> {
        let resource = Resource {
            group: role.api_group.clone(),
            version: "*".into(),
            resource: kind_of_role(role).plural.clone(),
            namespace: namespace.into(),
            name: role.name.clone(),
            ..Resource::default()
        };
        if changes_owners_only(request) || self.may(&request.context.user, "bind", resource) {
            return Ok(());
        }
        let rules = granted(role, namespace, reader).await?;
        self.confirm(request, &rules).await
    }

    fn may(&self, user: &Identity, verb: &'static str, resource: Resource) -> bool {
        let attributes = request::Attributes::of_resource(verb, resource);
        self.authorizer.allows(user, &attributes)
    }

    /// Refuses rules that the user does not have itself.
    async fn confirm(&self, request: Attributes<'_>, rules: &[PolicyRule]) -> Result<(), ApiError> {
        let (user, target) = (&request.context.user, request.target);
        let Some(rbac) = self.authorizer.rbac() else {
            return Ok(());
        };
        match rbac.escalation(user, &target.namespace, rules).await {
            Some(why) => Err(errors::forbidden(target, &why, None)),
            None => Ok(()),
        }
    }
}

/// Returns the rules of a role.
fn rules_of(object: &dyn Object) -> Option<&[PolicyRule]> {
    let of_role = object.downcast_ref::<Role>().map(|role| &role.rules);
    let of_cluster_role = || object.downcast_ref::<ClusterRole>().map(|role| &role.rules);
    of_role.or_else(of_cluster_role).map(Vec::as_slice)
}

/// Returns the role that a binding grants, and the namespace in which.
fn role_of(object: &dyn Object) -> Option<(&RoleRef, &str)> {
    if let Some(binding) = object.downcast_ref::<RoleBinding>() {
        return Some((&binding.role_ref, &binding.metadata.namespace));
    }
    let binding = object.downcast_ref::<ClusterRoleBinding>()?;
    Some((&binding.role_ref, ""))
}

fn has_aggregation(object: &dyn Object) -> bool {
    let role = object.downcast_ref::<ClusterRole>();
    role.and_then(|role| role.aggregation_rule.as_ref())
        .is_some_and(|rule| !rule.cluster_role_selectors.is_empty())
}

/// Returns the rules that a binding in a namespace grants.
async fn granted(
    role: &RoleRef,
    namespace: &str,
    reader: &dyn Reader,
) -> Result<Vec<PolicyRule>, ApiError> {
    let kind = kind_of_role(role);
    let found = if kind == kind_of::<ClusterRole>() {
        let key = Key::new("", &role.name);
        let found = reader.find::<ClusterRole>(&key).await?;
        found.map(|found| found.rules)
    } else {
        let key = Key::new(namespace, &role.name);
        let found = reader.find::<Role>(&key).await?;
        found.map(|found| found.rules)
    };
    found.ok_or_else(|| errors::not_found(kind, &role.name))
}

fn kind_of_role(role: &RoleRef) -> &'static Kind {
    match role.kind.as_str() {
        "ClusterRole" => kind_of::<ClusterRole>(),
        _ => kind_of::<Role>(),
    }
}

/// Returns whether an update changes nothing but who owns the object and when it may go: that must be possible for the
/// garbage collector, whatever the object grants.
fn changes_owners_only(request: Attributes<'_>) -> bool {
    let (Some(new), Some(old)) = (request.object, request.old) else {
        return false;
    };
    let mut new = new.clone_box();
    let (meta, before) = (new.meta_mut(), old.meta());
    meta.owner_references.clone_from(&before.owner_references);
    meta.finalizers.clone_from(&before.finalizers);
    meta.managed_fields.clone_from(&before.managed_fields);
    meta.resource_version.clone_from(&before.resource_version);
    meta.generation = before.generation;
    new.encode() == old.encode()
}
