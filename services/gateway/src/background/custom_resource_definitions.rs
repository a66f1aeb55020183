//! Accepts the names of definitions, establishes them, and deletes the objects of deleted ones (upstream: the naming,
//! establishing and finalizing controllers of the apiextensions-apiserver).
//!
//! Every gateway runs it. Two may accept one name for two definitions at once, as neither sees the other's write. So a
//! definition is established by a second write, after a read of the newest state in which no other has its names; of
//! two that have, the later one releases them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, stream};
use jiff::Timestamp;
use prost::Message as _;
use setpoint_codec::{Kind, Object, kind_of};
use setpoint_kinds::customresourcedefinition::{
    Removal, has_failed, is_settled, needs_removal, remove_finalizer, settle_names,
};
use setpoint_model::{Key, Revision};
use setpoint_proto::apiextensions::CustomResourceDefinition;
use setpoint_proto::{ApiError, EventType, Reason};
use setpoint_store::{Range, keys};

use super::attempts::{Attempts, repeat};
use crate::registry::{
    AtLeast, Cached, Event, Filter, Registry, RequestContext, Start, Target, WatchSpec, errors,
};
use crate::write::current::Current;

/// The maximum number of events that are acted upon at once.
const EVENTS: usize = 1024;
/// The number of definitions of a group that are settled concurrently: a quarter of the writes that the store executes.
const CONCURRENCY: usize = 16;

/// The number of keys that are read from the store at once.
const PAGE: usize = 2000;

/// The manager of its writes.
const CONTROLLER: &str = "custom-resource-definition-controller";

/// Keeps the status of definitions until dropped.
pub(crate) async fn run(registry: &Registry) {
    repeat("custom-resource-definitions", || follow(registry)).await;
}

/// Settles definitions whenever some change, until the watch ends. A definition that could not be settled is left alone
/// for a while, whatever happens to it: several gateways would wake each other by the condition about it.
async fn follow(registry: &Registry) -> Result<(), ApiError> {
    let spec = WatchSpec {
        filter: Filter::all(kind_of::<CustomResourceDefinition>(), ""),
        start: Start::Initial(AtLeast::Any),
        bookmarks: false,
    };
    let mut events = registry.cache().watch(spec).await?.ready_chunks(EVENTS);
    let (mut unsettled, mut known) = (Unsettled::default(), Known::default());
    let mut attempts = Attempts::default();
    loop {
        let groups = tokio::select! {
            Some(events) = events.next() => unsettled.after(events)?,
            () = attempts.next_due() => unsettled.groups(),
        };
        for group in groups {
            let due = unsettled.due(&group, &attempts);
            if due.is_empty() {
                continue;
            }
            let definitions = known.of_group(registry, &group).await;
            let mut steps = match &definitions {
                Ok(definitions) => settle_some(registry, &due, definitions).await,
                Err(error) => {
                    tracing::debug!(group, %error, "reading definitions failed; trying again");
                    due.iter()
                        .map(|name| (name.clone(), Step::Failed))
                        .collect()
                }
            };
            for name in due {
                match steps.remove(&name) {
                    // One that no longer exists is settled, too.
                    Some(Step::Taken) | None => attempts.tried(&name, true),
                    Some(Step::Waiting) => attempts.postpone(&name),
                    Some(Step::Failed) => attempts.tried(&name, false),
                }
            }
        }
        attempts.retain(|name| unsettled.has(name));
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

    fn groups(&self) -> BTreeSet<String> {
        self.0.keys().cloned().collect()
    }

    /// Returns the definitions of a group that may be tried.
    fn due(&self, group: &str, attempts: &Attempts) -> BTreeSet<String> {
        let of_group = self.0.get(group).into_iter().flatten();
        of_group
            .filter(|name| attempts.may_try(name))
            .cloned()
            .collect()
    }

    fn has(&self, name: &str) -> bool {
        self.0.values().any(|names| names.contains(name))
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

/// The result of the next step for a definition.
enum Step {
    /// The rest follows from events.
    Taken,
    /// It has to be taken again, as finalizers hold objects.
    Waiting,
    Failed,
}

/// Takes the next step for each of some definitions of a group, as far as they exist.
async fn settle_some(
    registry: &Registry,
    names: &BTreeSet<String>,
    group: &[Arc<CustomResourceDefinition>],
) -> HashMap<String, Step> {
    let waiting = group
        .iter()
        .filter(|one| names.contains(&one.metadata.name));
    let steps = waiting.map(|definition| try_settle(registry, definition, group));
    // Collected, since an iterator with a closure makes a future that no task accepts.
    let steps: Vec<_> = steps.collect();
    stream::iter(steps)
        .buffer_unordered(CONCURRENCY)
        .collect()
        .await
}

/// Takes the next step for a definition, as [`settle`]. Returns its name, too.
fn try_settle<'a>(
    registry: &'a Registry,
    definition: &'a CustomResourceDefinition,
    group: &'a [Arc<CustomResourceDefinition>],
) -> BoxFuture<'a, (String, Step)> {
    let name = &definition.metadata.name;
    let settled = settle(registry, definition, group);
    let step = settled.map(move |settled| match settled {
        Ok(true) => Step::Taken,
        Ok(false) => Step::Waiting,
        Err(error) => {
            tracing::debug!(name, %error, "settling a definition failed; trying again");
            Step::Failed
        }
    });
    step.map(move |step| (name.clone(), step)).boxed()
}

/// Takes the next step for a definition. `group` has all definitions of its group. Returns whether the rest follows
/// from events.
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
            // After a failure, it remains what is to be said until the next attempt has had another outcome.
            if !has_failed(definition) {
                write(registry, definition, |new| {
                    Removal::InProgress.report(new, now)
                })
                .await?;
            }
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

/// Deletes all objects of a custom kind, below admission: the definition is deleted, so that nobody may keep its
/// objects. Returns whether they are gone, so that no finalizer holds one. Keys are read, since their values may not be
/// readable.
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
    let context = RequestContext::of_server().by(CONTROLLER);
    let mut failed = None;
    for key in stored_keys(registry, kind).await? {
        let target = Target::whole(kind, &key);
        match registry.purge(&context, &target).await {
            Err(error) if error.reason != Reason::NotFound => failed = Some(error),
            _ => {}
        }
    }
    match failed {
        Some(error) => Err(error),
        None => Ok(stored_keys(registry, kind).await?.is_empty()),
    }
}

/// Returns the names of all objects of a kind, whether they can be decoded or not.
async fn stored_keys(registry: &Registry, kind: &'static Kind) -> Result<Vec<Key>, ApiError> {
    let custom = registry.cache().kinds().custom();
    let mut range = Range {
        limit: PAGE,
        keys_only: true,
        ..Range::all(keys::prefix(kind, ""))
    };
    let mut found = Vec::new();
    loop {
        let page = registry.store().list(range.clone()).await?;
        let parsed = page
            .entries
            .iter()
            .map(|entry| keys::parse(&custom, &entry.key));
        found.extend(parsed.flatten().map(|(_, key)| key));
        range.after = page.entries.last().map(|entry| entry.key.clone());
        if page.remaining == 0 || range.after.is_none() {
            return Ok(found);
        }
    }
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
    let context = RequestContext::of_server().by(CONTROLLER);
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
