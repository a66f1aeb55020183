//! Creates and completes the roles and bindings that every cluster has (upstream: the post-start hook
//! `rbac/bootstrap-roles`). Runs at each start, so that a newer version adds what it needs.

use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream;
use prost::Message;
use setpoint_codec::{Object, kind_of};
use setpoint_model::Key;
use setpoint_proto::meta::{DeleteOptions, Preconditions};
use setpoint_proto::{ApiError, Reason, Resource};
use setpoint_rbac::bootstrap;
use setpoint_rbac::reconcile::{Change, Reconcile, change};
use setpoint_task::Backoff;
use tokio::time::sleep;

use crate::registry::{AtLeast, Registry, RequestContext, Target, errors};

/// The manager of the writes.
const MANAGER: &str = "gateway";
const RETRY_DELAY: Duration = Duration::from_millis(500);
const MAX_DELAY: Duration = Duration::from_secs(10);
/// The number of writes at a time: a new cluster needs more than a hundred.
const CONCURRENT: usize = 16;

/// Creates and completes all of them, and retries until each is there.
pub(crate) async fn ensure(registry: &Registry) {
    let mut backoff = Backoff::new(RETRY_DELAY, MAX_DELAY);
    while let Err(error) = reconcile_all(registry).await {
        tracing::debug!(%error, "creating the roles of every cluster failed; trying again");
        sleep(backoff.next_delay()).await;
    }
}

/// Reconciles each once. One that fails does not hold back the others.
async fn reconcile_all(registry: &Registry) -> Result<(), ApiError> {
    let mut work = Vec::new();
    add(registry, bootstrap::cluster_roles(), &mut work);
    add(registry, bootstrap::cluster_role_bindings(), &mut work);
    add(registry, bootstrap::roles(), &mut work);
    add(registry, bootstrap::role_bindings(), &mut work);
    let outcomes = stream::iter(work).buffer_unordered(CONCURRENT);
    outcomes.fold(Ok(()), async |all, one| one.and(all)).await
}

fn add<'r, T: Reconcile + Object + Resource + Message + Default>(
    registry: &'r Registry,
    objects: Vec<T>,
    to: &mut Vec<BoxFuture<'r, Result<(), ApiError>>>,
) {
    for object in objects {
        to.push(Box::pin(reconcile(registry, object)));
    }
}

/// Creates an object, or completes it unless it is protected by its annotation.
pub(super) async fn reconcile<T: Reconcile + Object + Resource + Message + Default>(
    registry: &Registry,
    expected: T,
) -> Result<(), ApiError> {
    let (kind, key) = (kind_of::<T>(), Key::of(expected.metadata()));
    let (context, target) = (
        RequestContext::of_server().by(MANAGER),
        Target::whole(kind, &key),
    );
    let found = registry.cache().get(kind, &key, AtLeast::Any).await?;
    let Some(found) = found else {
        return create(registry, &context, expected).await;
    };
    let existing: T = errors::readable(T::decode(found.raw.as_ref()))?;
    match change(&existing, &expected) {
        Change::None => Ok(()),
        Change::Update(changed) => {
            let updated = registry.update(&context, &target, Box::new(changed));
            updated.await.map(|_| ())
        }
        Change::Recreate => {
            let options = DeleteOptions {
                preconditions: Some(Preconditions {
                    uid: Some(existing.metadata().uid.clone()),
                    ..Preconditions::default()
                }),
                ..DeleteOptions::default()
            };
            registry.delete(&context, &target, &options).await?;
            create(registry, &context, expected).await
        }
    }
}

async fn create<T: Reconcile + Object>(
    registry: &Registry,
    context: &RequestContext,
    object: T,
) -> Result<(), ApiError> {
    let target = Target::new(object.kind(), &object.metadata().namespace, "", "")?;
    match registry.create(context, &target, Box::new(object)).await {
        // Another gateway has just created it.
        Err(error) if error.reason != Reason::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
