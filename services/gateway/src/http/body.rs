//! Reads what came with a request: an object in JSON or in Kubernetes' protobuf envelope.

use std::error::Error;

use axum::body::Body;
use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt as _, Limited};
use serde::Deserialize;
use setpoint_codec::{Kind, Object, envelope, strict};
use setpoint_proto::{ApiError, Reason};

use super::accept::PROTOBUF;
use super::options::Validation;
use super::yaml::{self, YAML};

/// The most that a request may carry; etcd would refuse much less than twice this.
const LIMIT: usize = 3 << 20;

/// How much of an unreadable body is shown to its sender.
const SHOWN: usize = 30;

/// Reads a body to its end.
pub(super) async fn read(body: Body) -> Result<Bytes, ApiError> {
    match Limited::new(body, LIMIT).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            let message = format!("Request entity too large: limit is {LIMIT}");
            Err(ApiError::new(Reason::RequestEntityTooLarge, message))
        }
        Err(error) => {
            if let Some(refused) = refused(&*error) {
                return Err(refused);
            }
            let message = format!("error reading request body: {error}");
            Err(ApiError::new(Reason::BadRequest, message))
        }
    }
}

/// Returns what the listener says of a body that it does not take.
fn refused(error: &(dyn Error + 'static)) -> Option<ApiError> {
    let own = error.downcast_ref::<ApiError>().cloned();
    own.or_else(|| error.source().and_then(refused))
}

/// The type of a body without its parameters; JSON if it does not say.
pub(super) fn media_type(headers: &HeaderMap) -> &str {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let name = value
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default();
    match name.trim() {
        "" => "application/json",
        name => name,
    }
}

/// A body of a type that we cannot read.
pub(super) fn unsupported(accepted: &[&str]) -> ApiError {
    let accepted = accepted.join(", ");
    let message = format!(
        "the body of the request was in an unknown format - accepted media types include: {accepted}"
    );
    ApiError::new(Reason::UnsupportedMediaType, message)
}

/// An object that was sent, with what its sender should know of it.
pub(super) struct Sent {
    pub(super) object: Box<dyn Object>,
    pub(super) warnings: Vec<String>,
}

impl Sent {
    /// An object of the expected kind. Bodies of options may name any group's version.
    pub(super) fn decode(
        expected: &'static Kind,
        headers: &HeaderMap,
        body: &Bytes,
        validation: Validation,
    ) -> Result<Self, ApiError> {
        match media_type(headers) {
            "application/json" => from_json(expected, body, validation),
            YAML => from_json(expected, &yaml::read(body)?, validation),
            PROTOBUF => from_protobuf(expected, body),
            _ => Err(unsupported(&["application/json", YAML, PROTOBUF])),
        }
    }
}

/// What a document says of itself.
#[derive(Default, Deserialize)]
#[serde(default)]
struct TypeMeta {
    #[serde(rename = "apiVersion")]
    api_version: Option<String>,
    kind: Option<String>,
}

fn from_json(
    expected: &'static Kind,
    body: &Bytes,
    validation: Validation,
) -> Result<Sent, ApiError> {
    let named: TypeMeta = serde_json::from_slice(body).map_err(|error| {
        let problem = match error.is_eof() {
            true => "unexpected end of JSON input".into(),
            false => error.to_string(),
        };
        let problem = format!("couldn't get version/kind; json parse error: {problem}");
        unrecognised(expected, &problem, body)
    })?;
    check_kind(
        expected,
        named.api_version.as_deref().unwrap_or_default(),
        named.kind.as_deref().unwrap_or_default(),
    )?;
    let object = expected.from_json(body)?;
    let warnings = match validation {
        Validation::Ignore => Vec::new(),
        _ => strict::unknown_fields(expected, body),
    };
    if validation == Validation::Strict && !warnings.is_empty() {
        let errors = warnings.join(", ");
        let problem = format!("strict decoding error: {errors}");
        return Err(unfit(&expected.kind, &expected.version, expected, &problem));
    }
    Ok(Sent { object, warnings })
}

fn from_protobuf(expected: &'static Kind, body: &Bytes) -> Result<Sent, ApiError> {
    let envelope =
        envelope::read(body).map_err(|error| unrecognised(expected, &error.to_string(), body))?;
    check_kind(expected, &envelope.api_version, &envelope.kind)?;
    let object = expected.decode(&envelope.raw)?;
    Ok(Sent {
        object,
        warnings: Vec::new(),
    })
}

/// An object may leave out what it is; it may not claim to be something else.
fn check_kind(expected: &'static Kind, api_version: &str, kind: &str) -> Result<(), ApiError> {
    if !kind.is_empty() && kind != expected.kind {
        let version = api_version.rsplit('/').next().unwrap_or_default();
        let Kind {
            kind: wanted,
            version: of,
            ..
        } = expected;
        let problem =
            format!("converting ({version}.{kind}) to ({of}.{wanted}): unknown conversion");
        return Err(unfit(kind, version, expected, &problem));
    }
    let wanted = expected.api_version();
    // Every group has its own name for the same options.
    let options = !expected.is_stored() && expected.group.is_empty();
    if !api_version.is_empty() && api_version != wanted && !options {
        let message = format!(
            "the API version in the data ({api_version}) does not match the expected API version ({wanted})"
        );
        return Err(ApiError::new(Reason::BadRequest, message));
    }
    Ok(())
}

fn unfit(kind: &str, version: &str, expected: &Kind, problem: &str) -> ApiError {
    let expected = &expected.kind;
    let message =
        format!("{kind} in version {version:?} cannot be handled as a {expected}: {problem}");
    ApiError::new(Reason::BadRequest, message)
}

fn unrecognised(expected: &Kind, problem: &str, body: &[u8]) -> ApiError {
    let shown: String = body
        .iter()
        .take(SHOWN)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let more = if body.len() > SHOWN { " ..." } else { "" };
    let message = format!(
        "the object provided is unrecognized (must be of type {}): {problem} ({shown}{more})",
        expected.kind
    );
    ApiError::new(Reason::BadRequest, message)
}
