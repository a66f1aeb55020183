//! Delete: one object, or all that are selected.

use axum::body::Body;
use bytes::Bytes;
use http::HeaderMap;
use setpoint_codec::{Object as _, kinds};
use setpoint_proto::meta::{DeleteOptions, ListMeta, Status, StatusDetails};
use setpoint_proto::{ApiError, Reason};

use super::body::{self, Sent};
use super::options::{self, Validation};
use super::query::Query;
use super::reply::Reply;
use super::resources::Asked;
use super::selection;
use super::shape::Shape;
use crate::heavy::heavy;
use crate::registry::{Deleted, ObjectResponse, RequestContext};

/// The kind of the options.
const OPTIONS: &str = "DeleteOptions";
const POLICIES: [&str; 3] = ["Background", "Foreground", "Orphan"];

/// `DELETE` of one object: answers with it while something keeps it, else says that it is gone.
pub(super) async fn one(asked: Asked) -> Result<Reply, ApiError> {
    let shape = Shape::asked(&asked.query, &asked.headers)?;
    let context = context(&asked.query, &asked.headers)?;
    let target = asked.route.target()?;
    let options = receive(&asked.query, &asked.headers, asked.body).await?;
    let deleted = asked.registry.delete(&context, &target, &options).await?;
    match deleted.gone {
        true => shape.text(gone(deleted)?.to_json()),
        false => shape.response(deleted.response),
    }
}

/// `DELETE` of a collection: answers with what was in it.
pub(super) async fn all(asked: Asked) -> Result<Reply, ApiError> {
    let shape = Shape::asked(&asked.query, &asked.headers)?;
    let context = context(&asked.query, &asked.headers)?;
    let params = selection::list(&asked.route, &asked.query)?;
    let options = receive(&asked.query, &asked.headers, asked.body).await?;
    let list = asked
        .registry
        .delete_collection(&context, &params, &options)
        .await?;
    let metadata = ListMeta {
        resource_version: list.revision.to_string(),
        ..Default::default()
    };
    let items: Vec<Bytes> = list.items.iter().map(|item| item.raw.clone()).collect();
    let bytes = items.iter().map(Bytes::len).sum();
    heavy(bytes, || shape.list(asked.route.kind, metadata, items)).await
}

fn gone(deleted: Deleted) -> Result<Status, ApiError> {
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

/// The circumstances of a deletion, which has no field manager.
fn context(query: &Query, headers: &HeaderMap) -> Result<RequestContext, ApiError> {
    let dry_run = options::dry_run(query.all("dryRun"), OPTIONS)?;
    Ok(options::context(query, headers)?.dry(dry_run))
}

/// The options in the body; without a body, those in the query.
async fn receive(
    query: &Query,
    headers: &HeaderMap,
    body: Body,
) -> Result<DeleteOptions, ApiError> {
    let body = body::read(body).await?;
    let options = match body.is_empty() {
        true => from_query(query)?,
        false => {
            let kind = kinds()
                .by_kind("v1", "DeleteOptions")
                .ok_or_else(unreadable)?;
            let sent = Sent::decode(kind, headers, &body, Validation::Ignore)?;
            let sent = sent.object.into_any().downcast::<DeleteOptions>();
            *sent.map_err(|_| unreadable())?
        }
    };
    options::dry_run(options.dry_run.iter().map(String::as_str), OPTIONS)?;
    match options.propagation_policy.as_deref() {
        Some(policy) if options.orphan_dependents.is_some() => {
            let detail =
                format!("{policy:?}: orphanDependents and deletionPropagation cannot be both set");
            Err(options::invalid(OPTIONS, "propagationPolicy", &detail))
        }
        Some(other) if !POLICIES.contains(&other) => Err(options::unsupported(
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

fn unreadable() -> ApiError {
    ApiError::new(
        Reason::InternalError,
        "DeleteOptions is not among the known kinds",
    )
}
