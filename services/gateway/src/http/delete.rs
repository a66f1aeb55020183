//! Delete and deletecollection.

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use setpoint_codec::Kind;
use setpoint_kinds as kinds;
use setpoint_proto::meta::{DeleteOptions, ListMeta, Status, StatusDetails};
use setpoint_proto::{ApiError, Reason};

use super::body::{self, DecodedBody};
use super::encoder::Encoder;
use super::handler::ObjectRequest;
use super::list_options;
use super::response::ApiResponse;
use super::write_options::{self, FieldValidation};
use crate::offload::offload;
use crate::registry::{ObjectResponse, RequestContext};
use crate::request::{Query, audit};
use crate::verbs::delete::Deleted;

/// The kind of the options in error messages.
const OPTIONS: &str = "DeleteOptions";
const IGNORE_READ_ERROR: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";
const POLICIES: [&str; 3] = ["Background", "Foreground", "Orphan"];

/// `DELETE` of an object. The response is the object while its deletion is pending, and afterwards a `Status` or the
/// object.
pub(super) async fn one(request: ObjectRequest) -> Result<ApiResponse, ApiError> {
    let encoder = Encoder::negotiate(&request)?;
    let context = context(&request.query, &request.headers)?.as_user(&request.user);
    let target = request.route.target()?;
    let options = decode_options(&request.query, &request.headers, request.body).await?;
    let deleted = request.registry.delete(&context, &target, &options).await?;
    let returned = kinds::of(deleted.response.kind).returns_deleted();
    let warnings = deleted.response.warnings.clone();
    let pending = !deleted.gone && options.orphan_dependents == Some(false);
    let response = match deleted.gone && !returned {
        true => encoder.status(&status(deleted)?),
        false if !encoder.needs_content() => encoder.object(deleted.response),
        false => {
            let (registry, served) = (&request.registry, target.served);
            match registry.response_in_version(deleted.response, served).await {
                Ok(object) => encoder.object(object),
                // The deletion has begun, whether or not the object can be converted.
                Err(_) => encoder.status(&success(served, target.name, String::new())),
            }
        }
    }?;
    let response = response.with_warnings(&warnings);
    Ok(match pending {
        true => response.with_status(StatusCode::ACCEPTED),
        false => response,
    })
}

/// `DELETE` of a collection. The response is the list of its objects.
pub(super) async fn all(request: ObjectRequest) -> Result<ApiResponse, ApiError> {
    let encoder = Encoder::negotiate(&request)?;
    let context = context(&request.query, &request.headers)?.as_user(&request.user);
    let params = list_options::list(&request.route, &request.query)?;
    let options = decode_options(&request.query, &request.headers, request.body).await?;
    let (registry, kind) = (&request.registry, request.route.kind);
    let list = registry
        .delete_collection(&context, &params, &options)
        .await?;
    let metadata = ListMeta {
        resource_version: list.revision.to_string(),
        ..Default::default()
    };
    let items = match encoder.needs_content() {
        true => registry.list_in_version(&params.filter, list.items).await,
        false => Ok(list.items),
    };
    let Ok(items) = items else {
        return encoder.status(&success(kind, String::new(), String::new()));
    };
    let items: Vec<Bytes> = items.iter().map(|item| item.raw.clone()).collect();
    let bytes = items.iter().map(Bytes::len).sum();
    let response = offload(bytes, || encoder.list(kind, metadata, items)).await?;
    Ok(response.with_warnings(&kinds::delete::warnings(kind, &options)))
}

fn status(deleted: Deleted) -> Result<Status, ApiError> {
    let ObjectResponse { kind, .. } = deleted.response;
    let object = deleted.response.into_object()?;
    let meta = object.meta();
    Ok(success(kind, meta.name.clone(), meta.uid.clone()))
}

fn success(kind: &Kind, name: String, uid: String) -> Status {
    Status {
        status: "Success".into(),
        details: Some(StatusDetails {
            name,
            uid,
            group: kind.group.clone(),
            kind: kind.plural.clone(),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// Returns the context of a deletion. `DeleteOptions` have no field manager.
fn context(query: &Query, headers: &HeaderMap) -> Result<RequestContext, ApiError> {
    let dry_run = write_options::dry_run(query.all("dryRun"), OPTIONS)?;
    Ok(write_options::context(query, headers)?.dry(dry_run))
}

/// Decodes the options in the body; without a body, those in the query.
async fn decode_options(
    query: &Query,
    headers: &HeaderMap,
    body: Body,
) -> Result<DeleteOptions, ApiError> {
    let body = body::read(body).await?;
    let options = match body.is_empty() {
        true => from_query(query)?,
        false => {
            let kind = setpoint_codec::kinds()
                .by_kind("v1", "DeleteOptions")
                .ok_or_else(unknown_options)?;
            let decoded = DecodedBody::decode(kind, headers, &body, FieldValidation::Ignore)?;
            audit::request_object(&*decoded.object, body.len());
            let decoded = decoded.object.into_any().downcast::<DeleteOptions>();
            *decoded.map_err(|_| unknown_options())?
        }
    };
    write_options::dry_run(options.dry_run.iter().map(String::as_str), OPTIONS)?;
    match options.propagation_policy.as_deref() {
        Some(policy) if options.orphan_dependents.is_some() => {
            let detail =
                format!("{policy:?}: orphanDependents and deletionPropagation cannot be both set");
            Err(write_options::invalid(
                OPTIONS,
                "propagationPolicy",
                &detail,
            ))
        }
        Some(other) if !POLICIES.contains(&other) => Err(write_options::unsupported(
            OPTIONS,
            "propagationPolicy",
            other,
            &POLICIES,
        )),
        _ => Ok(options),
    }
}

fn from_query(query: &Query) -> Result<DeleteOptions, ApiError> {
    let orphan = query.get("orphanDependents").is_some();
    Ok(DeleteOptions {
        grace_period_seconds: query.number("gracePeriodSeconds")?,
        propagation_policy: query.get("propagationPolicy").map(str::to_owned),
        orphan_dependents: orphan.then(|| query.flag("orphanDependents")),
        ignore_store_read_error_with_cluster_breaking_potential: query
            .get(IGNORE_READ_ERROR)
            .map(|_| query.flag(IGNORE_READ_ERROR)),
        ..Default::default()
    })
}

fn unknown_options() -> ApiError {
    ApiError::new(
        Reason::InternalError,
        "DeleteOptions is not among the known kinds",
    )
}
