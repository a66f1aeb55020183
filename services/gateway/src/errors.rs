//! API errors with Kubernetes' messages, and the conversion of the store's errors into them.

use setpoint_codec::Kind;
use setpoint_proto::meta::{StatusCause, StatusDetails};
use setpoint_proto::{ApiError, FENCED, Reason};
use setpoint_store as store;

use setpoint_kinds::Target;

/// Returns `NotFound` for an object.
pub fn not_found(kind: &Kind, name: &str) -> ApiError {
    let message = format!("{} {name:?} not found", kind.resource());
    about(Reason::NotFound, message, kind, name)
}

/// Returns `AlreadyExists` for an object.
pub fn already_exists(kind: &Kind, name: &str) -> ApiError {
    let message = format!("{} {name:?} already exists", kind.resource());
    about(Reason::AlreadyExists, message, kind, name)
}

/// Returns `AlreadyExists` when every generated name exists. The client may try again.
pub fn no_unique_name(kind: &Kind, name: &str) -> ApiError {
    let resource = kind.resource();
    let message = format!(
        "{resource} {name:?} already exists, the server was not able to generate a unique name for the object"
    );
    let mut error = about(Reason::AlreadyExists, message, kind, name);
    if let Some(details) = &mut error.details {
        details.retry_after_seconds = 1;
    }
    error
}

/// Returns `Conflict` for an object or its subresource.
pub fn conflict(target: &Target, why: impl std::fmt::Display) -> ApiError {
    let part = match target.subresource.name() {
        // Kubernetes does not name the status in these messages.
        "" | "status" => String::new(),
        part => format!("/{part}"),
    };
    let resource = target.served.resource();
    let message = format!(
        "Operation cannot be fulfilled on {resource}{part} {:?}: {why}",
        target.name
    );
    about(Reason::Conflict, message, target.served, &target.name)
}

/// Returns `Conflict` for a write that is based on an outdated version.
pub fn modified(target: &Target) -> ApiError {
    let why = "the object has been modified; please apply your changes to the latest version and try again";
    conflict(target, why)
}

/// Returns `Forbidden` for an object, with a machine-readable cause if there is one.
pub fn forbidden(target: &Target, why: &str, cause: Option<StatusCause>) -> ApiError {
    let resource = target.served.resource();
    let message = format!("{resource} {:?} is forbidden: {why}", target.name);
    let mut error = about(Reason::Forbidden, message, target.served, &target.name);
    if let Some(details) = &mut error.details {
        details.causes.extend(cause);
    }
    error
}

/// Returns `MethodNotAllowed` for a verb that the kind does not have.
pub fn not_allowed() -> ApiError {
    ApiError::new(
        Reason::MethodNotAllowed,
        "the server does not allow this method on the requested resource",
    )
}

/// Returns `NotFound` for a kind that is not served.
pub fn no_such_resource() -> ApiError {
    let message = "the server could not find the requested resource";
    ApiError::new(Reason::NotFound, message)
}

/// Returns `InternalError`.
pub fn internal(why: &str) -> ApiError {
    let message = format!("Internal error occurred: {why}");
    ApiError::new(Reason::InternalError, message).with_details(StatusDetails {
        causes: vec![StatusCause {
            message: why.to_owned(),
            ..Default::default()
        }],
        ..Default::default()
    })
}

/// Returns `InternalError` for an object that cannot be converted because it is not of a custom kind.
pub fn not_custom(to: &Kind) -> ApiError {
    let message = format!("an object is not of the kind {}", to.resource());
    ApiError::new(Reason::InternalError, message)
}

/// Refuses a write of an object that is computed: such kinds can only be read.
///
/// # Errors
/// `MethodNotAllowed`.
pub fn check_writable(target: &Target) -> Result<(), ApiError> {
    match target.served.is_computed {
        true => Err(not_allowed()),
        false => Ok(()),
    }
}

/// Converts an error of decoding a stored object to `InternalError`.
pub fn readable<T, E: std::fmt::Display>(read: Result<T, E>) -> Result<T, ApiError> {
    read.map_err(|error| {
        let message = format!("decoding a stored object failed: {error}");
        ApiError::new(Reason::InternalError, message)
    })
}

/// Converts the store's error of a write.
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
    let mut error = conflict(target, "the lease term of the writer is over");
    if let Some(details) = &mut error.details {
        details.causes.push(StatusCause {
            reason: FENCED.into(),
            message: "another holder has acquired the lease".into(),
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
    fn messages_are_those_of_kubernetes() {
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
        let error = no_unique_name(target("").kind, "web");
        assert_eq!(
            error.message,
            r#"deployments.apps "web" already exists, the server was not able to generate a unique name for the object"#
        );
        assert_eq!(error.details.unwrap().retry_after_seconds, 1);
        assert_eq!(
            already_exists(target("").kind, "web").message,
            r#"deployments.apps "web" already exists"#
        );
    }

    #[test]
    fn a_conflict_because_of_a_fence_is_fenced() {
        let error = of_write(store::Error::Fenced, &target(""));
        assert_eq!(error.reason, Reason::Conflict);
        assert!(error.is_fenced());
    }
}
