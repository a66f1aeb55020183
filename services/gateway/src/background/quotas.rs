//! Counts what the objects of namespaces with quotas use, and writes it to the quotas (upstream: the
//! resourcequota-controller).
//!
//! Every gateway runs it. A count is written only if the quota has not been charged since before the count, so a concurrent
//! create is never lost. Namespaces without quotas are not watched.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{FuturesUnordered, SelectAll, select_all};
use jiff::Timestamp;
use prost::Message as _;
use setpoint_codec::{Kind, kind_of};
use setpoint_model::quantity::Amount;
use setpoint_model::{Key, Revision};
use setpoint_proto::apiextensions::CustomResourceDefinition;
use setpoint_proto::core::{PersistentVolumeClaim, Pod, ResourceQuota, Service};
use setpoint_proto::{ApiError, EventType, Reason};
use tokio::time::{Instant, sleep, timeout};

use crate::kinds::amounts::{self, Amounts};
use crate::kinds::resourcequota::{is_counted, matches_scopes, tracks, usage_of};
use crate::registry::{
    AtLeast, Cached, Event, Filter, Registry, RequestContext, Start, Target, Watch, WatchSpec,
    errors,
};

/// The delay before the watches are restarted.
const RESTART_DELAY: Duration = Duration::from_secs(1);
/// The least time between two counts of a namespace. Each count also waits for ten times as long as the last one took.
const COUNT_DELAY: Duration = Duration::from_millis(100);
const MAX_COUNT_DELAY: Duration = Duration::from_secs(10);
/// The interval of counts without changes, as upstream's: a Pod whose grace period is over is no longer counted.
const RESYNC: Duration = Duration::from_secs(5 * 60);
/// The attempts to write a count before others go on.
const WRITE_ATTEMPTS: usize = 5;

/// Counts until dropped.
pub(crate) async fn run(registry: &Registry) {
    loop {
        if let Err(error) = follow(registry).await {
            tracing::debug!(%error, "the watch of quotas ended; restarting");
        }
        sleep(RESTART_DELAY).await;
    }
}

/// Watches all quotas, and follows each namespace that has some.
async fn follow(registry: &Registry) -> Result<(), ApiError> {
    let spec = WatchSpec {
        filter: Filter::all(kind_of::<ResourceQuota>(), ""),
        start: Start::Initial(AtLeast::Any),
        bookmarks: false,
    };
    let mut events = registry.cache().watch(spec).await?;
    let (mut followed, mut running) = (HashSet::new(), FuturesUnordered::new());
    loop {
        tokio::select! {
            Some(event) = events.next() => {
                let namespace = event?.object.key.namespace.clone();
                if followed.insert(namespace.clone()) {
                    running.push(follow_namespace(registry, namespace));
                }
            }
            Some(namespace) = running.next() => {
                followed.remove(&namespace);
                // One that was created since the task ended has started none.
                if !quotas_of(registry, &namespace, AtLeast::Any).await?.0.is_empty() {
                    followed.insert(namespace.clone());
                    running.push(follow_namespace(registry, namespace));
                }
            }
        }
    }
}

/// Counts in a namespace until it has no quotas. Returns its name.
async fn follow_namespace(registry: &Registry, namespace: String) -> String {
    loop {
        match count_until_changed(registry, &namespace).await {
            Ok(true) => {}
            Ok(false) => return namespace,
            Err(error) => {
                tracing::debug!(namespace, %error, "counting for quotas failed; trying again");
                sleep(RESTART_DELAY).await;
            }
        }
    }
}

/// Counts after each change of an object that a quota may count, until the quotas change. Returns whether there are any.
async fn count_until_changed(registry: &Registry, namespace: &str) -> Result<bool, ApiError> {
    let (quotas, revision) = quotas_of(registry, namespace, AtLeast::Newest).await?;
    if quotas.is_empty() {
        return Ok(false);
    }
    let mut events = watch_counted(registry, namespace, &quotas, revision).await?;
    loop {
        let began = Instant::now();
        for quota in &quotas {
            count(registry, &Key::of(&quota.metadata)).await?;
        }
        let pause = began.elapsed().saturating_mul(10);
        sleep(pause.clamp(COUNT_DELAY, MAX_COUNT_DELAY)).await;
        if wait_for_change(&mut events).await? {
            return Ok(true);
        }
    }
}

/// Waits for a change of an object, and takes those that have happened by then. Returns whether a quota itself has changed.
async fn wait_for_change(events: &mut SelectAll<Watch>) -> Result<bool, ApiError> {
    let mut quota_changed = false;
    loop {
        let Ok(Some(event)) = timeout(RESYNC, events.next()).await else {
            return Ok(quota_changed);
        };
        let mut event = event?;
        let mut relevant = false;
        loop {
            match event.object.kind {
                kind if kind == kind_of::<ResourceQuota>() => quota_changed |= needs_count(&event),
                // A quota may count objects of a kind that is now defined.
                kind if kind == kind_of::<CustomResourceDefinition>() => quota_changed = true,
                _ => relevant = true,
            }
            match futures::FutureExt::now_or_never(events.next()) {
                Some(Some(next)) => event = next?,
                _ => break,
            }
        }
        if relevant || quota_changed {
            return Ok(quota_changed);
        }
    }
}

