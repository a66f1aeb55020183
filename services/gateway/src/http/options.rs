//! What a write asks for beside its object: no effect, a name for the writer, how strictly to read.

use http::HeaderMap;
use http::header::USER_AGENT;
use setpoint_proto::meta::{StatusCause, StatusDetails};
use setpoint_proto::{ApiError, Reason};

use super::query::Query;
use crate::registry::Call;

/// Maximum length of the name of a field manager, in bytes.
const MANAGER_MAX: usize = 128;

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
    let manager = match query.get("fieldManager") {
        Some(manager) => {
            check_manager(manager)?;
            manager.to_owned()
        }
        None => agent.to_owned(),
    };
    Ok(Call::from_headers(header)?.by(manager).dry(dry_run))
}

/// Refuses the name of a field manager that is too long, or not printable.
fn check_manager(name: &str) -> Result<(), ApiError> {
    let field = "fieldManager";
    if name.len() > MANAGER_MAX {
        let message = format!("Too long: may not be more than {MANAGER_MAX} bytes");
        return Err(refused(field, "FieldValueTooLong", message));
    }
    let unprintable =
        |letter: char| letter.is_control() || (letter.is_whitespace() && letter != ' ');
    match name.char_indices().find(|(_, letter)| unprintable(*letter)) {
        None => Ok(()),
        Some((at, letter)) => {
            let code = u32::from(letter);
            let detail = format!("{name:?}: invalid character U+{code:04X} (at position {at})");
            Err(invalid(field, &detail))
        }
    }
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
