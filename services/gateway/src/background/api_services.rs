//! Keeps an APIService for each version of a group that the gateway serves (upstream: the registration controllers of
//! the aggregator).
//!
//! Every gateway runs it. Two write the same objects, so that it does not matter which comes first.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use prost::Message as _;
use setpoint_codec::fields::{self, FieldSet};
use setpoint_codec::{Kind, kind_of};
use setpoint_kinds::apiservice::{AUTOMANAGED, is_resource_metrics};
use setpoint_model::Key;
use setpoint_proto::apiextensions::CustomResourceDefinition;
use setpoint_proto::apiregistration::ApiService;
use setpoint_proto::meta::{DeleteOptions, Preconditions};
use setpoint_proto::{ApiError, Reason};

use super::attempts::{Attempts, repeat};
use crate::http::priorities;
use crate::registry::{
    AtLeast, Filter, Registry, RequestContext, Start, Subresource, Target, WatchSpec, errors,
};
use crate::write::create::Owner;
use crate::write::field_manager;

/// The maximum number of events that are acted upon at once.
const EVENTS: usize = 1024;
/// Keeps APIServices until dropped.
pub(crate) async fn run(registry: &Registry) {
    repeat("api-services", || follow(registry)).await;
}

/// Keeps APIServices whenever one or a definition changes, until a watch ends.
async fn follow(registry: &Registry) -> Result<(), ApiError> {
    let watch = |kind: &'static Kind| {
        registry.cache().watch(WatchSpec {
            filter: Filter::all(kind, ""),
            start: Start::Initial(AtLeast::Any),
            bookmarks: false,
        })
    };
    let services = watch(kind_of::<ApiService>()).await?;
    let definitions = watch(kind_of::<CustomResourceDefinition>()).await?;
    let mut events = futures::stream::select(services, definitions).ready_chunks(EVENTS);
    let mut attempts = Attempts::default();
    // There may be no event: neither objects nor definitions at first.
    keep(registry, &mut attempts).await?;
    loop {
        tokio::select! {
            Some(chunk) = events.next() => drop(chunk.into_iter().collect::<Result<Vec<_>, _>>()?),
            () = attempts.next_due() => {}
            else => return Ok(()),
        }
        keep(registry, &mut attempts).await?;
    }
}

/// Creates the APIServices that are missing, and deletes those that the gateway keeps and no longer serves.
async fn keep(registry: &Registry, attempts: &mut Attempts) -> Result<(), ApiError> {
    let mut wanted = wanted(registry);
    let mut touched = BTreeSet::new();
    let all = Filter::all(kind_of::<ApiService>(), "");
    let listed = registry.cache().list(&all, AtLeast::Newest).await?;
    for found in &listed.items {
        let served = wanted.remove(&found.key.name).is_some();
        let found = errors::readable(ApiService::decode(found.raw.as_ref()))?;
        if !served && found.metadata.labels.contains_key(AUTOMANAGED) {
            let name = &found.metadata.name;
            if attempts.may_try(name) {
                note(name, delete(registry, &found).await, attempts);
            }
            touched.insert(name.clone());
        }
    }
    for (name, service) in wanted {
        if attempts.may_try(&name) {
            note(&name, create(registry, service).await, attempts);
        }
        touched.insert(name);
    }
    attempts.retain(|name| touched.contains(name));
    Ok(())
}

fn note(name: &str, result: Result<(), ApiError>, attempts: &mut Attempts) {
    attempts.tried(name, result.is_ok());
    if let Err(error) = result {
        tracing::debug!(name, %error, "keeping an APIService failed; trying again");
    }
}

/// Returns the APIServices of all versions that are served, by name.
fn wanted(registry: &Registry) -> BTreeMap<String, ApiService> {
    let kinds = registry.cache().kinds();
    let services = kinds.served().map(|kind| {
        let service = service(kind);
        (service.metadata.name.clone(), service)
    });
    services.collect()
}

fn service(kind: &Kind) -> ApiService {
    let (of_group, of_version) = priorities(kind);
    let since = if kind.is_custom() { "true" } else { "onstart" };
    let mut service = ApiService::default();
    service.metadata.name = format!("{}.{}", kind.version, kind.group);
    let labels = &mut service.metadata.labels;
    labels.insert(AUTOMANAGED.into(), since.into());
    service.spec.group.clone_from(&kind.group);
    service.spec.version.clone_from(&kind.version);
    service.spec.group_priority_minimum = of_group;
    service.spec.version_priority = of_version;
    service
}

async fn create(registry: &Registry, service: ApiService) -> Result<(), ApiError> {
    let context = RequestContext::of_server().by("gateway");
    let target = Target::new(kind_of::<ApiService>(), "", "", "")?;
    let mut service = service;
    let owner = match is_resource_metrics(&service.spec.group, &service.spec.version) {
        true => {
            disown_spec(&context, &mut service);
            Owner::Recorded
        }
        false => Owner::Creator,
    };
    let created = registry.create_by(&context, &target, Box::new(service), owner);
    let created = created.await;
    match created {
        Err(error) if error.reason != Reason::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Records the gateway as the owner of everything but the spec. Where upstream has no such object, an add-on applies
/// its own without a conflict.
fn disown_spec(context: &RequestContext, service: &mut ApiService) {
    let spec = FieldSet::of_fields(&[&["spec"], &["status"]]);
    let kind = kind_of::<ApiService>();
    let edit = field_manager::edit(context, kind, Subresource::None, &spec);
    fields::create(&edit, service);
}

async fn delete(registry: &Registry, service: &ApiService) -> Result<(), ApiError> {
    let context = RequestContext::of_server().by("gateway");
    let target = Target::whole(kind_of::<ApiService>(), &Key::of(&service.metadata));
    let options = DeleteOptions {
        preconditions: Some(Preconditions {
            uid: Some(service.metadata.uid.clone()),
            ..Default::default()
        }),
        ..Default::default()
    };
    match registry.delete(&context, &target, &options).await {
        Err(error) if error.reason != Reason::NotFound => Err(error),
        _ => Ok(()),
    }
}
