//! Counts authorizations, and logs those in which a service of the control plane was refused something.

use setpoint_kinds::Identity;
use setpoint_model::replicas::NODE_AGENT;
use setpoint_model::users;
use setpoint_rbac::bootstrap::setpoint::WRITERS;

use super::super::Attributes;
use crate::metrics::{Authorization, authorized, refused_service};

pub(in crate::request) fn allowed() {
    authorized(Authorization::Allowed);
}

/// The roles could not be read.
pub(in crate::request) fn failed() {
    authorized(Authorization::Error);
}

/// `is_denied`: an authorizer has refused it for good.
pub(in crate::request) fn refused(user: &Identity, asked: &Attributes, is_denied: bool) {
    authorized(match is_denied {
        true => Authorization::Denied,
        false => Authorization::NoOpinion,
    });
    let Some(service) = service(user) else {
        return;
    };
    refused_service(service);
    let resource = asked.resource.as_ref();
    tracing::info!(
        user = user.name,
        verb = %asked.verb,
        resource = ?resource.map(|of| (&of.group, &of.resource, &of.subresource)),
        namespace = resource.map(|of| &*of.namespace),
        name = resource.map(|of| &*of.name),
        path = asked.path,
        "a request of a service is not allowed"
    );
}

/// Returns the name of the service that a user is; `None` for other users. A node is its agent, so that the number of
/// names is limited.
fn service(user: &Identity) -> Option<&str> {
    if user.name.starts_with(users::NODE_PREFIX) {
        return Some(NODE_AGENT);
    }
    let name = user.name.strip_prefix(users::PREFIX)?;
    match WRITERS.contains(&name) {
        true => Some(name),
        // Its name ends with the prefix of its nodes.
        false => name.starts_with("simulated-nodes:").then_some(NODE_AGENT),
    }
}