/// Returns whether the quota is new, deleted, has another limit than its last count, or lacks a count. Charges do not
/// matter.
fn needs_count(event: &Event) -> bool {
    if event.r#type != EventType::Modified {
        return true;
    }
    let quota = ResourceQuota::decode(event.object.raw.as_ref());
    quota.is_ok_and(|ResourceQuota { spec, status, .. }| {
        let mut names = spec.hard.keys();
        spec.hard != status.hard || names.any(|name| !status.used.contains_key(name))
    })
}

async fn watch_counted(
    registry: &Registry,
    namespace: &str,
    quotas: &[ResourceQuota],
    after: Revision,
) -> Result<SelectAll<Watch>, ApiError> {
    let counts = |kind: &&Kind| {
        let names = quotas.iter().flat_map(|quota| quota.spec.hard.keys());
        let mut names = names;
        is_counted(kind)
            && *kind != kind_of::<ResourceQuota>()
            && names.any(|name| tracks(kind, name))
    };
    let kinds = registry.cache().kinds();
    let counted = kinds.iter().filter(counts);
    let counted = counted.map(|kind| Filter::all(kind, namespace));
    let filters = counted.chain([
        Filter::all(kind_of::<ResourceQuota>(), namespace),
        Filter::all(kind_of::<CustomResourceDefinition>(), ""),
    ]);
    let mut watches = Vec::new();
    for filter in filters {
        let spec = WatchSpec {
            filter,
            start: Start::After(after),
            bookmarks: false,
        };
        watches.push(registry.cache().watch(spec).await?);
    }
    Ok(select_all(watches))
}

/// Returns the quotas of a namespace, and the revision of the list.
async fn quotas_of(
    registry: &Registry,
    namespace: &str,
    at: AtLeast,
) -> Result<(Vec<ResourceQuota>, Revision), ApiError> {
    let all = Filter::all(kind_of::<ResourceQuota>(), namespace);
    let listed = registry.cache().list(&all, at).await?;
    let quotas = listed.items.iter().map(|item| decode(item));
    Ok((quotas.collect::<Result<_, _>>()?, listed.revision))
}

fn decode(cached: &Cached) -> Result<ResourceQuota, ApiError> {
    errors::readable(ResourceQuota::decode(cached.raw.as_ref()))
}

/// Counts what a quota limits, and writes it unless it is there.
async fn count(registry: &Registry, key: &Key) -> Result<(), ApiError> {
    let kind = kind_of::<ResourceQuota>();
    let target = Target::new(kind, &key.namespace, &key.name, "status")?;
    let context = RequestContext::default().by("resourcequota-controller");
    for _ in 0..WRITE_ATTEMPTS {
        // Read before the objects: a create in the meantime charges the quota, so that the write below conflicts.
        let cached = registry.cache().get(kind, key, AtLeast::Newest).await?;
        let Some(cached) = cached else {
            return Ok(());
        };
        let mut quota = decode(&cached)?;
        let used = used(registry, &quota, &key.namespace).await?;
        let status = &mut quota.status;
        if status.hard == quota.spec.hard && amounts::of_list(&status.used) == used {
            return Ok(());
        }
        status.hard.clone_from(&quota.spec.hard);
        status.used = amounts::to_list(&used);
        quota.metadata.resource_version = cached.revision.to_string();
        let written = registry.update(&context, &target, Box::new(quota)).await;
        match written {
            Err(error) if error.reason == Reason::Conflict => {}
            Err(error) if error.reason == Reason::NotFound => return Ok(()),
            written => return written.map(|_| ()),
        }
    }
    // The creates that conflict with it are events, after which it is counted again.
    Ok(())
}

/// Returns what the objects of the namespace use of the resources that the quota limits.
async fn used(
    registry: &Registry,
    quota: &ResourceQuota,
    namespace: &str,
) -> Result<Amounts, ApiError> {
    let mut used = Amounts::new();
    let now = Timestamp::now();
    for kind in registry
        .cache()
        .kinds()
        .iter()
        .filter(|kind| is_counted(kind))
    {
        let names = quota.spec.hard.keys().filter(|name| tracks(kind, name));
        let names: Vec<_> = names.cloned().collect();
        if names.is_empty() {
            continue;
        }
        let all = Filter::all(kind, namespace);
        let objects = registry.cache().list(&all, AtLeast::Newest).await?.items;
        let sum = sum(kind, quota, &objects, now)?;
        for name in names {
            let amount = sum.get(&name).copied().unwrap_or(Amount::ZERO);
            used.insert(name, amount);
        }
    }
    Ok(used)
}

/// Returns what objects of one kind use.
fn sum(
    kind: &Kind,
    quota: &ResourceQuota,
    objects: &[Arc<Cached>],
    now: Timestamp,
) -> Result<Amounts, ApiError> {
    let measured: [&Kind; 3] = [
        kind_of::<Pod>(),
        kind_of::<Service>(),
        kind_of::<PersistentVolumeClaim>(),
    ];
    let mut sum = Amounts::new();
    let Some(first) = objects.first() else {
        return Ok(sum);
    };
    if !measured.contains(&kind) {
        let first = errors::readable(first.decode())?;
        if matches_scopes(&quota.spec, &*first) {
            let number = i64::try_from(objects.len()).unwrap_or(i64::MAX);
            let each = usage_of(&*first, now).into_keys();
            sum.extend(each.map(|name| (name, Amount::from_value(number))));
        }
        return Ok(sum);
    }
    for object in objects {
        let object = errors::readable(object.decode())?;
        if matches_scopes(&quota.spec, &*object) {
            amounts::add(&mut sum, &usage_of(&*object, now));
        }
    }
    Ok(sum)
}
