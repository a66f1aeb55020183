//! Records the use of [tokens in Secrets](setpoint_model::legacy_token): the day since which it is recorded, in a
//! ConfigMap (upstream: the legacy-token-tracking controller), and the day of the last use, as a label of each Secret.

use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use setpoint_codec::{Object, kind_of};
use setpoint_model::Key;
use setpoint_model::legacy_token::{
    LAST_USED, SINCE, TRACKING, TRACKING_NAMESPACE, day_of, tracked_since,
};
use setpoint_proto::core::{ConfigMap, Secret};
use setpoint_proto::{ApiError, Reason};
use tokio::time::sleep;

use super::attempts::repeat;
use super::kept::keep;
use crate::registry::{Filter, Registry, RequestContext, Start, Target, WatchSpec};
use crate::write::current::Current;

/// The manager of the writes.
const CONTROLLER: &str = "legacy-token-tracking-controller";
/// The interval of rounds of labels: a token that is used all the time is one of many.
const INTERVAL: Duration = Duration::from_millis(100);

/// Keeps the ConfigMap and labels Secrets until dropped.
pub(crate) async fn run(registry: &Registry) {
    let keep = repeat("legacy-token-tracking", || follow(registry));
    tokio::join!(keep, label_used(registry));
}

/// Restores the ConfigMap whenever it changes, until the watch ends.
async fn follow(registry: &Registry) -> Result<(), ApiError> {
    let spec = WatchSpec {
        filter: Filter::all(kind_of::<ConfigMap>(), TRACKING_NAMESPACE),
        start: Start::Now,
        bookmarks: false,
    };
    let mut events = registry.cache().watch(spec).await?;
    restore(registry).await?;
    while let Some(event) = events.next().await {
        if event?.object.key.name == TRACKING {
            restore(registry).await?;
        }
    }
    Ok(())
}

/// Creates the ConfigMap, or writes the current day into one that has none.
async fn restore(registry: &Registry) -> Result<(), ApiError> {
    let today = day_of(Timestamp::now()).to_string();
    let mut wanted = ConfigMap::default();
    wanted.metadata.name = TRACKING.into();
    wanted.data.insert(SINCE.into(), today.clone());
    let context = context();
    let kept = keep(registry, &context, TRACKING_NAMESPACE, wanted, |map, _| {
        if tracked_since(map).is_none() {
            map.data.insert(SINCE.into(), today.clone());
        }
    });
    unless_gone(kept.await)
}

/// Labels the Secrets of tokens that are used. One that fails is labelled after its next use.
async fn label_used(registry: &Registry) {
    loop {
        for (key, uid) in registry.tokens().used().next().await {
            if let Err(error) = label(registry, &key, &uid).await {
                tracing::warn!(secret = %key, %error, "the use of a token was not recorded");
            }
        }
        sleep(INTERVAL).await;
    }
}

async fn label(registry: &Registry, key: &Key, uid: &str) -> Result<(), ApiError> {
    let today = day_of(Timestamp::now()).to_string();
    let mut mutate = |old: &Current, slot: &mut Option<Box<dyn Object>>| {
        let new = slot.insert(old.object.clone_box());
        if let Some(secret) = new.downcast_mut::<Secret>()
            && secret.metadata.uid == uid
        {
            let labels = &mut secret.metadata.labels;
            labels.insert(LAST_USED.into(), today.clone());
        }
        Ok(())
    };
    let target = Target::whole(kind_of::<Secret>(), key);
    unless_gone(
        registry
            .guaranteed_update(&context(), &target, &mut mutate)
            .await,
    )
}

fn context() -> RequestContext {
    RequestContext::of_server().by(CONTROLLER)
}

fn unless_gone<T>(written: Result<T, ApiError>) -> Result<(), ApiError> {
    match written {
        Err(error) if error.reason != Reason::NotFound => Err(error),
        _ => Ok(()),
    }
}
