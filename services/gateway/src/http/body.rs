//! Decodes request bodies: objects in JSON, YAML or Kubernetes' protobuf envelope.

use std::error::Error;

use axum::body::Body;
use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt as _, Limited};
use serde::Deserialize;
use setpoint_codec::{Kind, Object, envelope, strict};
use setpoint_proto::meta::ManagedFieldsEntry;
use setpoint_proto::{ApiError, Reason};

use super::accept::PROTOBUF;
use super::write_options::FieldValidation;
use super::yaml::{self, YAML};
use crate::verbs::patch;

/// The maximum size of a body in bytes, as upstream. It is about twice as much as etcd accepts.
const LIMIT: usize = 3 << 20;

/// The number of bytes of an undecodable body in the error message.
const SHOWN: usize = 30;

/// Reads a body into memory.
pub(super) async fn read(body: Body) -> Result<Bytes, ApiError> {
    match Limited::new(body, LIMIT).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            let message = format!("Request entity too large: limit is {LIMIT}");
            Err(ApiError::new(Reason::RequestEntityTooLarge, message))
        }
        Err(error) => {
            if let Some(error) = listener_error(&*error) {
                return Err(error);
            }
            let message = format!("error reading request body: {error}");
            Err(ApiError::new(Reason::BadRequest, message))
        }
    }
}

/// Returns the error of the listener that limits bodies, if it is the source.
fn listener_error(error: &(dyn Error + 'static)) -> Option<ApiError> {
    let own = error.downcast_ref::<ApiError>().cloned();
    own.or_else(|| error.source().and_then(listener_error))
}

/// Returns the content type without its parameters, by default JSON.
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

/// Returns the error of an unsupported content type.
pub(super) fn unsupported(accepted: &[&str]) -> ApiError {
    let accepted = accepted.join(", ");
    let message = format!(
        "the body of the request was in an unknown format - accepted media types include: {accepted}"
    );
    ApiError::new(Reason::UnsupportedMediaType, message)
}

/// A decoded object, with warnings for the client.
pub(super) struct DecodedBody {
    pub(super) object: Box<dyn Object>,
    pub(super) warnings: Vec<String>,
}

impl DecodedBody {
    /// Decodes an object of the expected kind.
    pub(super) fn decode(
        expected: &'static Kind,
        headers: &HeaderMap,
        body: &Bytes,
        validation: FieldValidation,
    ) -> Result<Self, ApiError> {
        match media_type(headers) {
            "application/json" => from_json(expected, body, None, validation),
            YAML => {
                let document = yaml::read(body)?;
                from_json(expected, &document.json, document.duplicate, validation)
            }
            PROTOBUF => from_protobuf(expected, body),
            _ => Err(unsupported(&["application/json", YAML, PROTOBUF])),
        }
    }
}

/// The kind that a document claims to be.
#[derive(Default, Deserialize)]
#[serde(default)]
struct TypeMeta {
    #[serde(rename = "apiVersion")]
    api_version: Option<String>,
    kind: Option<String>,
}

/// Decodes JSON, which was read from a document with this `duplicate` key.
fn from_json(
    expected: &'static Kind,
    body: &Bytes,
    duplicate: Option<String>,
    validation: FieldValidation,
) -> Result<DecodedBody, ApiError> {
    let named: TypeMeta = serde_json::from_slice(body).map_err(|error| {
        let problem = match error.is_eof() {
            true => "unexpected end of JSON input".into(),
            false => error.to_string(),
        };
        let problem = format!("couldn't get version/kind; json parse error: {problem}");
        unrecognized(expected, &problem, body)
    })?;
    check_kind(
        expected,
        named.api_version.as_deref().unwrap_or_default(),
        named.kind.as_deref().unwrap_or_default(),
    )?;
    let mut object = expected.from_json(body)?;
    if resets_managers(expected, body) {
        object.meta_mut().managed_fields = vec![ManagedFieldsEntry::default()];
    }
    let warnings = match validation {
        FieldValidation::Ignore => Vec::new(),
        _ => {
            let unknown = strict::unknown_fields(expected, body);
            duplicate.into_iter().chain(unknown).collect()
        }
    };
    if validation == FieldValidation::Strict && !warnings.is_empty() {
        let errors = warnings.join(", ");
        let problem = format!("strict decoding error: {errors}");
        return Err(conversion_error(
            &expected.kind,
            &expected.version,
            expected,
            &problem,
        ));
    }
    Ok(DecodedBody { object, warnings })
}

/// Returns whether an object has an empty list of managed fields. Only objects that name the field are read again.
fn resets_managers(kind: &Kind, body: &[u8]) -> bool {
    kind.is_stored()
        && std::str::from_utf8(body).is_ok_and(|text| text.contains("\"managedFields\""))
        && serde_json::from_slice(body).is_ok_and(|document| patch::resets_managers(&document))
}

fn from_protobuf(expected: &'static Kind, body: &Bytes) -> Result<DecodedBody, ApiError> {
    let envelope =
        envelope::read(body).map_err(|error| unrecognized(expected, &error.to_string(), body))?;
    check_kind(expected, &envelope.api_version, &envelope.kind)?;
    if expected.is_custom() {
        let problem = "object *unstructured.Unstructured does not implement the protobuf marshalling interface and cannot be encoded to a protobuf message";
        let Kind { kind, version, .. } = expected;
        return Err(conversion_error(kind, version, expected, problem));
    }
    let object = expected.decode(&envelope.raw)?;
    Ok(DecodedBody {
        object,
        warnings: Vec::new(),
    })
}

/// Checks the kind of a document. A document may omit it.
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
        return Err(conversion_error(kind, version, expected, &problem));
    }
    let wanted = expected.api_version();
    // Options may name the version of any group.
    let options = !expected.is_stored() && expected.group.is_empty();
    if !api_version.is_empty() && api_version != wanted && !options {
        let message = format!(
            "the API version in the data ({api_version}) does not match the expected API version ({wanted})"
        );
        return Err(ApiError::new(Reason::BadRequest, message));
    }
    Ok(())
}

fn conversion_error(kind: &str, version: &str, expected: &Kind, problem: &str) -> ApiError {
    let expected = &expected.kind;
    let message =
        format!("{kind} in version {version:?} cannot be handled as a {expected}: {problem}");
    ApiError::new(Reason::BadRequest, message)
}

fn unrecognized(expected: &Kind, problem: &str, body: &[u8]) -> ApiError {
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
