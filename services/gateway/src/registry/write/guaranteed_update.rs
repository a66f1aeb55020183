//! Guaranteed update: reads an object, computes the new one and commits it, and retries if the read was stale or another
//! write came first.

use setpoint_codec::{Object, envelope};
use setpoint_kinds as kinds;
use setpoint_proto::ApiError;
use setpoint_store::{self as store, Write};

use crate::admission::{Attributes, Chain, Operation};
use crate::offload::offload;
use crate::registry::target;
use crate::registry::write::change::{Change, in_form};
use crate::registry::write::current::Current;
use crate::registry::write::retry::Retry;
use crate::registry::write::stored_value;
use crate::registry::write::write_metrics::WriteMetrics;
use crate::registry::{AtLeast, ObjectResponse, Registry, RequestContext, Target, errors};

/// Computes the new object from the current one. The slot passes in a copy of the object of the request, if there is one, and passes
/// out the new object.
pub(crate) type Mutate<'p> =
    dyn FnMut(&Current, &mut Option<Box<dyn Object>>) -> Result<(), ApiError> + Send + 'p;

/// The result of an update.
pub(crate) enum Updated {
    /// The object after the update.
    Stored(ObjectResponse),
    /// The object before it was removed.
    Deleted(ObjectResponse),
}

/// The result of one attempt.
enum Attempt {
    Done(Updated),
    /// The commit failed because of another write: the current object, if the store returned it.
    Conflict(Option<Current>),
}

impl Updated {
    fn with_warnings(mut self, warnings: Vec<String>) -> Self {
        let (Self::Stored(response) | Self::Deleted(response)) = &mut self;
        response.warnings.extend(warnings);
        self
    }

    pub(crate) fn into_response(self) -> ObjectResponse {
        match self {
            Self::Stored(response) | Self::Deleted(response) => response,
        }
    }
}

impl Registry {
    /// Changes an object to the result of `mutate`, which is valid, as an update of `target`.
    pub(crate) async fn guaranteed_update(
        &self,
        context: &RequestContext,
        target: &Target,
        mutate: &mut Mutate<'_>,
    ) -> Result<Updated, ApiError> {
        let change = Change {
            validates: false,
            ..Change::update(target, 0)
        };
        self.change(context, target, change, mutate).await
    }

    /// Changes an object to the result of `mutate`; removes it if its deletion is complete.
    ///
    /// If `mutate` fails on the cached object, or its result is denied, this is repeated with the stored one if that is newer. After a
    /// conflict it is repeated with the new current object, until the request times out. Each attempt begins from the request: the
    /// former one has copied values of an object that is not the current one.
    pub(crate) async fn change(
        &self,
        context: &RequestContext,
        target: &Target,
        change: Change<'_>,
        mutate: &mut Mutate<'_>,
    ) -> Result<Updated, ApiError> {
        target::set_span_attributes(target);
        let mut current = self.cached(target).await?;
        let mut retry = Retry::begin();
        loop {
            current = self.current_in_form(target, current).await?;
            let mut slot = change.sent.as_ref().map(|sent| sent.clone_box());
            let attempt = self.compute(context, target, &change, &current, &mut slot, mutate);
            let warnings = match attempt.await {
                Ok(warnings) => warnings,
                Err(error) => {
                    current = self.newer(target, &current).await?.ok_or(error)?;
                    continue;
                }
            };
            let new = slot.take().expect("`mutate` puts its result into the slot");
            match self.commit(context, target, current, new).await? {
                Attempt::Done(updated) => return Ok(updated.with_warnings(warnings)),
                Attempt::Conflict(stored) => {
                    retry.wait().await?;
                    current = match stored {
                        Some(current) => current,
                        None => self.live(target).await?,
                    };
                }
            }
        }
    }

    /// Computes the new object, and has it admitted. Returns the warnings of the write.
    async fn compute(
        &self,
        context: &RequestContext,
        target: &Target,
        change: &Change<'_>,
        current: &Current,
        slot: &mut Option<Box<dyn Object>>,
        mutate: &mut Mutate<'_>,
    ) -> Result<Vec<String>, ApiError> {
        let bytes = change.bytes.max(current.raw.len());
        offload(bytes, || mutate(current, slot)).await?;
        let new = slot
            .as_mut()
            .expect("`mutate` puts its result into the slot");
        self.settle_ownership(target, &*current.object, &mut **new, change.ownership)
            .await?;
        let Some(admission) = &change.admission else {
            return Ok(Vec::new());
        };
        let mut chain = Chain::of(self, admission.target).await?;
        let old = match chain.is_empty() {
            true => None,
            false => Some(in_form(admission.target, &*current.object, current)?),
        };
        let request = Attributes {
            context,
            target: admission.target,
            operation: admission.operation,
            object: None,
            old: old.as_deref(),
            old_cause: current.cause.as_ref(),
            options: admission.options,
        };
        let admitting = self.admit_change(change, &request, current, new, &mut chain);
        match admitting.await {
            Ok(()) => {
                let mut warnings = chain.warnings;
                if admission.operation == Operation::Update {
                    let old = Some(&*current.object);
                    warnings.extend(kinds::of(target.kind).warnings(&**new, old));
                }
                Ok(warnings)
            }
            Err(error) => Err(chain.refused(error)),
        }
    }

    /// Returns the stored object if it is newer than one from the cache.
    async fn newer(&self, target: &Target, known: &Current) -> Result<Option<Current>, ApiError> {
        if known.is_live {
            return Ok(None);
        }
        let live = self.live(target).await?;
        Ok(Some(live).filter(|live| live.revision != known.revision))
    }

