//! Act: executes actions and records Events about them.

use setpoint_controller::{Client, Receipt, Recorder, events};
use setpoint_model::Target;
use setpoint_proto::apps::StatefulSet;
use setpoint_proto::core::{PersistentVolumeClaim, Pod};
use setpoint_proto::{ApiError, Reason};

use crate::claim::Owners;
use crate::{Action, World, pod};

pub(crate) async fn act(
    client: &Client,
    world: &World,
    action: &Action,
) -> Result<Receipt, ApiError> {
    let (set, meta) = (&world.set, &world.set.meta);
    match action {
        Action::Adopt(pod) => client.adopt::<StatefulSet, Pod>(meta, pod).await,
        Action::Release(pod) => client.release::<Pod>(meta, pod).await,
        Action::Revision(write) => {
            let labels = &set.template.metadata.labels;
            let written = write.act::<StatefulSet>(client, meta, labels, &set.snapshot);
            written.await
        }
        Action::CreateClaim { claim, ordinal } => {
            create_claim(client, world, claim, *ordinal).await
        }
        Action::OwnClaim { claim, owners, .. } => {
            let own = |current: &mut Vec<_>| {
                *current = owners.iter().map(|owner| owner.0.clone()).collect();
            };
            client
                .change_owners::<PersistentVolumeClaim>(claim, own)
                .await
        }
        Action::Create {
            ordinal, revision, ..
        } => {
            let pod = pod::new_pod(world, *ordinal, revision)?;
            let created = client.create_or_take(meta, &pod, |_| true).await?;
            Ok(created.receipt())
        }
        Action::AwaitClaim { claim, .. } => {
            let message = format!("pvc {claim} is being deleted");
            Err(ApiError::new(Reason::InternalError, message))
        }
        Action::Repair { pod, ordinal } => repair(client, world, pod, *ordinal).await,
        Action::Delete(pod) => client.delete_unchanged::<Pod>(pod).await,
    }
}

async fn create_claim(
    client: &Client,
    world: &World,
    name: &str,
    ordinal: i64,
) -> Result<Receipt, ApiError> {
    let Some(claim) = pod::new_claim(&world.set, name, ordinal) else {
        return Ok(Receipt::none());
    };
    Ok(client.create(&claim).await?.receipt())
}

/// Repairs a Pod, which must be the version that was seen. The gateway rejects changes of volumes, which upstream
/// tries, too: the user gets to know why the Pod blocks.
async fn repair(
    client: &Client,
    world: &World,
    seen: &Target,
    ordinal: i64,
) -> Result<Receipt, ApiError> {
    let mut pod = client.get::<Pod>(&seen.key).await?;
    pod::repair(&world.set, &mut pod, ordinal);
    pod.metadata.uid.clone_from(&seen.uid);
    pod.metadata.resource_version = seen.revision.to_string();
    Ok(client.update(&pod).await?.receipt())
}

/// Records an Event with the reason and message of upstream. Errors that the next reconcile resolves are not recorded.
pub(crate) fn record(
    events: &Recorder,
    world: &World,
    action: &Action,
    result: &Result<Receipt, ApiError>,
) {
    let Some(verb) = verb(action) else {
        return;
    };
    let about = events::reference::<StatefulSet>(&world.set.meta);
    for claim in conflicting(world, action) {
        let message = format!(
            "PersistentVolumeClaim {claim} has a conflicting OwnerReference that acts as a manging controller, \
            the retention policy is ignored for this claim"
        );
        events.warning(&about, "ConflictingController", message);
    }
    let (pod, set) = (action.pod(&world.set), &world.set.meta.key.name);
    let success = |message| events.normal(&about, &format!("Successful{verb}"), message);
    match (result, action) {
        (Ok(_), Action::CreateClaim { claim, .. }) => success(format!(
            "{verb} Claim {claim} Pod {pod} in StatefulSet {set} success"
        )),
        // A changed owner of a claim is no change of the Pod.
        (Ok(_), Action::OwnClaim { .. }) => {}
        (Ok(_), _) => success(format!("{verb} Pod {pod} in StatefulSet {set} successful")),
        (Err(error), _) if !is_reported(error) => {}
        (Err(error), _) => {
            let what = match action {
                Action::CreateClaim { claim, .. } => format!("Claim {claim} for Pod {pod}"),
                _ => format!("Pod {pod}"),
            };
            let message = format!("{verb} {what} in StatefulSet {set} failed error: {error}");
            events.warning(&about, &format!("Failed{verb}"), message);
        }
    }
}

/// Returns the verb in the Events about an action; `None` if there are none.
fn verb(action: &Action) -> Option<&'static str> {
    match action {
        Action::CreateClaim { .. } | Action::Create { .. } | Action::AwaitClaim { .. } => {
            Some("Create")
        }
        Action::OwnClaim { .. } | Action::Repair { .. } => Some("Update"),
        Action::Delete(_) => Some("Delete"),
        _ => None,
    }
}

/// Returns the claims that another controller owns, of the Pod whose claims are used or changed.
fn conflicting<'a>(world: &'a World, action: &Action) -> Vec<&'a str> {
    let (Action::Create { ordinal, .. } | Action::OwnClaim { ordinal, .. }) = action else {
        return Vec::new();
    };
    let pods = world.members();
    let owners = Owners::new(&world.set, *ordinal, pods.get(ordinal).copied());
    let claims = world.claims_of(*ordinal);
    claims
        .filter(|claim| owners.conflicts(claim))
        .map(|claim| &*claim.meta.key.name)
        .collect()
}

/// Returns whether an error is reported to the user. Names that an object outside of the cache has are not, either.
fn is_reported(error: &ApiError) -> bool {
    events::is_reported(error) && error.reason != Reason::AlreadyExists
}
