//! `delete`: at once, after a Pod's grace, or when the last finalizer is gone.

use jiff::{SignedDuration, Timestamp};
use setpoint_codec::Object;
use setpoint_proto::ApiError;
use setpoint_proto::core::{Namespace, Pod};
use setpoint_proto::meta::{DeleteOptions, ObjectMeta};

use super::amend::Amended;
use super::metadata::{FOREGROUND, ORPHAN};
use super::state::State;
use super::update::Precondition;
use super::{
    Answer, Call, List, ListParams, Registry, Subresource, Target, errors, kinds, namespaces,
    strategy,
};
use crate::access::Verb;

/// What became of a deletion.
pub struct Deleted {
    /// The object: as it last stood, or as it stands now if something keeps it.
    pub answer: Answer,
    /// Is it gone?
    pub gone: bool,
}

impl Registry {
    /// Deletes an object, or begins to: finalizers, a Pod's grace and a namespace's content keep it for a while.
    ///
    /// # Errors
    /// `NotFound`, or `Conflict` when a precondition does not hold.
    pub async fn delete(
        &self,
        call: &Call,
        target: &Target,
        options: &DeleteOptions,
    ) -> Result<Deleted, ApiError> {
        self.delete_if(call, target, options, &|_| Ok(())).await
    }

    /// The same, if the object as it stands in the very transaction meets a condition of the caller's.
    pub(super) async fn delete_if(
        &self,
        call: &Call,
        target: &Target,
        options: &DeleteOptions,
        condition: &(dyn Fn(&ObjectMeta) -> Result<(), ApiError> + Sync),
    ) -> Result<Deleted, ApiError> {
        self.allow(call, Verb::Delete, target)?;
        if target.subresource != Subresource::None {
            return Err(errors::not_allowed());
        }
        namespaces::check_mortal(target)?;
        let mut call = call.clone();
        call.dry_run |= options.dry_run.iter().any(|stage| stage == "All");
        let precondition = precondition(options);
        let now = Timestamp::now();
        let mut propose = |old: &State, slot: &mut Option<Box<dyn Object>>| {
            check(&precondition, target, old)?;
            condition(old.object.meta())?;
            let new = slot.insert(old.object.clone_box());
            end(&mut **new, options, now);
            Ok(())
        };
        let amended = self.amend(&call, target, None, &mut propose).await?;
        let gone = matches!(amended, Amended::Removed(_));
        Ok(Deleted {
            answer: amended.into_answer(),
            gone,
        })
    }

    /// Deletes everything that `params` selects, and answers with what that was.
    ///
    /// # Errors
    /// The first that a deletion ends in, but for objects that went away by themselves.
    pub async fn delete_collection(
        &self,
        call: &Call,
        params: &ListParams,
        options: &DeleteOptions,
    ) -> Result<List, ApiError> {
        let list = self.list(call, params).await?;
        for item in &list.items {
            let target = Target::whole(item.kind, &item.key);
            match self.delete(call, &target, options).await {
                Err(error) if error.reason != setpoint_proto::Reason::NotFound => {
                    return Err(error);
                }
                _ => {}
            }
        }
        Ok(list)
    }
}

fn precondition(options: &DeleteOptions) -> Precondition {
    let wanted = options.preconditions.clone().unwrap_or_default();
    Precondition {
        uid: wanted.uid.unwrap_or_default(),
        revision: wanted.resource_version.unwrap_or_default(),
    }
}

fn check(wanted: &Precondition, target: &Target, old: &State) -> Result<(), ApiError> {
    let uid = &old.object.meta().uid;
    if !wanted.uid.is_empty() && wanted.uid != *uid {
        let why = format!(
            "the UID in the precondition ({}) does not match the UID in record ({uid}). The object might have been deleted and then recreated",
            wanted.uid
        );
        return Err(errors::conflict(target, why));
    }
    let revision = old.revision.to_string();
    if !wanted.revision.is_empty() && wanted.revision != revision {
        let why = format!(
            "the ResourceVersion in the precondition ({}) does not match the ResourceVersion in record ({revision}). The object might have been modified",
            wanted.revision
        );
        return Err(errors::conflict(target, why));
    }
    Ok(())
}

