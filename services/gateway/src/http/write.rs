//! Create, update and patch.

use std::fmt::Display;

use axum::body::Body;
use http::{HeaderMap, StatusCode};
use serde_json::Value;
use setpoint_codec::rest::{
    JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, patch_types, subresource_kind,
};
use setpoint_codec::{Kind, Object, strict};
use setpoint_proto::setpoint::patch_request::Type;
use setpoint_proto::{ApiError, Reason};

use super::body::{self, DecodedBody};
use super::encoder::Encoder;
use super::handler::ObjectRequest;
use super::response::ApiResponse;
use super::write_options::{self, FieldValidation};
use super::yaml;
use crate::offload::offload;
use crate::registry::ObjectResponse;
use crate::request::{Query, Route, audit};
use crate::verbs::patch::{Check, Patch};

/// `POST` of an object or its subresource.
pub(super) async fn create(request: ObjectRequest) -> Result<ApiResponse, ApiError> {
    let encoder = Encoder::negotiate(&request)?;
    let context = write_options::write(&request.query, &request.headers, "CreateOptions")?
        .as_user(&request.user);
    let target = request.route.target()?;
    let validation = FieldValidation::from_query(&request.query, "CreateOptions")?;
    let decoded = decode(&request.route, validation, &request.headers, request.body).await?;
    let response = request
        .registry
        .create(&context, &target, decoded.object)
        .await?;
    let warnings = [decoded.warnings, response.warnings.clone()].concat();
    Ok(encoder
        .object(response)?
        .with_status(StatusCode::CREATED)
        .with_warnings(&warnings))
}

/// `PUT` of an object or its subresource.
pub(super) async fn update(request: ObjectRequest) -> Result<ApiResponse, ApiError> {
    let encoder = Encoder::negotiate(&request)?;
    let context = write_options::write(&request.query, &request.headers, "UpdateOptions")?
        .as_user(&request.user);
    let target = request.route.target()?;
    let validation = FieldValidation::from_query(&request.query, "UpdateOptions")?;
    let decoded = decode(&request.route, validation, &request.headers, request.body).await?;
    check_name(&*decoded.object, &request.route)?;
    let response = request
        .registry
        .update(&context, &target, decoded.object)
        .await?;
    let warnings = [decoded.warnings, response.warnings.clone()].concat();
    let status = status_of(&response);
    let response = encoder.object(response)?.with_status(status);
    Ok(response.with_warnings(&warnings))
}

/// `PATCH` of an object or its subresource.
pub(super) async fn patch(request: ObjectRequest) -> Result<ApiResponse, ApiError> {
    let of = patch_type(&request.headers, request.route.kind)?;
    let encoder = Encoder::negotiate(&request)?;
    let context = write_options::write(&request.query, &request.headers, "PatchOptions")?
        .as_user(&request.user);
    let target = request.route.target()?;
    let validation = FieldValidation::from_query(&request.query, "PatchOptions")?;
    let check = check(validation);
    check_apply_options(&request.query, of)?;
    let body = body::read(request.body).await?;
    let bytes = body.len();
    let (body, duplicate) = offload(bytes, || patch_body(of, &body)).await?;
    audit::request(|| audit::Body::Value(body.clone(), bytes));
    let patch = Patch {
        r#type: of,
        body,
        bytes,
        force: request.query.flag("force"),
        check,
    };
    let duplicates = accept_duplicate(duplicate, validation)?;
    let response = request.registry.patch(&context, &target, &patch).await?;
    let warnings = [duplicates, response.warnings.clone()].concat();
    let status = status_of(&response);
    let response = encoder.object(response)?.with_status(status);
    Ok(response.with_warnings(&warnings))
}

/// Returns the status of the response of a request that may have created its object.
fn status_of(response: &ObjectResponse) -> StatusCode {
    match response.created {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    }
}

/// Checks the options that only an applied configuration may have, or must have.
fn check_apply_options(query: &Query, of: Type) -> Result<(), ApiError> {
    let options = "PatchOptions";
    if of == Type::Apply && query.get("fieldManager").is_none() {
        let detail = "is required for apply patch";
        return Err(write_options::required(options, "fieldManager", detail));
    }
    if of != Type::Apply && query.get("force").is_some() {
        let detail = "may not be specified for non-apply patch";
        return Err(write_options::forbidden(options, "force", detail));
    }
    Ok(())
}

