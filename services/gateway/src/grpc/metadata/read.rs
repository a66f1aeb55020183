//! Reads of metadata: of one object with its owners, and of many objects.

use std::collections::BTreeMap;

use prost::Message as _;
use setpoint_codec::{Kind, KindTable, kind_of};
use setpoint_model::Key;
use setpoint_proto::core::Namespace;
use setpoint_proto::meta::{ObjectMeta, OwnerReference, PartialObjectMetadata};
use setpoint_proto::setpoint::{
    CountMetadataRequest, GetMetadataResponse, ObjectMetadata, Owner, owner,
};
use setpoint_proto::{ApiError, Reason};

use crate::grpc::method::{COUNT_METADATA, GET_METADATA};
use crate::registry::{
    AtLeast, Cached, Filter, Registry, RequestContext, Target, errors, readable,
};
use crate::request::Attributes;

/// The location of the owner that a reference names.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Location {
    At(&'static Kind, Key),
    OutOfScope,
    Unknown,
}

/// Returns an object and its owners.
///
/// # Errors
/// `NotFound`.
pub(super) async fn with_owners(
    registry: &Registry,
    context: &RequestContext,
    target: &Target,
) -> Result<GetMetadataResponse, ApiError> {
    let cache = registry.cache();
    let found = cache
        .get(target.kind, &target.key(), AtLeast::Newest)
        .await?;
    let found = found.ok_or_else(|| errors::not_found(target.served, &target.name))?;
    let object = metadata_of(&found)?;
    let mut owners = Vec::new();
    for reference in &object.metadata.owner_references {
        owners.push(owner_of(registry, context, target, reference).await?);
    }
    Ok(GetMetadataResponse { object, owners })
}

/// Reads the owner that a reference names. The cache is as new as the call, and an owner that is gone remains so.
async fn owner_of(
    registry: &Registry,
    context: &RequestContext,
    dependant: &Target,
    reference: &OwnerReference,
) -> Result<Owner, ApiError> {
    let state = |state| Owner {
        state: i32::from(state),
        object: None,
    };
    let cache = registry.cache();
    let (kind, key) = match location_of(cache.kinds(), dependant, reference) {
        Location::At(kind, key) => (kind, key),
        Location::OutOfScope => return Ok(state(owner::State::OutOfScope)),
        Location::Unknown => return Ok(state(owner::State::UnknownKind)),
    };
    let owner = Target::whole(kind, &key);
    let asked = Attributes::on_target(GET_METADATA.permission, &owner);
    registry.authorize(context, &asked).await?;
    let found = match cache.get(kind.stored(), &key, AtLeast::Any).await {
        // The definition of the kind has just been deleted.
        Err(error) if error.reason == Reason::NotFound => {
            return Ok(state(owner::State::UnknownKind));
        }
        found => found?,
    };
    let found = found.as_deref().map(metadata_of).transpose()?;
    Ok(
        match found.filter(|found| found.metadata.uid == reference.uid) {
            None => state(owner::State::Absent),
            object => Owner {
                object,
                ..state(owner::State::Present)
            },
        },
    )
}

/// Returns the location of an owner: in the namespace of the dependant, or cluster-scoped.
fn location_of(kinds: &KindTable, dependant: &Target, reference: &OwnerReference) -> Location {
    let named = kinds.by_kind(&reference.api_version, &reference.kind);
    let Some(kind) = named.filter(|kind| kind.is_served() && kind.stored().is_stored()) else {
        return Location::Unknown;
    };
    match (kind.namespaced, dependant.namespace.as_str()) {
        (true, "") => Location::OutOfScope,
        (true, namespace) => Location::At(kind, Key::new(namespace, &reference.name)),
        (false, _) => Location::At(kind, Key::new("", &reference.name)),
    }
}

