//! What there is to do when owners or namespaces go, and how it is done.

use opentelemetry::trace::SpanBuilder;
use setpoint_codec::{Object, kinds};
use setpoint_model::Key;
use setpoint_proto::core::Namespace;
use setpoint_proto::meta::{DeleteOptions, ObjectMeta, Preconditions};
use setpoint_proto::{ApiError, Cause, Here, Reason};
use tracing::debug;

use super::member::Member;
use crate::registry::metadata::{FOREGROUND, ORPHAN};
use crate::registry::state::State;
use crate::registry::{AtLeast, Call, Filter, Registry, Target, errors, namespaces};

/// Something to do, and why: it goes on in the trace of what made it necessary.
pub(super) struct Chore {
    pub task: Task,
    pub because: Option<Cause>,
}

/// Something to do.
pub(super) enum Task {
    /// Delete it if none of its owners is left.
    Abandoned(Member),
    /// Let the owner go, once its dependants are free or gone as its deletion asked.
    End(Member),
    /// Delete what is in this namespace; let it go once it is empty.
    Empty(String),
}

/// Does it, and hands it back if that failed.
pub(super) async fn perform(registry: &Registry, chore: Chore) -> Option<Chore> {
    let (span, call) = (span(&chore), &call(&chore));
    let outcome = async {
        match &chore.task {
            Task::Abandoned(member) => delete_abandoned(registry, call, member).await,
            Task::End(owner) => end(registry, call, owner).await,
            Task::Empty(namespace) => empty(registry, call, namespace).await,
        }
    };
    match span.during(outcome).await {
        Err(error) if !matches!(error.reason, Reason::NotFound | Reason::Conflict) => {
            debug!(%error, "a chore is tried again later");
            Some(chore)
        }
        // Gone, or not the object that was meant: either way there is nothing left to do.
        _ => None,
    }
}

fn span(chore: &Chore) -> Here {
    let because = chore.because.as_ref();
    let parent = because.and_then(|cause| cause.traceparent);
    let span = |parent| Here::begin(SpanBuilder::from_name(chore.task.name()), Some(parent));
    parent.map_or_else(Here::nowhere, span)
}

impl Task {
    const fn name(&self) -> &'static str {
        match self {
            Self::Abandoned(_) => "collect abandoned",
            Self::End(_) => "collect dependants",
            Self::Empty(_) => "collect namespace",
        }
    }
}

fn call(chore: &Chore) -> Call {
    let call = Call::default().by("garbage-collector");
    match &chore.because {
        Some(cause) => call.after(cause),
        None => call,
    }
}

/// Has it owners, and are all of them gone?
pub(super) async fn is_abandoned(
    registry: &Registry,
    member: &Member,
    at: AtLeast,
) -> Result<bool, ApiError> {
    for owner in &member.owners {
        // Nobody can tell whether an owner of an unknown kind is gone.
        let Some((kind, key)) = member.place_of(owner) else {
            return Ok(false);
        };
        let there = registry.cache.get(kind, &key, at).await?;
        if there
            .and_then(|there| Member::of(&there))
            .is_some_and(|there| there.uid == owner.uid)
        {
            return Ok(false);
        }
    }
    Ok(!member.owners.is_empty())
}

async fn delete_abandoned(
    registry: &Registry,
    call: &Call,
    member: &Member,
) -> Result<(), ApiError> {
    let now = registry
        .cache
        .get(member.kind, &member.key, AtLeast::Newest)
        .await?;
    let Some(now) = now.as_deref().and_then(Member::of) else {
        return Ok(());
    };
    if now.uid != member.uid || now.ending || !is_abandoned(registry, &now, AtLeast::Any).await? {
        return Ok(());
    }
    delete(registry, call, &now, "Background").await
}

async fn delete(
    registry: &Registry,
    call: &Call,
    member: &Member,
    policy: &str,
) -> Result<(), ApiError> {
    let options = DeleteOptions {
        preconditions: Some(Preconditions {
            uid: Some(member.uid.clone()),
            ..Default::default()
        }),
        propagation_policy: Some(policy.into()),
        ..Default::default()
    };
    let target = Target::whole(member.kind, &member.key);
    match registry.delete(call, &target, &options).await {
        Err(error) if error.reason != Reason::NotFound => Err(error),
        _ => Ok(()),
    }
}

