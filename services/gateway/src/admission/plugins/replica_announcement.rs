//! Announcements of replicas, the Leases in `setpoint-replicas`: each names the service that its user is, and is
//! written by this user alone. No role can say this, since rules know neither labels nor the name of a new object.
//!
//! A Lease of an earlier version has no user; the first of its service that renews it becomes that.

use std::future::ready;

use setpoint_codec::{Object, kind_of};
use setpoint_kinds::Identity;
use setpoint_model::{replicas, users};
use setpoint_proto::ApiError;
use setpoint_proto::coordination::Lease;
use setpoint_proto::meta::ObjectMeta;

use super::{Plugin, Step};
use crate::admission::{Attributes, Operation, Reader};
use crate::errors;
use crate::request::authorization::is_master;

/// The services that delete objects of all kinds.
const DELETING: [&str; 2] = ["garbage-collector-controller", "namespace-controller"];

/// The plugin.
pub(super) struct ReplicaAnnouncement;

impl Plugin for ReplicaAnnouncement {
    fn admit<'a>(
        &'a self,
        request: Attributes<'a>,
        object: &'a mut dyn Object,
        _reader: &'a dyn Reader,
    ) -> Option<Step<'a>> {
        let target = request.target;
        let is_announcement =
            *target.kind == *kind_of::<Lease>() && target.namespace == replicas::NAMESPACE;
        if !is_announcement || is_master(&request.context.user) {
            return None;
        }
        Some(Box::pin(ready(admit(request, object.meta_mut()))))
    }
}

fn admit(request: Attributes<'_>, meta: &mut ObjectMeta) -> Result<(), ApiError> {
    let user = &request.context.user;
    let services = services_of(user);
    let old = request.old.map(Object::meta);
    let is_own = |service: &&str| old.is_none_or(|old| is_own(old, service, user));
    let is_allowed = match request.operation {
        Operation::Delete if services.iter().any(|one| DELETING.contains(one)) => true,
        // Roles decide about users who are none of a service.
        Operation::Delete => services.is_empty() || services.iter().any(is_own),
        _ => services.iter().any(|one| names(meta, one) && is_own(one)),
    };
    if !is_allowed {
        let why = format!(
            "user {:?} announces replicas of {}, each in a Lease of its own, only",
            user.name,
            services.first().unwrap_or(&"no service")
        );
        return Err(errors::forbidden(request.target, &why, None));
    }
    if request.operation != Operation::Delete {
        let name = user.name.clone();
        meta.annotations.insert(replicas::USER.into(), name);
    }
    Ok(())
}

/// Returns the services of which a user is a replica. What runs beside the agent of a node that has joined is a client
/// by the certificate of its node.
fn services_of(user: &Identity) -> Vec<&str> {
    let is_in = |group: &str| user.groups.iter().any(|one| one == group);
    match (is_in(users::NODES), is_in(users::SIMULATED_NODES)) {
        (true, _) => [&[replicas::NODE_AGENT][..], &replicas::BESIDE_NODE_AGENT].concat(),
        (false, true) => vec![replicas::NODE_AGENT],
        (false, false) => user.name.strip_prefix(users::PREFIX).into_iter().collect(),
    }
}

fn names(meta: &ObjectMeta, service: &str) -> bool {
    meta.labels
        .get(replicas::SERVICE)
        .is_some_and(|named| named == service)
}

fn is_own(old: &ObjectMeta, service: &str, user: &Identity) -> bool {
    let owner = old.annotations.get(replicas::USER);
    names(old, service) && owner.is_none_or(|owner| *owner == user.name)
}
