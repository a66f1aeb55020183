//! The verb `delete`: removes an object at once, after a grace period, or when its last finalizer is removed.

use jiff::Timestamp;
use setpoint_codec::Object;
use setpoint_kinds as kinds;
use setpoint_kinds::validation::field_errors::FieldErrors;
use setpoint_kinds::validation::field_path::FieldPath;
use setpoint_kinds::validation::metadata::{FOREGROUND, ORPHAN};
use setpoint_model::time::seconds_after;
use setpoint_proto::meta::{DeleteOptions, ObjectMeta};
use setpoint_proto::{ApiError, Reason};

use crate::admission::Operation;
use crate::registry::{ObjectResponse, Registry, RequestContext, Subresource, Target, errors};
use crate::verbs::delete_unreadable;
use crate::verbs::read::{List, ListParams};
use crate::verbs::update::Precondition;
use crate::write::change::{Change, Request};
use crate::write::current::Current;
use crate::write::guaranteed_update::Updated;

/// The result of a deletion.
pub struct Deleted {
    /// The object before it was removed, or after its deletion began.
    pub response: ObjectResponse,
    /// Whether it was removed.
    pub gone: bool,
}

impl Registry {
    /// Deletes an object, or begins its deletion if finalizers, a grace period or the content of a namespace hold it.
    ///
    /// # Errors
    /// `NotFound`, or `Conflict` when a precondition does not hold; `InternalError` if the object cannot be decoded,
    /// unless the options say to ignore that.
    pub async fn delete(
        &self,
        context: &RequestContext,
        target: &Target,
        options: &DeleteOptions,
    ) -> Result<Deleted, ApiError> {
        if delete_unreadable::is_requested(options) {
            validate(options)?;
            return Box::pin(self.delete_unreadable(context, target)).await;
        }
        let admission = Request {
            operation: Operation::Delete,
            target,
            options: Some(options),
        };
        self.delete_as(context, target, options, Some(admission))
            .await
    }

    /// Deletes an object as a part of a request that was admitted.
    pub(crate) async fn delete_admitted(
        &self,
        context: &RequestContext,
        target: &Target,
        options: &DeleteOptions,
    ) -> Result<Deleted, ApiError> {
        self.delete_as(context, target, options, None).await
    }

    async fn delete_as(
        &self,
        context: &RequestContext,
        target: &Target,
        options: &DeleteOptions,
        admission: Option<Request<'_>>,
    ) -> Result<Deleted, ApiError> {
        errors::check_writable(target)?;
        if target.subresource != Subresource::None {
            return Err(errors::not_allowed());
        }
        validate(options)?;
        kinds::of(target.kind)
            .check_delete(&target.name)
            .map_err(|why| errors::forbidden(target, why, None))?;
        let mut context = context.clone();
        context.dry_run |= options.dry_run.iter().any(|stage| stage == "All");
        let precondition = precondition(options);
        let now = Timestamp::now();
        let mut mutate = |old: &Current, slot: &mut Option<Box<dyn Object>>| {
            check(&precondition, target, old)?;
            let new = slot.insert(old.object.clone_box());
            begin_or_shorten(&mut **new, options, now);
            Ok(())
        };
        let keeping = target.clone().keeping_version();
        let change = Change {
            admission,
            ..Change::admitted()
        };
        let updated = self.change(&context, &keeping, change, &mut mutate).await?;
        let gone = matches!(updated, Updated::Deleted(_));
        Ok(Deleted {
            response: updated.into_response().served_as(target.served)?,
            gone,
        })
    }

    /// Deletes all objects that `params` selects, and returns them.
    ///
    /// # Errors
    /// The first error of a deletion, except for objects that no longer exist.
    pub async fn delete_collection(
        &self,
        context: &RequestContext,
        params: &ListParams,
        options: &DeleteOptions,
    ) -> Result<List, ApiError> {
        if !params.filter.kind().deletes_collection {
            return Err(errors::not_allowed());
        }
        if delete_unreadable::is_requested(options) {
            let mut errors = FieldErrors::default();
            let detail =
                "is not allowed with DELETECOLLECTION, try again after removing the option";
            errors.invalid(&FieldPath::root(delete_unreadable::OPTION), true, detail);
            return of_options(errors).map(|()| List::default());
        }
        let mut list = self.list(context, params).await?;
        if params.filter.needs_conversion() {
            list.items = self.list_in_version(&params.filter, list.items).await?;
        }
        for item in &list.items {
            let target = Target::whole(params.filter.served(), &item.key);
            match self.delete(context, &target, options).await {
                Err(error) if error.reason != Reason::NotFound => {
                    return Err(error);
                }
                _ => {}
            }
        }
        Ok(list)
    }
}

