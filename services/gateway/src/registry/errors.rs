//! What a caller hears when a verb fails: the store's errors translated, and Kubernetes' own sentences.

use setpoint_codec::Kind;
use setpoint_proto::meta::{StatusCause, StatusDetails};
use setpoint_proto::{ApiError, FENCED, Reason};
use setpoint_store as store;

use crate::registry::Target;

/// `NotFound`, naming the object.
pub fn not_found(kind: &Kind, name: &str) -> ApiError {
    let message = format!("{} {name:?} not found", kind.resource());
    about(Reason::NotFound, message, kind, name)
}

/// `AlreadyExists`, naming the object.
pub fn already_exists(kind: &Kind, name: &str) -> ApiError {
    let message = format!("{} {name:?} already exists", kind.resource());
    about(Reason::AlreadyExists, message, kind, name)
}

/// `Conflict` about an object or its part, for the reason given.
pub fn conflict(target: &Target, why: impl std::fmt::Display) -> ApiError {
    let part = match target.subresource.name() {
        // Nobody speaks of the status as of a thing of its own.
        "" | "status" => String::new(),
        part => format!("/{part}"),
    };
    let resource = target.kind.resource();
    let message = format!(
        "Operation cannot be fulfilled on {resource}{part} {:?}: {why}",
        target.name
    );
    about(Reason::Conflict, message, target.kind, &target.name)
}

/// `Conflict`, since somebody else wrote meanwhile.
pub fn modified(target: &Target) -> ApiError {
    let why = "the object has been modified; please apply your changes to the latest version and try again";
    conflict(target, why)
}

/// `Forbidden`, perhaps with a cause that programs understand.
pub fn forbidden(target: &Target, why: &str, cause: Option<StatusCause>) -> ApiError {
    let resource = target.kind.resource();
    let message = format!("{resource} {:?} is forbidden: {why}", target.name);
    let mut error = about(Reason::Forbidden, message, target.kind, &target.name);
    if let Some(details) = &mut error.details {
        details.causes.extend(cause);
    }
    error
}

/// The kind does not do that.
pub fn not_allowed() -> ApiError {
    ApiError::new(
        Reason::MethodNotAllowed,
        "the server does not allow this method on the requested resource",
    )
}

/// What is stored must be readable; that it is not is nobody's mistake but ours.
pub fn readable<T, E: std::fmt::Display>(read: Result<T, E>) -> Result<T, ApiError> {
    read.map_err(|error| {
        let message = format!("an object in the store cannot be read: {error}");
        ApiError::new(Reason::InternalError, message)
    })
}

/// The store's error, told of a write. A conflict is not an error here but a reason to look again.
pub fn of_write(error: store::Error, target: &Target) -> ApiError {
    match error {
        store::Error::Fenced => fenced(target),
        store::Error::Conflict { .. }
        | store::Error::TermMoved { .. }
        | store::Error::PreconditionFailed => modified(target),
        other => ApiError::from(other),
    }
}

fn fenced(target: &Target) -> ApiError {
    let mut error = conflict(target, "the lease term of its writer has passed");
    if let Some(details) = &mut error.details {
        details.causes.push(StatusCause {
            reason: FENCED.into(),
            message: "another holder has taken the lease since".into(),
            field: String::new(),
        });
    }
    error
}

fn about(reason: Reason, message: String, kind: &Kind, name: &str) -> ApiError {
    ApiError::new(reason, message).with_details(StatusDetails {
        name: name.to_owned(),
        group: kind.group.clone(),
        kind: kind.plural.clone(),
        ..Default::default()
    })
}

#[cfg(test)]
mod tests {
    use setpoint_codec::kinds;

    use super::*;

    fn target(subresource: &str) -> Target {
        let kind = kinds().by_resource("deployments.apps").unwrap();
        Target::new(kind, "default", "web", subresource).unwrap()
    }

    #[test]
    fn errors_speak_as_kubernetes_does() {
        assert_eq!(
            modified(&target("status")).message,
            r#"Operation cannot be fulfilled on deployments.apps "web": the object has been modified; please apply your changes to the latest version and try again"#
        );
        assert!(
            modified(&target("scale"))
                .message
                .starts_with(r#"Operation cannot be fulfilled on deployments.apps/scale "web""#)
        );
        assert_eq!(
            not_found(target("").kind, "web").message,
            r#"deployments.apps "web" not found"#
        );
        assert_eq!(
            already_exists(target("").kind, "web").message,
            r#"deployments.apps "web" already exists"#
        );
    }

    #[test]
    fn a_fenced_writer_can_tell() {
        let error = of_write(store::Error::Fenced, &target(""));
        assert_eq!(error.reason, Reason::Conflict);
        assert!(error.is_fenced());
    }
}
