//! The verb `delete`: removes an object at once, after a grace period, or when its last finalizer is removed.

use jiff::Timestamp;
use setpoint_codec::Object;
use setpoint_kinds::validation::field_errors::FieldErrors;
use setpoint_kinds::validation::field_path::FieldPath;
use setpoint_kinds::{self as kinds, delete};
use setpoint_model::Verb;
use setpoint_proto::meta::DeleteOptions;
use setpoint_proto::{ApiError, Reason};

use crate::admission::Operation;
use crate::registry::{ObjectResponse, Registry, RequestContext, Subresource, Target, errors};
use crate::request::audit::{Sent, own_write};
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
        match own_write(self.auditor(), &context.user, Verb::Delete, target, || {
            Sent::Nothing
        }) {
            None => self.delete_one(context, target, options).await,
            Some(write) => {
                write
                    .record(self.delete_one(context, target, options))
                    .await
            }
        }
    }

    async fn delete_one(
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
        let deleted = self.delete_as(context, target, options, Some(admission));
        let mut deleted = deleted.await?;
        let warnings = &mut deleted.response.warnings;
        warnings.extend(delete::warnings(target.kind, options));
        Ok(deleted)
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
            delete::begin_or_shorten(&mut **new, options, now);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contradicting_options_are_invalid() {
        let mut options = DeleteOptions {
            grace_period_seconds: Some(-1),
            ..DeleteOptions::default()
        };
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
}
