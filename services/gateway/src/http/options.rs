//! What a write asks for beside its object: no effect, a name for the writer, how strictly to read.

use http::HeaderMap;
use http::header::USER_AGENT;
use setpoint_proto::meta::{StatusCause, StatusDetails};
use setpoint_proto::{ApiError, Reason};

use super::query::Query;
use crate::registry::Call;

/// What to do about fields that do not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Validation {
    Ignore,
    Warn,
    Strict,
}

impl Validation {
    /// As asked; a warning unless asked.
    pub(super) fn asked(query: &Query) -> Result<Self, ApiError> {
        match query.get("fieldValidation") {
            None | Some("Warn") => Ok(Self::Warn),
            Some("Ignore") => Ok(Self::Ignore),
            Some("Strict") => Ok(Self::Strict),
            Some(other) => {
                let supported = ["Ignore", "Strict", "Warn"];
                Err(unsupported("fieldValidation", other, &supported))
            }
        }
    }
}

/// The circumstances of a request, from its headers and its query.
pub(super) fn call(query: &Query, headers: &HeaderMap) -> Result<Call, ApiError> {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let dry_run = dry_run(query.all("dryRun"))?;
    // A client that gives itself no name is known by its program's.
    let agent = header(USER_AGENT.as_str()).unwrap_or("unknown");
    let agent = agent.split('/').next().unwrap_or(agent);
    let manager = query.get("fieldManager").unwrap_or(agent).to_owned();
    Ok(Call::from_headers(header)?.by(manager).dry(dry_run))
}

/// Is the write to have no effect?
pub(super) fn dry_run<'a>(values: impl IntoIterator<Item = &'a str>) -> Result<bool, ApiError> {
    let mut dry = false;
    for value in values {
        match value {
            "All" => dry = true,
            "" => {}
            other => return Err(unsupported("dryRun", other, &["All"])),
        }
    }
    Ok(dry)
}

/// A parameter's value is none of the few that there are.
pub(super) fn unsupported(field: &str, value: &str, supported: &[&str]) -> ApiError {
    let supported: Vec<_> = supported.iter().map(|value| format!("{value:?}")).collect();
    let supported = supported.join(", ");
    let message = format!("Unsupported value: {value:?}: supported values: {supported}");
    refused(field, "FieldValueNotSupported", message)
}

/// A value is not a good one.
pub(super) fn invalid(field: &str, detail: &str) -> ApiError {
    refused(
        field,
        "FieldValueInvalid",
        format!("Invalid value: {detail}"),
    )
}

/// A parameter may not be there.
pub(super) fn forbidden(field: &str, detail: &str) -> ApiError {
    refused(field, "FieldValueForbidden", format!("Forbidden: {detail}"))
}

fn refused(field: &str, reason: &str, message: String) -> ApiError {
    let sentence = format!(" \"\" is invalid: {field}: {message}");
    let cause = StatusCause {
        reason: reason.into(),
        message,
        field: field.into(),
    };
    ApiError::new(Reason::Invalid, sentence).with_details(StatusDetails {
        causes: vec![cause],
        ..Default::default()
    })
}
