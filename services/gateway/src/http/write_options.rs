//! The query parameters of writes: Kubernetes' `CreateOptions`, `UpdateOptions` and `PatchOptions`.

use http::HeaderMap;
use http::header::USER_AGENT;
use setpoint_proto::meta::{StatusCause, StatusDetails};
use setpoint_proto::{ApiError, Reason};

use crate::registry::RequestContext;
use crate::request::Query;

/// Maximum length of the name of a field manager, in bytes.
const MANAGER_MAX: usize = 128;

/// The treatment of unknown and duplicate fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

impl FieldValidation {
    /// Returns the value of the parameter, by default `Warn`.
    pub(super) fn from_query(query: &Query, of: &str) -> Result<Self, ApiError> {
        match query.get("fieldValidation") {
            None | Some("Warn") => Ok(Self::Warn),
            Some("Ignore") => Ok(Self::Ignore),
            Some("Strict") => Ok(Self::Strict),
            Some(other) => {
                let supported = ["Ignore", "Strict", "Warn"];
                Err(unsupported(of, "fieldValidation", other, &supported))
            }
        }
    }
}

/// Returns the context of a write. `of` is the kind of its options, for example `CreateOptions`.
///
/// # Errors
/// `Invalid` if the query has an unsupported value.
pub(super) fn write(
    query: &Query,
    headers: &HeaderMap,
    of: &str,
) -> Result<RequestContext, ApiError> {
    let dry_run = dry_run(query.all("dryRun"), of)?;
    if let Some(manager) = query.get("fieldManager") {
        check_manager(manager, of)?;
    }
    Ok(context(query, headers)?.dry(dry_run))
}

/// Returns the context of a request.
pub(super) fn context(query: &Query, headers: &HeaderMap) -> Result<RequestContext, ApiError> {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    // The default field manager is the name of the program.
    let agent = header(USER_AGENT.as_str()).unwrap_or("unknown");
    let manager = match query.get("fieldManager") {
        Some(manager) => manager.to_owned(),
        None => manager_of(agent),
    };
    Ok(RequestContext::from_headers(header)?.by(manager))
}

/// Returns the printable part of the program's name in a user agent, as long as a manager's name may be.
fn manager_of(agent: &str) -> String {
    let name = agent.split('/').next().unwrap_or(agent);
    let printable = name.chars().filter(|letter| is_printable(*letter));
    let mut size = 0;
    let fitting = printable.take_while(|letter| {
        size += letter.len_utf8();
        size <= MANAGER_MAX
    });
    fitting.collect()
}

fn is_printable(letter: char) -> bool {
    !letter.is_control() && (!letter.is_whitespace() || letter == ' ')
}

/// Checks that the name of a field manager is short and printable.
fn check_manager(name: &str, of: &str) -> Result<(), ApiError> {
    let field = "fieldManager";
    if name.len() > MANAGER_MAX {
        let message = format!("Too long: may not be more than {MANAGER_MAX} bytes");
        return Err(refused(of, field, "FieldValueTooLong", message));
    }
    match name
        .char_indices()
        .find(|(_, letter)| !is_printable(*letter))
    {
        None => Ok(()),
        Some((at, letter)) => {
            let code = u32::from(letter);
            let detail = format!("{name:?}: invalid character U+{code:04X} (at position {at})");
            Err(invalid(of, field, &detail))
        }
    }
}

/// Returns whether the values of `dryRun` ask for a dry run.
pub(super) fn dry_run<'a>(
    values: impl IntoIterator<Item = &'a str>,
    of: &str,
) -> Result<bool, ApiError> {
    let mut dry = false;
    for value in values {
        match value {
            "All" => dry = true,
            "" => {}
            other => return Err(unsupported(of, "dryRun", other, &["All"])),
        }
    }
    Ok(dry)
}

/// Returns the error of a value that is not in an enumeration. `of` is the kind of options that the parameter belongs
/// to, or empty.
pub(super) fn unsupported(of: &str, field: &str, value: &str, supported: &[&str]) -> ApiError {
    let supported: Vec<_> = supported.iter().map(|value| format!("{value:?}")).collect();
    let supported = supported.join(", ");
    let message = format!("Unsupported value: {value:?}: supported values: {supported}");
    refused(of, field, "FieldValueNotSupported", message)
}

/// Returns the error of an invalid value.
pub(super) fn invalid(of: &str, field: &str, detail: &str) -> ApiError {
    refused(
        of,
        field,
        "FieldValueInvalid",
        format!("Invalid value: {detail}"),
    )
}

/// Returns the error of a parameter that must be set.
pub(super) fn required(of: &str, field: &str, detail: &str) -> ApiError {
    refused(
        of,
        field,
        "FieldValueRequired",
        format!("Required value: {detail}"),
    )
}

/// Returns the error of a parameter that must not be set.
pub(super) fn forbidden(of: &str, field: &str, detail: &str) -> ApiError {
    refused(
        of,
        field,
        "FieldValueForbidden",
        format!("Forbidden: {detail}"),
    )
}

fn refused(of: &str, field: &str, reason: &str, message: String) -> ApiError {
    let group = if of.is_empty() { "" } else { "meta.k8s.io" };
    let dot = if of.is_empty() { "" } else { "." };
    let sentence = format!("{of}{dot}{group} \"\" is invalid: {field}: {message}");
    let cause = StatusCause {
        reason: reason.into(),
        message,
        field: field.into(),
    };
    ApiError::new(Reason::Invalid, sentence).with_details(StatusDetails {
        kind: of.into(),
        group: group.into(),
        causes: vec![cause],
        ..Default::default()
    })
}
