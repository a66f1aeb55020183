//! Accepts the names of definitions, establishes them, and deletes the objects of deleted ones (upstream: the naming,
//! establishing and finalizing controllers of the apiextensions-apiserver).
//!
//! Every gateway runs it. Two may accept one name for two definitions at once, as neither sees the other's write. So a
//! definition is established by a second write, after a read of the newest state in which no other has its names; of two that
//! have, the later one releases them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, ready};
use futures::{FutureExt as _, StreamExt as _, TryFutureExt as _, stream};
use jiff::Timestamp;
use prost::Message as _;
use setpoint_codec::{Object, kind_of};
use setpoint_model::{Key, Revision};
use setpoint_proto::apiextensions::CustomResourceDefinition;
use setpoint_proto::meta::DeleteOptions;
use setpoint_proto::{ApiError, EventType, Reason};
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::kinds::customresourcedefinition::{
    Removal, is_settled, needs_removal, remove_finalizer, settle_names,
};
use crate::registry::write::current::Current;
use crate::registry::{
    AtLeast, Cached, Event, Filter, Registry, RequestContext, Start, Target, WatchSpec, errors,
};

/// The interval of attempts after errors, and the delay before the watch is restarted.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The maximum number of events that are acted upon at once.
const EVENTS: usize = 1024;
/// The number of definitions of a group that are settled concurrently: a quarter of the writes that the store executes.
const CONCURRENCY: usize = 16;

/// The manager of its writes.
const CONTROLLER: &str = "custom-resource-definition-controller";

/// Keeps the status of definitions until dropped.
pub(crate) async fn run(registry: &Registry) {
    loop {
        if let Err(error) = follow(registry).await {
            tracing::debug!(%error, "the watch of definitions ended; restarting");
        }
        sleep(RETRY_INTERVAL).await;
    }
}

/// Settles definitions whenever some change, until the watch ends.
async fn follow(registry: &Registry) -> Result<(), ApiError> {
    let spec = WatchSpec {
        filter: Filter::all(kind_of::<CustomResourceDefinition>(), ""),
        start: Start::Initial(AtLeast::Any),
        bookmarks: false,
    };
    let mut events = registry.cache().watch(spec).await?.ready_chunks(EVENTS);
    let mut retries = interval(RETRY_INTERVAL);
    retries.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut unsettled, mut known) = (Unsettled::default(), Known::default());
    let mut failed = BTreeSet::new();
    loop {
        let groups = tokio::select! {
            Some(events) = events.next() => unsettled.after(events)?,
            _ = retries.tick(), if !failed.is_empty() => std::mem::take(&mut failed),
        };
        for group in groups {
            match settle_group(registry, &group, &unsettled, &mut known).await {
                Ok(true) => {}
                Ok(false) => drop(failed.insert(group)),
                Err(error) => {
                    tracing::debug!(group, %error, "reading definitions failed; trying again");
                    failed.insert(group);
                }
            }
        }
    }
}

/// The names of the definitions that are not settled, by group.
#[derive(Default)]
struct Unsettled(BTreeMap<String, BTreeSet<String>>);

impl Unsettled {
    /// Returns the groups to settle after events: theirs, as each may have freed a name.
    fn after(
        &mut self,
        events: Vec<Result<Event, ApiError>>,
    ) -> Result<BTreeSet<String>, ApiError> {
        let mut touched = BTreeSet::new();
        for event in events {
            let event = event?;
            let Ok(definition) = decode(&event.object) else {
                continue;
            };
            let (name, group) = (event.object.key.name.clone(), definition.spec.group.clone());
            let of_group = self.0.entry(group.clone()).or_default();
            match event.r#type == EventType::Deleted || is_settled(&definition) {
                true => of_group.remove(&name),
                false => of_group.insert(name),
            };
            touched.insert(group);
        }
        self.0.retain(|_, names| !names.is_empty());
        touched.retain(|group| self.0.contains_key(group));
        Ok(touched)
    }

    fn has(&self, definition: &CustomResourceDefinition) -> bool {
        let of_group = self.0.get(&definition.spec.group);
        of_group.is_some_and(|names| names.contains(&definition.metadata.name))
    }
}

/// The definitions that were read, without their versions, which are large and do not matter here.
#[derive(Default)]
struct Known(HashMap<String, (Revision, Arc<CustomResourceDefinition>)>);

impl Known {
    /// Returns the definitions of a group in their newest state. Those that have not changed are not decoded again.
    async fn of_group(
        &mut self,
        registry: &Registry,
        group: &str,
    ) -> Result<Vec<Arc<CustomResourceDefinition>>, ApiError> {
        let all = Filter::all(kind_of::<CustomResourceDefinition>(), "");
        let listed = registry.cache().list(&all, AtLeast::Newest).await?;
        let names: HashSet<_> = listed.items.iter().map(|item| &item.key.name).collect();
        self.0.retain(|name, _| names.contains(name));
        let suffix = format!(".{group}");
        let mut definitions = Vec::new();
        for item in &listed.items {
            if !item.key.name.ends_with(&suffix) {
                continue;
            }
            let definition = self.read(item)?;
            if definition.spec.group == group {
                definitions.push(definition);
            }
        }
        Ok(definitions)
    }

    fn read(&mut self, item: &Cached) -> Result<Arc<CustomResourceDefinition>, ApiError> {
        let name = &item.key.name;
        if let Some((revision, known)) = self.0.get(name)
            && *revision == item.revision
        {
            return Ok(known.clone());
        }
        let mut definition = decode(item)?;
        definition.spec.versions.clear();
        let definition = Arc::new(definition);
        let read = (item.revision, definition.clone());
        self.0.insert(name.clone(), read);
        Ok(definition)
    }
}