async fn end(registry: &Registry, call: &Call, owner: &Member) -> Result<(), ApiError> {
    let now = registry
        .cache
        .get(owner.kind, &owner.key, AtLeast::Newest)
        .await?;
    let now = now.as_deref().and_then(Member::of);
    let Some(now) = now.filter(|now| now.uid == owner.uid && now.ending) else {
        return Ok(());
    };
    let asked = |what: &str| now.finalizers.iter().any(|finalizer| finalizer == what);
    if !asked(ORPHAN) && !asked(FOREGROUND) {
        return Ok(());
    }
    let dependants = dependants_of(registry, &now).await?;
    if asked(ORPHAN) {
        for dependant in &dependants {
            release(registry, call, dependant, &now.uid).await?;
        }
        let orphaned =
            |meta: &mut ObjectMeta| meta.finalizers.retain(|finalizer| finalizer != ORPHAN);
        change(registry, call, &now, orphaned).await?;
    }
    if asked(FOREGROUND) && !delete_dependants(registry, call, &dependants, &now.uid).await? {
        let last =
            |meta: &mut ObjectMeta| meta.finalizers.retain(|finalizer| finalizer != FOREGROUND);
        change(registry, call, &now, last).await?;
    }
    Ok(())
}

/// Everyone who belongs to it now. What the events have told so far would not do: one that is overlooked here is
/// deleted as abandoned when its owner has gone.
async fn dependants_of(registry: &Registry, owner: &Member) -> Result<Vec<Member>, ApiError> {
    let mut dependants = Vec::new();
    for kind in kinds().iter() {
        let all = Filter::all(kind, owner.key.namespace.as_str());
        let there = registry.cache.list(&all, AtLeast::Newest).await?;
        let members = there.items.iter().filter_map(|item| Member::of(item));
        dependants.extend(members.filter(|member| member.belongs_to(&owner.uid)));
    }
    Ok(dependants)
}

/// Sets a dependant free. One that is gone is free too.
async fn release(
    registry: &Registry,
    call: &Call,
    dependant: &Member,
    owner: &str,
) -> Result<(), ApiError> {
    let released = change(registry, call, dependant, |meta| {
        meta.owner_references
            .retain(|reference| reference.uid != owner);
    });
    match released.await {
        Err(error) if error.reason != Reason::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Is there still one that its owner must wait for?
async fn delete_dependants(
    registry: &Registry,
    call: &Call,
    dependants: &[Member],
    owner: &str,
) -> Result<bool, ApiError> {
    let mut blocked = false;
    for dependant in dependants {
        let mut references = dependant
            .owners
            .iter()
            .filter(|reference| reference.uid == owner);
        blocked |= references.any(|reference| reference.block_owner_deletion == Some(true));
        if !dependant.ending {
            delete(registry, call, dependant, "Foreground").await?;
        }
    }
    Ok(blocked)
}

async fn change(
    registry: &Registry,
    call: &Call,
    member: &Member,
    mut change: impl FnMut(&mut ObjectMeta) + Send,
) -> Result<(), ApiError> {
    let target = Target::whole(member.kind, &member.key);
    let mut propose = |old: &State, slot: &mut Option<Box<dyn Object>>| {
        if old.object.meta().uid != member.uid {
            return Err(errors::modified(&target));
        }
        change(slot.insert(old.object.clone_box()).meta_mut());
        Ok(())
    };
    registry.amend(call, &target, None, &mut propose).await?;
    Ok(())
}

async fn empty(registry: &Registry, call: &Call, namespace: &str) -> Result<(), ApiError> {
    let content = content_of(registry, namespace).await?;
    // Asked afterwards: while it is ending nothing new comes in, so that none of this is another's of the same name.
    if !is_ending(registry, namespace).await? {
        return Ok(());
    }
    for member in content.iter().filter(|member| !member.ending) {
        delete(registry, call, member, "Background").await?;
    }
    // Its last content brings us back here when it goes.
    if !content.is_empty() {
        return Ok(());
    }
    let target = Target::whole(namespaces::kind(), &Key::new("", namespace));
    let mut propose = |old: &State, slot: &mut Option<Box<dyn Object>>| {
        let new = slot.insert(old.object.clone_box());
        if let Some(namespace) = new.downcast_mut::<Namespace>()
            && namespace.metadata.deletion_timestamp.is_some()
        {
            namespace.spec.finalizers.clear();
        }
        Ok(())
    };
    registry.amend(call, &target, None, &mut propose).await?;
    Ok(())
}

async fn content_of(registry: &Registry, namespace: &str) -> Result<Vec<Member>, ApiError> {
    let mut content = Vec::new();
    for kind in kinds().iter().filter(|kind| kind.namespaced) {
        let all = Filter::all(kind, namespace);
        let there = registry.cache.list(&all, AtLeast::Newest).await?;
        content.extend(there.items.iter().filter_map(|item| Member::of(item)));
    }
    Ok(content)
}

async fn is_ending(registry: &Registry, namespace: &str) -> Result<bool, ApiError> {
    let key = Key::new("", namespace);
    let kind = namespaces::kind();
    let there = registry.cache.get(kind, &key, AtLeast::Newest).await?;
    let there = there.as_deref().and_then(Member::of);
    Ok(there.is_some_and(|namespace| namespace.ending))
}
