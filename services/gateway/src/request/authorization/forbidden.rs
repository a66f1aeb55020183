//! The error of a request that is not allowed, in upstream's words.

use setpoint_kinds::Identity;
use setpoint_proto::meta::StatusDetails;
use setpoint_proto::{ApiError, Reason};

use super::super::{Attributes, Resource};

/// Returns the error of a request that its user may not make.
pub(in crate::request) fn error(
    user: &Identity,
    attributes: &Attributes,
    reason: &str,
) -> ApiError {
    let suffix = match reason {
        "" => String::new(),
        reason => format!(": {reason}"),
    };
    let why = sanitized(&message(user, attributes)) + &suffix;
    match &attributes.resource {
        Some(resource) if !resource.resource.is_empty() => about(resource, &why),
        _ => ApiError::new(Reason::Forbidden, format!("forbidden: {why}"))
            .with_details(StatusDetails::default()),
    }
}

fn about(resource: &Resource, why: &str) -> ApiError {
    let plural = match resource.group.as_str() {
        "" => resource.resource.clone(),
        group => format!("{}.{group}", resource.resource),
    };
    let name = match resource.name.as_str() {
        "" => String::new(),
        name => format!(" {name:?}"),
    };
    let message = format!("{plural}{name} is forbidden: {why}");
    ApiError::new(Reason::Forbidden, message).with_details(StatusDetails {
        name: resource.name.clone(),
        group: resource.group.clone(),
        kind: resource.resource.clone(),
        ..StatusDetails::default()
    })
}

fn message(user: &Identity, attributes: &Attributes) -> String {
    let (user, verb) = (&user.name, &attributes.verb);
    let Some(resource) = &attributes.resource else {
        return format!("User {user:?} cannot {verb} path {:?}", attributes.path);
    };
    let part = match resource.subresource.as_str() {
        "" => String::new(),
        part => format!("/{part}"),
    };
    let named = format!("{}{part}", resource.resource);
    let scope = match resource.namespace.as_str() {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace {namespace:?}"),
    };
    let group = &resource.group;
    format!("User {user:?} cannot {verb} resource {named:?} in API group {group:?} {scope}")
}

/// Returns a text that no browser takes for HTML.
fn sanitized(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