/// Marks the object as ending; one that is ending already only if that brings its end closer.
fn end(object: &mut dyn Object, options: &DeleteOptions, now: Timestamp) {
    hold_for_dependants(object.meta_mut(), options);
    let grace = match object.downcast_ref::<Pod>() {
        Some(pod) => kinds::grace_of(pod, options.grace_period_seconds),
        None => 0,
    };
    let counts = strategy::of(object.kind()).counts_generations();
    let meta = object.meta_mut();
    let left = meta.deletion_grace_period_seconds;
    if meta.deletion_timestamp.is_some() && left.is_some_and(|left| left <= grace) {
        return;
    }
    let first = meta.deletion_timestamp.is_none();
    meta.generation += i64::from(first && counts);
    meta.deletion_timestamp = Some((now + SignedDuration::from_secs(grace)).into());
    meta.deletion_grace_period_seconds = Some(grace);
    if let Some(namespace) = object.downcast_mut::<Namespace>() {
        namespace.status.phase = "Terminating".into();
    }
}

/// Who deletes may ask that dependants be set free first, or be gone first.
fn hold_for_dependants(meta: &mut ObjectMeta, options: &DeleteOptions) {
    let policy = match (&options.propagation_policy, options.orphan_dependents) {
        (Some(policy), _) => policy.as_str(),
        (None, Some(true)) => "Orphan",
        // Nobody said: what stands there already goes on.
        (None, None) => return,
        (None, Some(false)) => "Background",
    };
    meta.finalizers
        .retain(|finalizer| finalizer != ORPHAN && finalizer != FOREGROUND);
    match policy {
        "Orphan" => meta.finalizers.push(ORPHAN.into()),
        "Foreground" => meta.finalizers.push(FOREGROUND.into()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::apps::Deployment;

    use super::*;

    fn bound() -> Pod {
        let mut pod = Pod::default();
        pod.spec.node_name = "node-1".into();
        pod
    }

    fn graced(grace: i64) -> DeleteOptions {
        DeleteOptions {
            grace_period_seconds: Some(grace),
            ..Default::default()
        }
    }

    #[test]
    fn a_pod_ends_after_its_grace_and_that_only_ever_shrinks() {
        let (mut pod, now) = (bound(), Timestamp::from_second(1_000).unwrap());
        let deadline = |pod: &Pod| {
            pod.metadata
                .deletion_timestamp
                .and_then(|time| time.timestamp())
        };
        end(&mut pod, &DeleteOptions::default(), now);
        assert_eq!(pod.metadata.deletion_grace_period_seconds, Some(30));
        assert_eq!(deadline(&pod), Timestamp::from_second(1_030).ok());
        end(&mut pod, &graced(60), now);
        assert_eq!(pod.metadata.deletion_grace_period_seconds, Some(30));
        end(&mut pod, &graced(5), now);
        assert_eq!(deadline(&pod), Timestamp::from_second(1_005).ok());
        end(&mut pod, &graced(0), now);
        assert_eq!(pod.metadata.deletion_grace_period_seconds, Some(0));
    }

    #[test]
    fn an_ending_counts_as_one_change_of_intent() {
        let (mut web, now) = (Deployment::default(), Timestamp::UNIX_EPOCH);
        web.metadata.generation = 4;
        end(&mut web, &DeleteOptions::default(), now);
        end(&mut web, &DeleteOptions::default(), now);
        assert_eq!(web.metadata.generation, 5);
    }

    #[test]
    fn who_deletes_says_what_becomes_of_dependants() {
        let policy = |policy: &str| DeleteOptions {
            propagation_policy: Some(policy.into()),
            ..Default::default()
        };
        let mut meta = ObjectMeta::default();
        hold_for_dependants(&mut meta, &policy("Orphan"));
        assert_eq!(meta.finalizers, [ORPHAN]);
        hold_for_dependants(&mut meta, &DeleteOptions::default());
        assert_eq!(meta.finalizers, [ORPHAN]);
        hold_for_dependants(&mut meta, &policy("Foreground"));
        assert_eq!(meta.finalizers, [FOREGROUND]);
        hold_for_dependants(&mut meta, &policy("Background"));
        assert!(meta.finalizers.is_empty());
    }
}