fn decode(cached: &Cached) -> Result<CustomResourceDefinition, ApiError> {
    errors::readable(CustomResourceDefinition::decode(cached.raw.as_ref()))
}

/// Takes the next step for each definition of a group that is not settled. Returns whether the rest follows from events.
async fn settle_group(
    registry: &Registry,
    group: &str,
    unsettled: &Unsettled,
    known: &mut Known,
) -> Result<bool, ApiError> {
    let definitions = known.of_group(registry, group).await?;
    let waiting = definitions.iter().filter(|one| unsettled.has(one));
    let steps = waiting.map(|definition| try_settle(registry, definition, &definitions));
    // Collected, since an iterator with a closure makes a future that no task accepts.
    let steps: Vec<_> = steps.collect();
    let steps = stream::iter(steps).buffer_unordered(CONCURRENCY);
    Ok(steps.all(ready).await)
}

/// Takes the next step for a definition, as [`settle`]. After an error the step remains to be taken.
fn try_settle<'a>(
    registry: &'a Registry,
    definition: &'a CustomResourceDefinition,
    group: &'a [Arc<CustomResourceDefinition>],
) -> BoxFuture<'a, bool> {
    let settled = settle(registry, definition, group);
    let settled = settled.unwrap_or_else(|error| {
        let name = &definition.metadata.name;
        tracing::debug!(name, %error, "settling a definition failed; trying again");
        false
    });
    settled.boxed()
}

/// Takes the next step for a definition. `group` has all definitions of its group. Returns whether the rest follows from events.
async fn settle(
    registry: &Registry,
    definition: &CustomResourceDefinition,
    group: &[Arc<CustomResourceDefinition>],
) -> Result<bool, ApiError> {
    if needs_removal(definition) {
        return remove(registry, definition).await;
    }
    let others = group.iter().map(Arc::as_ref);
    let others = others.filter(|one| one.metadata.name != definition.metadata.name);
    let now = Timestamp::now();
    let settled = |new: &mut CustomResourceDefinition| {
        // Names that it has got since may be those that another has got; the event about them is the next attempt.
        if new.status == definition.status {
            settle_names(new, others.clone(), now);
        }
    };
    write(registry, definition, settled).await?;
    Ok(true)
}

/// Deletes the objects of the kind, then lets the deletion of the definition end. Returns whether all objects are gone.
async fn remove(
    registry: &Registry,
    definition: &CustomResourceDefinition,
) -> Result<bool, ApiError> {
    let now = Timestamp::now();
    let begun = Removal::of(definition);
    let last = match begun {
        Removal::InProgress => {
            write(registry, definition, |new| {
                Removal::InProgress.report(new, now)
            })
            .await?;
            let (group, names) = (&definition.spec.group, &definition.spec.names);
            match delete_instances(registry, group, &names.plural).await {
                Ok(true) => Removal::Completed,
                Ok(false) => return Ok(false),
                Err(error) => {
                    let failed = Removal::Failed(error.message.clone());
                    write(registry, definition, |new| failed.clone().report(new, now)).await?;
                    return Err(error);
                }
            }
        }
        other => other,
    };
    let ended = |new: &mut CustomResourceDefinition| {
        last.clone().report(new, now);
        remove_finalizer(new);
    };
    write(registry, definition, ended).await?;
    Ok(true)
}

/// Deletes all objects of a custom kind. Returns whether they are gone, so that no finalizer holds one.
async fn delete_instances(
    registry: &Registry,
    group: &str,
    plural: &str,
) -> Result<bool, ApiError> {
    let custom = registry.cache().kinds().custom();
    let resource = custom.by_folder(&format!("{group}/{plural}"));
    let Some(kind) = resource.and_then(|resource| resource.stored()) else {
        return Ok(true);
    };
    let all = Filter::all(kind, "");
    let context = RequestContext::default().by(CONTROLLER);
    let options = DeleteOptions::default();
    let listed = registry.cache().list(&all, AtLeast::Newest).await?.items;
    for key in listed.into_iter().map(|item| item.key.clone()) {
        let target = Target::whole(kind, &key);
        match registry.delete(&context, &target, &options).await {
            Err(error) if error.reason != Reason::NotFound => return Err(error),
            _ => {}
        }
    }
    let left = registry.cache().list(&all, AtLeast::Newest).await?;
    Ok(left.items.is_empty())
}

/// Changes a definition, unless the change has no effect or the definition no longer exists.
async fn write(
    registry: &Registry,
    definition: &CustomResourceDefinition,
    change: impl Fn(&mut CustomResourceDefinition) + Send + Sync,
) -> Result<(), ApiError> {
    let mut changed = definition.clone();
    change(&mut changed);
    if changed == *definition {
        return Ok(());
    }
    let context = RequestContext::default().by(CONTROLLER);
    let key = Key::of(&definition.metadata);
    let target = Target::whole(kind_of::<CustomResourceDefinition>(), &key);
    let uid = &definition.metadata.uid;
    let mut mutate = |old: &Current, slot: &mut Option<Box<dyn Object>>| {
        let new = slot.insert(old.object.clone_box());
        if let Some(new) = new.downcast_mut::<CustomResourceDefinition>()
            && new.metadata.uid == *uid
        {
            change(new);
        }
        Ok(())
    };
    let updated = registry.guaranteed_update(&context, &target, &mut mutate);
    match updated.await {
        Err(error) if error.reason != Reason::NotFound => Err(error),
        _ => Ok(()),
    }
}