/// Decodes a patch. Configurations are YAML, which includes JSON. Returns the first key that one has twice, too.
fn patch_body(of: Type, body: &[u8]) -> Result<(Value, Option<String>), ApiError> {
    let bad = |problem: String| ApiError::new(Reason::BadRequest, problem);
    if of != Type::Apply {
        let json = serde_json::from_slice(body);
        let json = json.map_err(|error| bad(format!("error decoding patch: {error}")))?;
        return Ok((json, None));
    }
    if let Ok(json) = serde_json::from_slice(body) {
        return Ok((json, None));
    }
    let malformed = |error: &dyn Display| bad(format!("error decoding YAML: {error}"));
    let document = yaml::read(body).map_err(|error| malformed(&error))?;
    let json = serde_json::from_slice(&document.json).map_err(|error| malformed(&error))?;
    Ok((json, document.duplicate))
}

/// Returns the warning about a key that a configuration has twice.
///
/// # Errors
/// `BadRequest` if validation is strict.
fn accept_duplicate(
    duplicate: Option<String>,
    validation: FieldValidation,
) -> Result<Vec<String>, ApiError> {
    let Some(duplicate) = duplicate.filter(|_| validation != FieldValidation::Ignore) else {
        return Ok(Vec::new());
    };
    let problem = format!("error converting YAML to JSON: {duplicate}");
    match validation {
        FieldValidation::Strict => {
            let message = format!("error strict decoding YAML: {problem}");
            Err(ApiError::new(Reason::BadRequest, message))
        }
        _ => Ok(vec![problem]),
    }
}

async fn decode(
    route: &Route,
    validation: FieldValidation,
    headers: &HeaderMap,
    body: Body,
) -> Result<DecodedBody, ApiError> {
    let expected = subresource_kind(route.kind, &route.subresource);
    let body = body::read(body).await?;
    let decode = || DecodedBody::decode(expected, headers, &body, validation);
    let decoded = offload(body.len(), decode).await?;
    audit::request_object(&*decoded.object, body.len());
    Ok(decoded)
}

/// Checks that the name and namespace of an object match the URL.
fn check_name(object: &dyn Object, route: &Route) -> Result<(), ApiError> {
    let (meta, name) = (object.meta(), &route.name);
    let refuse = |message| Err(ApiError::new(Reason::BadRequest, message));
    if meta.name.is_empty() {
        return refuse(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        ));
    }
    if meta.name != *name {
        return refuse(format!(
            "the name of the object ({}) does not match the name on the URL ({name})",
            meta.name
        ));
    }
    // The registry clears the namespace of a cluster-scoped object.
    let (own, requested) = (&meta.namespace, &route.namespace);
    if !own.is_empty() && !requested.is_empty() && own != requested {
        return refuse(format!(
            "the namespace of the object ({}) does not match the namespace on the request ({})",
            meta.namespace, route.namespace
        ));
    }
    Ok(())
}

fn patch_type(headers: &HeaderMap, kind: &Kind) -> Result<Type, ApiError> {
    let (name, types) = (body::media_type(headers), patch_types(kind.is_custom()));
    match name {
        _ if !types.contains(&name) => Err(body::unsupported(types)),
        JSON_PATCH => Ok(Type::Json),
        MERGE_PATCH => Ok(Type::Merge),
        STRATEGIC_MERGE_PATCH => Ok(Type::Strategic),
        _ => Ok(Type::Apply),
    }
}

/// Returns the check of the patched object for unknown fields.
fn check(validation: FieldValidation) -> Check {
    match validation {
        FieldValidation::Ignore => |_, _| Ok(Vec::new()),
        FieldValidation::Warn => |kind, json| Ok(strict::unknown_fields(kind, json)),
        FieldValidation::Strict => refuse_unknown_fields,
    }
}

fn refuse_unknown_fields(kind: &'static Kind, json: &[u8]) -> Result<Vec<String>, ApiError> {
    let errors = strict::unknown_fields(kind, json);
    if errors.is_empty() {
        return Ok(errors);
    }
    Err(write_options::invalid(
        "",
        "patch",
        &format!("strict decoding error: {}", errors.join(", ")),
    ))
}
