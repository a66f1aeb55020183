//! Delete and deletecollection.

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use setpoint_proto::meta::{DeleteOptions, ListMeta, Status, StatusDetails};
use setpoint_proto::{ApiError, Reason};

use super::body::{self, DecodedBody};
use super::encoder::Encoder;
use super::handler::ObjectRequest;
use super::list_options;
use super::query::Query;
use super::response::ApiResponse;
use super::write_options::{self, FieldValidation};
use crate::heavy::heavy;
use crate::kinds;
use crate::registry::{Deleted, ObjectResponse, RequestContext};

/// The kind of the options in error messages.
const OPTIONS: &str = "DeleteOptions";
const POLICIES: [&str; 3] = ["Background", "Foreground", "Orphan"];

/// `DELETE` of an object. The response is the object while its deletion is pending, and afterwards a `Status` or the object.
pub(super) async fn one(request: ObjectRequest) -> Result<ApiResponse, ApiError> {
    let encoder = Encoder::negotiate(&request)?;
    let context = context(&request.query, &request.headers)?.as_user(&request.user);
    let target = request.route.target()?;
    let options = decode_options(&request.query, &request.headers, request.body).await?;
    let deleted = request.registry.delete(&context, &target, &options).await?;
    let returned = kinds::of(deleted.response.kind).returns_deleted();
    let pending = !deleted.gone && options.orphan_dependents == Some(false);
    let response = match deleted.gone && !returned {
        true => encoder.status(&status(deleted)?),
        false => encoder.object(deleted.response),
    }?;
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
    let list = request
        .registry
        .delete_collection(&context, &params, &options)
        .await?;
    let metadata = ListMeta {
        resource_version: list.revision.to_string(),
        ..Default::default()
    };
    let items: Vec<Bytes> = list.items.iter().map(|item| item.raw.clone()).collect();
    let bytes = items.iter().map(Bytes::len).sum();
    heavy(bytes, || encoder.list(request.route.kind, metadata, items)).await
}

fn status(deleted: Deleted) -> Result<Status, ApiError> {
    let ObjectResponse { kind, .. } = deleted.response;
    let object = deleted.response.into_object()?;
    Ok(Status {
        status: "Success".into(),
        details: Some(StatusDetails {
            name: object.meta().name.clone(),
            uid: object.meta().uid.clone(),
            group: kind.group.clone(),
            kind: kind.plural.clone(),
            ..Default::default()
        }),
        ..Default::default()
    })
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
        ..Default::default()
    })
}

fn unknown_options() -> ApiError {
    ApiError::new(
        Reason::InternalError,
        "DeleteOptions is not among the known kinds",
    )
}
