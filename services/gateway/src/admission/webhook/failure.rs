//! The errors of admission webhooks, in upstream's words.

use setpoint_proto::meta::{Status, StatusCause, StatusDetails};
use setpoint_proto::{ApiError, Reason, StatusOverride};

/// The smallest HTTP status of an error.
const BAD_REQUEST: i32 = 400;

/// The reason for which a webhook does not admit a request.
#[derive(Debug)]
pub(super) enum Failure {
    /// It could not be asked. The failure policy decides.
    Call(String),
    /// It has refused the call, or its response is malformed, of which the reason may have a part. The failure policy
    /// decides.
    Response(String),
    /// It has denied the request, or the request cannot be what it asks for.
    Denial(ApiError),
}

impl Failure {
    /// Returns the error of the request; `None` if the webhook's failures are ignored.
    pub(super) fn into_error(self, webhook: &str, ignores_failures: bool) -> Option<ApiError> {
        let (reason, is_loggable) = match self {
            Self::Denial(error) => return Some(error),
            Self::Call(reason) => (reason, true),
            Self::Response(reason) => (reason, false),
        };
        if ignores_failures {
            // Readers of the log are not to learn what the address of a webhook answers (CVE-2020-8561).
            let error = is_loggable.then_some(reason);
            tracing::warn!(webhook, error, "a webhook failed, which is ignored");
            return None;
        }
        Some(internal(&format!(
            "failed calling webhook {webhook:?}: {reason}"
        )))
    }
}

/// Returns the error of a request that a webhook has denied, with the status of its response.
pub(super) fn denied(webhook: &str, status: Option<Status>) -> ApiError {
    let status = status.unwrap_or_default();
    let denied = format!("admission webhook {webhook:?} denied the request");
    let message = match (status.message.as_str(), status.reason.as_str()) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    let code = u16::try_from(status.code.max(BAD_REQUEST)).unwrap_or(u16::MAX);
    let mut error = ApiError::new(reason_of(code, &status.reason), message);
    error.details = status.details.map(Box::new);
    if error.reason.http() != code || error.reason.name() != status.reason {
        let reason = status.reason;
        error.status_override = Some(Box::new(StatusOverride { code, reason }));
    }
    error
}

/// Returns the reason that is nearest to those of a status: it has the name or else the code.
fn reason_of(code: u16, name: &str) -> Reason {
    let mut all = Reason::ALL.iter().copied();
    let named = all.clone().find(|reason| reason.name() == name);
    let coded = || all.find(|reason| reason.http() == code);
    named.or_else(coded).unwrap_or(match code {
        500.. => Reason::InternalError,
        _ => Reason::BadRequest,
    })
}

/// Returns the error of a dry run of which a webhook must not know.
pub(super) fn no_dry_run(webhook: &str) -> ApiError {
    let message = format!("admission webhook {webhook:?} does not support dry run");
    ApiError::new(Reason::BadRequest, message)
}

/// Returns the error of a patch where there is no object, as for a deletion.
pub(super) fn nothing_to_modify(webhook: &str) -> ApiError {
    internal(&format!(
        "admission webhook {webhook:?} attempted to modify the object, which is not supported for this operation"
    ))
}

/// Returns `InternalError`.
pub(in crate::admission) fn internal(cause: &str) -> ApiError {
    let message = format!("Internal error occurred: {cause}");
    ApiError::new(Reason::InternalError, message).with_details(StatusDetails {
        causes: vec![StatusCause {
            message: cause.to_owned(),
            ..Default::default()
        }],
        ..Default::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cases of upstream's `TestToStatusErr`.
    #[test]
    fn a_denial_has_the_status_of_the_response() {
        let told = |code, reason: &str, message: &str| {
            let error = denied(
                "w",
                Some(Status {
                    code,
                    reason: reason.into(),
                    message: message.into(),
                    ..Default::default()
                }),
            );
            let status = error.to_status();
            (status.code, status.reason, status.message)
        };
        let words = |words: &str| format!("admission webhook \"w\" denied the request{words}");
        let case = |code, reason: &str, text: &str| (code, reason.to_owned(), words(text));
        assert_eq!(told(0, "", ""), case(400, "", " without explanation"));
        assert_eq!(
            told(0, "Forbidden", ""),
            case(400, "Forbidden", ": Forbidden")
        );
        assert_eq!(told(0, "", "no"), case(400, "", ": no"));
        assert_eq!(told(200, "Why", "no"), case(400, "Why", ": no"));
        assert_eq!(told(403, "Forbidden", "no"), case(403, "Forbidden", ": no"));
        assert_eq!(told(418, "", "tea"), case(418, "", ": tea"));
        assert_eq!(
            denied("w", None).message,
            "admission webhook \"w\" denied the request without explanation"
        );
    }

    #[test]
    fn only_failed_calls_can_be_ignored() {
        let call = || Failure::Call("failed to call webhook: EOF".into());
        let error = call().into_error("w", false).unwrap();
        assert_eq!(
            (error.reason, error.message.as_str()),
            (
                Reason::InternalError,
                "Internal error occurred: failed calling webhook \"w\": failed to call webhook: EOF"
            )
        );
        assert_eq!(call().into_error("w", true), None);
        let response = || Failure::Response("received invalid webhook response: x".into());
        assert!(response().into_error("w", false).is_some());
        assert_eq!(response().into_error("w", true), None);
        let denial = Failure::Denial(no_dry_run("w"));
        assert_eq!(denial.into_error("w", true), Some(no_dry_run("w")));
    }
}