/// Returns the objects in a namespace, or in all if it is empty; those that cannot be decoded without a uid. With the
/// uid of an owner, those that refer to it: a namespaced one has no dependants elsewhere.
pub(super) async fn list(
    registry: &Registry,
    namespace: &str,
    owner: &str,
) -> Result<Vec<ObjectMetadata>, ApiError> {
    let mut items = Vec::new();
    // The cache is as new as the call from the first list on.
    let mut at = AtLeast::Newest;
    let kinds = registry.cache().kinds().iter();
    let listed = |kind: &&Kind| kind.is_stored() && (kind.namespaced || namespace.is_empty());
    for kind in kinds.filter(listed) {
        match registry
            .cache()
            .list(&Filter::all(kind, namespace), at)
            .await
        {
            Ok(found) => {
                let unreadable = found.unreadable.iter().map(|one| name_of(kind, &one.key));
                let found = found.items.iter().map(|object| {
                    metadata_of(object).unwrap_or_else(|_| name_of(kind, &object.key))
                });
                let found = found.chain(unreadable);
                items.extend(found.filter(|it| refers_to(it, owner)));
                at = AtLeast::Any;
            }
            // Its definition has been deleted in the meantime, after its last object.
            Err(error) if error.reason == Reason::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(items)
}

/// Returns the numbers of objects in a namespace of those of the requested kinds that exist.
pub(super) async fn count(
    registry: &Registry,
    context: &RequestContext,
    request: &CountMetadataRequest,
) -> Result<BTreeMap<String, u64>, ApiError> {
    let (cache, namespace) = (registry.cache(), request.namespace.as_str());
    // Afterwards the cache is as new as the call, and knows the kinds that are defined.
    let key = Key::new("", namespace);
    cache
        .get(kind_of::<Namespace>(), &key, AtLeast::Newest)
        .await?;
    let mut numbers = BTreeMap::new();
    for resource in &request.resources {
        let kind = cache.kinds().by_resource(resource);
        let Some(kind) = kind.filter(|kind| kind.is_stored() && kind.namespaced) else {
            continue;
        };
        let all = Target::whole(kind, &Key::new(namespace, ""));
        let asked = Attributes::on_target(COUNT_METADATA.permission, &all);
        registry.authorize(context, &asked).await?;
        match cache
            .list(&Filter::all(kind, namespace), AtLeast::Any)
            .await
        {
            Ok(found) => {
                let number = found.items.len() + found.unreadable.len();
                let number = u64::try_from(number).unwrap_or(u64::MAX);
                numbers.insert(resource.clone(), number);
            }
            // Its definition has been deleted in the meantime.
            Err(error) if error.reason == Reason::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(numbers)
}

fn refers_to(object: &ObjectMetadata, owner: &str) -> bool {
    let mut owners = object.metadata.owner_references.iter();
    owner.is_empty() || owners.any(|reference| reference.uid == owner)
}

/// Returns what is known of an object that cannot be decoded. It has no uid.
fn name_of(kind: &Kind, key: &Key) -> ObjectMetadata {
    ObjectMetadata {
        resource: kind.resource(),
        api_version: kind.api_version(),
        kind: kind.kind.clone(),
        metadata: ObjectMeta {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            ..ObjectMeta::default()
        },
    }
}

fn metadata_of(object: &Cached) -> Result<ObjectMetadata, ApiError> {
    let partial = readable(PartialObjectMetadata::decode(object.raw.as_ref()))?;
    let meta = partial.metadata;
    Ok(ObjectMetadata {
        resource: object.kind.resource(),
        api_version: object.kind.api_version(),
        kind: object.kind.kind.clone(),
        metadata: ObjectMeta {
            namespace: meta.namespace,
            name: meta.name,
            uid: meta.uid,
            resource_version: object.revision.to_string(),
            creation_timestamp: meta.creation_timestamp,
            deletion_timestamp: meta.deletion_timestamp,
            deletion_grace_period_seconds: meta.deletion_grace_period_seconds,
            owner_references: meta.owner_references,
            finalizers: meta.finalizers,
            ..ObjectMeta::default()
        },
    })
}
