//! Create, update and patch.

use axum::body::Body;
use http::{HeaderMap, StatusCode};
use setpoint_codec::{Kind, Object, strict};
use setpoint_proto::setpoint::patch_request::Type;
use setpoint_proto::{ApiError, Reason};

use super::body::{self, Sent};
use super::discovery::subresource_kind;
use super::options::{self, Validation};
use super::reply::Reply;
use super::resources::Asked;
use super::route::Route;
use super::shape::Shape;
use crate::heavy::heavy;
use crate::registry::{Check, Patch};

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// The ways to patch an object.
pub(super) const PATCHES: [&str; 3] = [JSON, MERGE, STRATEGIC];

/// `POST` of a new object, or of one's subresource.
pub(super) async fn create(asked: Asked) -> Result<Reply, ApiError> {
    let shape = Shape::asked(&asked.query, &asked.headers)?;
    let context = options::write(&asked.query, &asked.headers, "CreateOptions")?;
    let target = asked.route.target()?;
    let validation = Validation::asked(&asked.query, "CreateOptions")?;
    let sent = receive(&asked.route, validation, &asked.headers, asked.body).await?;
    let response = asked
        .registry
        .create(&context, &target, sent.object)
        .await?;
    let warnings = [sent.warnings, response.warnings.clone()].concat();
    Ok(shape
        .response(response)?
        .with_status(StatusCode::CREATED)
        .warning(&warnings))
}

/// `PUT` in place of an object, or of what its subresource covers.
pub(super) async fn update(asked: Asked) -> Result<Reply, ApiError> {
    let shape = Shape::asked(&asked.query, &asked.headers)?;
    let context = options::write(&asked.query, &asked.headers, "UpdateOptions")?;
    let target = asked.route.target()?;
    let validation = Validation::asked(&asked.query, "UpdateOptions")?;
    let sent = receive(&asked.route, validation, &asked.headers, asked.body).await?;
    check_name(&*sent.object, &asked.route)?;
    let response = asked
        .registry
        .update(&context, &target, sent.object)
        .await?;
    let warnings = [sent.warnings, response.warnings.clone()].concat();
    Ok(shape.response(response)?.warning(&warnings))
}

/// `PATCH` of an object or its subresource.
pub(super) async fn patch(asked: Asked) -> Result<Reply, ApiError> {
    let shape = Shape::asked(&asked.query, &asked.headers)?;
    let context = options::write(&asked.query, &asked.headers, "PatchOptions")?;
    let target = asked.route.target()?;
    let of = patch_type(&asked.headers)?;
    let check = check(Validation::asked(&asked.query, "PatchOptions")?);
    if asked.query.get("force").is_some() {
        let detail = "may not be specified for non-apply patch";
        return Err(options::forbidden("PatchOptions", "force", detail));
    }
    let body = body::read(asked.body).await?;
    let bytes = body.len();
    let body = heavy(bytes, || serde_json::from_slice(&body)).await;
    let body = body.map_err(|error| {
        ApiError::new(Reason::BadRequest, format!("error decoding patch: {error}"))
    })?;
    let patch = Patch {
        r#type: of,
        body,
        bytes,
        check,
    };
    let response = asked.registry.patch(&context, &target, &patch).await?;
    let warnings = response.warnings.clone();
    Ok(shape.response(response)?.warning(&warnings))
}

async fn receive(
    route: &Route,
    validation: Validation,
    headers: &HeaderMap,
    body: Body,
) -> Result<Sent, ApiError> {
    let expected = subresource_kind(route.kind, &route.subresource);
    let body = body::read(body).await?;
    heavy(body.len(), || {
        Sent::decode(expected, headers, &body, validation)
    })
    .await
}

/// What is put somewhere must say that it belongs there.
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
    let (own, asked) = (&meta.namespace, &route.namespace);
    if !own.is_empty() && !asked.is_empty() && own != asked {
        return refuse(format!(
            "the namespace of the object ({}) does not match the namespace on the request ({})",
            meta.namespace, route.namespace
        ));
    }
    Ok(())
}

fn patch_type(headers: &HeaderMap) -> Result<Type, ApiError> {
    match body::media_type(headers) {
        JSON => Ok(Type::Json),
        MERGE => Ok(Type::Merge),
        STRATEGIC => Ok(Type::Strategic),
        _ => Err(body::unsupported(&PATCHES)),
    }
}

/// How strictly the patched object is read.
fn check(validation: Validation) -> Check {
    match validation {
        Validation::Ignore => |_, _| Ok(Vec::new()),
        Validation::Warn => |kind, json| Ok(strict::unknown_fields(kind, json)),
        Validation::Strict => strictly,
    }
}

fn strictly(kind: &'static Kind, json: &[u8]) -> Result<Vec<String>, ApiError> {
    let errors = strict::unknown_fields(kind, json);
    if errors.is_empty() {
        return Ok(errors);
    }
    Err(options::invalid(
        "",
        "patch",
        &format!("strict decoding error: {}", errors.join(", ")),
    ))
}