/// Returns the preconditions of a deletion.
pub(crate) fn precondition(options: &DeleteOptions) -> Precondition {
    let wanted = options.preconditions.clone().unwrap_or_default();
    Precondition {
        uid: wanted.uid.unwrap_or_default(),
        revision: wanted.resource_version.unwrap_or_default(),
    }
}

/// Checks the current object; returns `Conflict` if it differs.
pub(crate) fn check(wanted: &Precondition, target: &Target, old: &Current) -> Result<(), ApiError> {
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

/// Validates options as Kubernetes does. A negative grace period is accepted.
fn validate(options: &DeleteOptions) -> Result<(), ApiError> {
    const POLICIES: [&str; 4] = ["Foreground", "Background", "Orphan", "nil"];
    let mut errors = FieldErrors::default();
    let path = FieldPath::root("propagationPolicy");
    if let Some(policy) = &options.propagation_policy {
        if options.orphan_dependents.is_some() {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            errors.invalid(&path, policy, detail);
        }
        if !POLICIES[..3].contains(&policy.as_str()) {
            errors.unsupported(&path, policy, &POLICIES);
        }
    }
    if delete_unreadable::is_requested(options) {
        refuse_others(options, &mut errors);
    }
    of_options(errors)
}

/// Refuses what has no meaning for an object that cannot be read.
fn refuse_others(options: &DeleteOptions, errors: &mut FieldErrors) {
    let path = FieldPath::root(delete_unreadable::OPTION);
    let others = [
        ("dryRun", !options.dry_run.is_empty()),
        ("propagationPolicy", options.propagation_policy.is_some()),
        ("orphanDependents", options.orphan_dependents.is_some()),
        ("gracePeriodSeconds", options.grace_period_seconds.is_some()),
        ("preconditions", options.preconditions.is_some()),
    ];
    for (name, _) in others.iter().filter(|(_, is_set)| *is_set) {
        errors.invalid(&path, true, format!("cannot be set together with .{name}"));
    }
}

/// Returns the errors of options.
fn of_options(errors: FieldErrors) -> Result<(), ApiError> {
    let kind = Object::kind(&DeleteOptions::default());
    errors.into_result(kind, "").map_err(|mut error| {
        // The kind belongs to every group; Kubernetes names this one in its messages.
        error.message = error.message.replacen(' ', ".meta.k8s.io ", 1);
        error
    })
}

/// Begins the deletion of an object, or shortens its grace period.
fn begin_or_shorten(object: &mut dyn Object, options: &DeleteOptions, now: Timestamp) {
    let orphans = kinds::of(object.kind()).orphans_by_default();
    set_propagation_finalizer(object.meta_mut(), options, orphans);
    // A negative grace period is an old form of "as soon as possible".
    let requested = options.grace_period_seconds;
    let requested = requested.map(|grace| if grace < 0 { 1 } else { grace });
    let meta = object.meta();
    match (meta.deletion_timestamp, meta.deletion_grace_period_seconds) {
        (Some(deadline), Some(grace)) if grace > 0 => {
            shorten(
                object.meta_mut(),
                deadline.timestamp(),
                grace,
                requested,
                now,
            );
        }
        (Some(_), Some(_)) => {}
        (first, _) => begin(object, requested, first.is_none(), now),
    }
}

fn begin(object: &mut dyn Object, requested: Option<i64>, first: bool, now: Timestamp) {
    let rules = kinds::of(object.kind());
    let (grace, counts) = (
        rules.begin_deletion(object, requested),
        rules.counts_generations(),
    );
    let meta = object.meta_mut();
    meta.generation = meta.generation.saturating_add(i64::from(first && counts));
    meta.deletion_timestamp = Some(seconds_after(now, grace).into());
    meta.deletion_grace_period_seconds = Some(grace);
}

/// Shortens the grace period to `requested` if that is less. It counts from the start of the deletion.
fn shorten(
    meta: &mut ObjectMeta,
    deadline: Option<Timestamp>,
    grace: i64,
    requested: Option<i64>,
    now: Timestamp,
) {
    let Some(requested) = requested.filter(|requested| *requested < grace) else {
        return;
    };
    // The start cannot be computed from a saturated deadline.
    let exact = deadline.filter(|deadline| deadline.as_second() < Timestamp::MAX.as_second());
    let began = exact.map(|deadline| seconds_after(deadline, grace.saturating_neg()));
    let began = began.filter(|began| *began <= now);
    let sooner = seconds_after(began.unwrap_or(now), requested);
    let (deadline, left) = match sooner < now {
        // It is over, but the node agent still removes the object, unless a period of 0 was requested.
        true => (now, requested.min(1)),
        false => (sooner, requested),
    };
    meta.deletion_timestamp = Some(deadline.into());
    meta.deletion_grace_period_seconds = Some(left);
}

/// Sets the finalizer of the propagation policy: dependants are orphaned first, deleted first, or neither. Without a
/// policy, finalizers that are set decide, then `orphans`.
fn set_propagation_finalizer(meta: &mut ObjectMeta, options: &DeleteOptions, orphans: bool) {
    let is_set = |name: &str| meta.finalizers.iter().any(|finalizer| finalizer == name);
    let decided = is_set(ORPHAN) || is_set(FOREGROUND);
    let policy = match (&options.propagation_policy, options.orphan_dependents) {
        (Some(policy), _) => policy.as_str(),
        (None, Some(true)) => "Orphan",
        (None, None) if orphans && !decided => "Orphan",
        (None, None) => return,
        (None, Some(false)) => "Background",
    };
    let is_policy = |finalizer: &String| [ORPHAN, FOREGROUND].contains(&finalizer.as_str());
    meta.finalizers.retain(|finalizer| !is_policy(finalizer));
    match policy {
        "Orphan" => meta.finalizers.push(ORPHAN.into()),
        "Foreground" => meta.finalizers.push(FOREGROUND.into()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::apps::Deployment;
    use setpoint_proto::core::Pod;

    use super::*;

    fn bound_pod() -> Pod {
        let mut pod = Pod::default();
        pod.spec.node_name = "node-1".into();
        pod
    }

    fn with_grace(grace: i64) -> DeleteOptions {
        DeleteOptions {
            grace_period_seconds: Some(grace),
            ..Default::default()
        }
    }

    #[test]
    fn a_grace_period_can_be_shortened_but_not_extended() {
        let (mut pod, now) = (bound_pod(), Timestamp::from_second(1_000).unwrap());
        let deadline = |pod: &Pod| {
            pod.metadata
                .deletion_timestamp
                .and_then(|time| time.timestamp())
        };
        begin_or_shorten(&mut pod, &DeleteOptions::default(), now);
        assert_eq!(pod.metadata.deletion_grace_period_seconds, Some(30));
        assert_eq!(deadline(&pod), Timestamp::from_second(1_030).ok());
        begin_or_shorten(&mut pod, &with_grace(60), now);
        assert_eq!(pod.metadata.deletion_grace_period_seconds, Some(30));
        begin_or_shorten(&mut pod, &DeleteOptions::default(), now);
        assert_eq!(deadline(&pod), Timestamp::from_second(1_030).ok());
        begin_or_shorten(&mut pod, &with_grace(5), now);
        assert_eq!(deadline(&pod), Timestamp::from_second(1_005).ok());
        begin_or_shorten(&mut pod, &with_grace(0), now);
        assert_eq!(pod.metadata.deletion_grace_period_seconds, Some(0));
    }

    /// Checks F1.
    #[test]
    fn the_longest_grace_periods_do_not_overflow() {
        let now = Timestamp::from_second(1_000).unwrap();
        for grace in [i64::MAX, i64::MAX / 2, 300_000_000_000] {
            let mut pod = bound_pod();
            pod.spec.termination_grace_period_seconds = Some(grace);
            begin_or_shorten(&mut pod, &DeleteOptions::default(), now);
            assert_eq!(pod.metadata.deletion_grace_period_seconds, Some(grace));
            begin_or_shorten(&mut pod, &with_grace(grace.saturating_sub(1)), now);
            begin_or_shorten(&mut pod, &with_grace(5), now);
            let deadline = pod.metadata.deletion_timestamp.unwrap().timestamp();
            assert_eq!(deadline, Timestamp::from_second(1_005).ok(), "{grace}");
        }
    }

    /// Checks F1.
    #[test]
    fn a_negative_grace_period_is_one_second() {
        let (mut pod, now) = (bound_pod(), Timestamp::from_second(1_000).unwrap());
        begin_or_shorten(&mut pod, &with_grace(i64::MIN), now);
        assert_eq!(pod.metadata.deletion_grace_period_seconds, Some(1));
    }

    #[test]
    fn a_shortened_grace_period_counts_from_the_start_of_the_deletion() {
        let (mut pod, now) = (bound_pod(), Timestamp::from_second(1_000).unwrap());
        begin_or_shorten(&mut pod, &with_grace(30), now);
        let later = Timestamp::from_second(1_010).unwrap();
        begin_or_shorten(&mut pod, &with_grace(20), later);
        let deadline = |pod: &Pod| pod.metadata.deletion_timestamp.unwrap().timestamp();
        assert_eq!(deadline(&pod), Timestamp::from_second(1_020).ok());
        begin_or_shorten(&mut pod, &with_grace(5), later);
        assert_eq!(deadline(&pod), Some(later));
        assert_eq!(pod.metadata.deletion_grace_period_seconds, Some(1));
    }

    #[test]
    fn contradicting_options_are_invalid() {
        let mut options = with_grace(-1);
        assert_eq!(validate(&options), Ok(()));
        options.propagation_policy = Some("Sideways".into());
        options.orphan_dependents = Some(true);
        let error = validate(&options).unwrap_err();
        assert_eq!(error.reason, Reason::Invalid);
        assert!(error.message.contains("cannot be both set"), "{error}");
        assert!(
            error
                .message
                .contains(r#""Foreground", "Background", "Orphan", "nil""#),
            "{error}"
        );
    }

    #[test]
    fn a_deletion_increments_the_generation_once() {
        let (mut web, now) = (Deployment::default(), Timestamp::UNIX_EPOCH);
        web.metadata.generation = 4;
        begin_or_shorten(&mut web, &DeleteOptions::default(), now);
        begin_or_shorten(&mut web, &DeleteOptions::default(), now);
        assert_eq!(web.metadata.generation, 5);
    }

    #[test]
    fn the_propagation_policy_sets_its_finalizer() {
        let policy = |policy: &str| DeleteOptions {
            propagation_policy: Some(policy.into()),
            ..Default::default()
        };
        let mut meta = ObjectMeta::default();
        set_propagation_finalizer(&mut meta, &policy("Orphan"), false);
        assert_eq!(meta.finalizers, [ORPHAN]);
        set_propagation_finalizer(&mut meta, &DeleteOptions::default(), false);
        assert_eq!(meta.finalizers, [ORPHAN]);
        set_propagation_finalizer(&mut meta, &policy("Foreground"), false);
        assert_eq!(meta.finalizers, [FOREGROUND]);
        set_propagation_finalizer(&mut meta, &policy("Background"), true);
        assert!(meta.finalizers.is_empty());
        set_propagation_finalizer(&mut meta, &DeleteOptions::default(), false);
        assert!(meta.finalizers.is_empty());
        set_propagation_finalizer(&mut meta, &DeleteOptions::default(), true);
        assert_eq!(meta.finalizers, [ORPHAN]);
        set_propagation_finalizer(&mut meta, &policy("Foreground"), false);
        set_propagation_finalizer(&mut meta, &DeleteOptions::default(), true);
        assert_eq!(meta.finalizers, [FOREGROUND]);
    }
}
