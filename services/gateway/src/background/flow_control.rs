//! Keeps priority and fairness as FlowSchemas and PriorityLevelConfigurations say, and these objects as every cluster
//! has them (upstream: the configuration controller of priority and fairness, and its bootstrap).
//!
//! Every gateway runs it; their writes agree.

use std::time::Duration;

use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use setpoint_codec::{Object, kind_of};
use setpoint_fairness::dangling;
use setpoint_kinds::flowcontrol::{Configured, is_unwanted, levels, revised, schemas};
use setpoint_model::Key;
use setpoint_proto::flowcontrol::{FlowSchema, PriorityLevelConfiguration};
use setpoint_proto::meta::{DeleteOptions, Preconditions};
use setpoint_proto::{ApiError, Reason, Resource};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::attempts::repeat;
use crate::registry::{AtLeast, Filter, Registry, RequestContext, Start, Target, WatchSpec};

/// The managers of the writes, as upstream.
const CONSUMER: &str = "api-priority-and-fairness-config-consumer-v1";
const PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";
/// The period after which limits are adjusted to the demand.
const ADJUSTMENT: Duration = Duration::from_secs(10);
/// The adjustments after which the objects of every cluster are looked at again: as often as they are created again.
const REVISION: usize = 3;
/// The maximum number of events that are acted upon at once.
const EVENTS: usize = 1024;

/// Follows the objects until dropped; without priority and fairness, they have no effect.
pub(crate) async fn run(registry: &Registry) {
    if registry.flow_control().is_fair() {
        repeat("flow-control", || follow(registry)).await;
    } else {
        std::future::pending().await
    }
}

async fn follow(registry: &Registry) -> Result<(), ApiError> {
    let of_levels = registry.cache().watch(all::<PriorityLevelConfiguration>());
    let of_schemas = registry.cache().watch(all::<FlowSchema>());
    let events = stream::select(of_levels.await?, of_schemas.await?);
    let mut events = events.ready_chunks(EVENTS);
    let mut ticks = interval_at(Instant::now() + ADJUSTMENT, ADJUSTMENT);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // What is not as it should be at the start is mended at once.
    let mut rounds = REVISION;
    loop {
        tokio::select! {
            Some(events) = events.next() => {
                events.into_iter().collect::<Result<Vec<_>, _>>()?;
                apply(registry).await;
            }
            _ = ticks.tick() => {
                registry.flow_control().adjust();
                rounds += 1;
            }
        }
        if rounds >= REVISION {
            revise_all(registry, levels).await;
            revise_all(registry, schemas).await;
            rounds = 0;
        }
    }
}

fn all<T: Resource>() -> WatchSpec {
    WatchSpec {
        filter: Filter::all(kind_of::<T>(), ""),
        start: Start::Initial(AtLeast::Any),
        bookmarks: false,
    }
}

/// Returns all stored objects of a kind that can be read.
fn stored<T: Resource>(registry: &Registry) -> Vec<T> {
    let all = registry.cache().peek_all(&Filter::all(kind_of::<T>(), ""));
    all.iter()
        .filter_map(|cached| T::decode(cached.raw.as_ref()).ok())
        .collect()
}

/// Puts the objects in force, and says in the status of each schema whether its level exists.
async fn apply(registry: &Registry) {
    let levels: Vec<PriorityLevelConfiguration> = stored(registry);
    let schemas: Vec<FlowSchema> = stored(registry);
    registry
        .flow_control()
        .apply(levels.clone(), schemas.clone());
    for schema in schemas {
        let exists = |name: &str| levels.iter().any(|level| level.metadata.name == name);
        let key = Key::of(&schema.metadata);
        log_failure(&key, report(registry, schema, exists).await);
    }
}

/// Logs a write that has failed, which a webhook may refuse for good: the limits of the levels do not depend on it. It
/// is tried again with the next event or round.
fn log_failure(key: &Key, written: Result<(), ApiError>) {
    if let Err(error) = written {
        tracing::warn!(%key, %error, "writing an object of flow control failed");
    }
}

async fn report(
    registry: &Registry,
    mut schema: FlowSchema,
    exists: impl FnOnce(&str) -> bool,
) -> Result<(), ApiError> {
    let Some(mut condition) = dangling(&schema, exists) else {
        return Ok(());
    };
    condition.last_transition_time = Timestamp::now().into();
    let conditions = &mut schema.status.conditions;
    conditions.retain(|one| one.r#type != condition.r#type);
    conditions.push(condition);
    let kind = kind_of::<FlowSchema>();
    let target = Target::new(kind, "", &schema.metadata.name, "status")?;
    let context = RequestContext::of_server().by(CONSUMER);
    let reported = registry.report_status(&context, &target, Box::new(schema));
    unless_outdated(reported.await.map(|_| ()))
}

/// Mends the objects of a kind that every cluster has.
async fn revise_all<T, I>(registry: &Registry, expected: fn() -> I)
where
    T: Configured + Object,
    I: Iterator<Item = T>,
{
    let context = RequestContext::of_server().by(PRODUCER);
    for object in stored::<T>(registry) {
        let meta = Resource::meta(&object);
        let target = Target::whole(kind_of::<T>(), &Key::of(meta));
        let own = expected().find(|one| Resource::meta(one).name == meta.name);
        let done = match own.and_then(|own| revised(&object, &own)) {
            Some(revised) => {
                let updated = registry.update(&context, &target, Box::new(revised));
                updated.await.map(|_| ())
            }
            None if is_unwanted(&object, expected()) => {
                delete(registry, &context, &target, &object).await
            }
            None => Ok(()),
        };
        log_failure(&Key::of(meta), unless_outdated(done));
    }
}

async fn delete(
    registry: &Registry,
    context: &RequestContext,
    target: &Target,
    object: &impl Resource,
) -> Result<(), ApiError> {
    let meta = object.meta();
    let options = DeleteOptions {
        preconditions: Some(Preconditions {
            uid: Some(meta.uid.clone()),
            resource_version: Some(meta.resource_version.clone()),
        }),
        ..DeleteOptions::default()
    };
    registry.delete(context, target, &options).await.map(|_| ())
}

/// Ignores that an object has changed: an event about that follows.
fn unless_outdated(done: Result<(), ApiError>) -> Result<(), ApiError> {
    match done {
        Err(error) if ![Reason::Conflict, Reason::NotFound].contains(&error.reason) => Err(error),
        _ => Ok(()),
    }
}