    async fn commit(
        &self,
        context: &RequestContext,
        target: &Target,
        old: Current,
        mut new: Box<dyn Object>,
    ) -> Result<Attempt, ApiError> {
        if deletion_is_complete(&*new) {
            return self.remove(context, target, old, new).await;
        }
        let request = Attributes {
            context,
            target,
            operation: Operation::Update,
            object: None,
            old: Some(&*old.object),
            old_cause: old.cause.as_ref(),
            options: None,
        };
        self.plugins()
            .check(request.with_object(Some(&*new)))
            .await?;
        let reservation = self.plugins().reserve(request, &mut *new, AtLeast::Any);
        let reservation = reservation.await?;
        let converted = self.in_storage_version(target, &*new).await?;
        let raw = converted.as_deref().unwrap_or(&*new).encode();
        let stored = |response| Ok(Attempt::Done(Updated::Stored(response)));
        if raw == old.raw && !old.is_live {
            // The cached object may be stale, so this may be a change of the current one.
            let live = self.live(target).await?;
            if live.raw != raw {
                return Ok(Attempt::Conflict(Some(live)));
            }
        }
        if raw == old.raw {
            self.check_fence(target, context).await?;
            let at = (old.revision, old.cause);
            return stored(self.written(new, converted, &raw, at).await);
        }
        let mut cause = context.cause();
        reservation.record_in(&mut cause);
        let write_metrics = WriteMetrics::of(&*new, Some(&old), &mut cause);
        let written = converted.as_deref().unwrap_or(&*new);
        let value = envelope::of_object(written, &raw, Some(&cause));
        stored_value::check(target, written, &raw, &value, Some(&old)).await?;
        if context.dry_run {
            self.check_fence(target, context).await?;
            let at = (old.revision, Some(cause));
            return stored(self.written(new, converted, &raw, at).await);
        }
        self.link_update(context, &old, &*new).await;
        let write = Write::update(target::path(target), old.revision, value);
        let write = reservation.apply_to(write.fenced(context.fence.clone()));
        match self.store().commit(write).await {
            Ok(revision) => {
                write_metrics.count_unless(context.dry_run);
                let at = (revision, Some(cause));
                stored(self.written(new, converted, &raw, at).await)
            }
            Err(error) => self.retry_or_fail(context, target, error).await,
        }
    }

    async fn remove(
        &self,
        context: &RequestContext,
        target: &Target,
        old: Current,
        new: Box<dyn Object>,
    ) -> Result<Attempt, ApiError> {
        let cause = context.cause();
        let request = Attributes {
            context,
            target,
            operation: Operation::Delete,
            object: None,
            old: Some(&*old.object),
            old_cause: old.cause.as_ref(),
            options: None,
        };
        let reservation = self.plugins().release(request).await?;
        let write = Write::delete(target::path(target), old.revision);
        let write = write.fenced(context.fence.clone()).because(cause.clone());
        let revision = match context.dry_run {
            true => self
                .check_fence(target, context)
                .await
                .map(|()| Ok(old.revision))?,
            false => self.store().commit(reservation.apply_to(write)).await,
        };
        match revision {
            Ok(revision) => {
                WriteMetrics::of_removal(target.kind, &cause).count_unless(context.dry_run);
                let raw = new.encode();
                let response = ObjectResponse::written(new, &raw, revision, Some(cause));
                Ok(Attempt::Done(Updated::Deleted(response)))
            }
            Err(error) => self.retry_or_fail(context, target, error).await,
        }
    }

    /// Turns a conflict into another attempt; returns any other error.
    async fn retry_or_fail(
        &self,
        context: &RequestContext,
        target: &Target,
        error: store::Error,
    ) -> Result<Attempt, ApiError> {
        match error {
            store::Error::Conflict {
                current: Some(entry),
            } => Ok(Attempt::Conflict(Some(Current::of_entry(target, &entry)?))),
            store::Error::Conflict { current: None } => {
                Err(errors::not_found(target.served, &target.name))
            }
            store::Error::TermMoved { .. } | store::Error::PreconditionFailed => {
                Ok(Attempt::Conflict(None))
            }
            other => Err(self.write_error(other, target, context).await),
        }
    }
}

/// Returns whether the object is being deleted, its grace period is over, and no finalizer holds it.
fn deletion_is_complete(object: &dyn Object) -> bool {
    let meta = object.meta();
    meta.deletion_timestamp.is_some()
        && meta.deletion_grace_period_seconds == Some(0)
        && meta.finalizers.is_empty()
        && !kinds::of(object.kind()).holds_deletion(object)
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::{Namespace, Pod};

    use super::*;

    #[test]
    fn a_deletion_is_complete_without_a_grace_period_and_finalizers() {
        let mut pod = Pod::default();
        assert!(!deletion_is_complete(&pod));
        pod.metadata.deletion_timestamp = Some(Default::default());
        pod.metadata.deletion_grace_period_seconds = Some(30);
        assert!(!deletion_is_complete(&pod));
        pod.metadata.deletion_grace_period_seconds = Some(0);
        assert!(deletion_is_complete(&pod));
        pod.metadata.finalizers.push("a.io/b".into());
        assert!(!deletion_is_complete(&pod));
        let mut namespace = Namespace::default();
        namespace.metadata.deletion_timestamp = Some(Default::default());
        namespace.metadata.deletion_grace_period_seconds = Some(0);
        namespace.spec.finalizers.push("kubernetes".into());
        assert!(!deletion_is_complete(&namespace));
    }
}
