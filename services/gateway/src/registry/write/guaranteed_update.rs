//! Guaranteed update: read the object, compute the new one, commit; again if the read was stale or another write was
//! first.

use setpoint_codec::{Object, envelope};
use setpoint_proto::ApiError;
use setpoint_store::{self as store, Write};

use crate::heavy::heavy;
use crate::kinds;
use crate::registry::write::allocation::precondition;
use crate::registry::write::current::Current;
use crate::registry::write::fencing;
use crate::registry::write::retry::Retry;
use crate::registry::write::write_metrics::WriteMetrics;
use crate::registry::{ObjectResponse, Registry, RequestContext, Target, errors};

/// Computes the new object from the current one. The slot carries the result of the previous attempt, or the object that
/// the caller sent, in, and the new result out.
pub(crate) type Mutate<'p> =
    dyn FnMut(&Current, &mut Option<Box<dyn Object>>) -> Result<(), ApiError> + Send + 'p;

/// The result of a change.
pub(crate) enum Updated {
    /// The object after the change.
    Stored(ObjectResponse),
    /// The object before it was removed.
    Deleted(ObjectResponse),
}

/// The result of one attempt.
enum Attempt {
    Done(Updated),
    /// Another write was first: the object that we computed, and the current one, if the store returned it.
    Overtaken(Box<dyn Object>, Option<Current>),
}

impl Updated {
    pub(crate) fn into_response(self) -> ObjectResponse {
        match self {
            Self::Stored(response) | Self::Deleted(response) => response,
        }
    }
}

impl Registry {
    /// Changes an object to the result of `propose`; removes it if its deletion is complete.
    ///
    /// A proposal that fails on the cached object is tried on the stored one before its error is returned. After a conflict
    /// it is repeated on the new current object, until the time of the request is up. `bytes` is the size of the request,
    /// which each proposal processes besides the object.
    pub(crate) async fn guaranteed_update(
        &self,
        context: &RequestContext,
        target: &Target,
        mut slot: Option<Box<dyn Object>>,
        bytes: usize,
        mutate: &mut Mutate<'_>,
    ) -> Result<Updated, ApiError> {
        target.label_span();
        let mut current = self.cached(target).await?;
        let mut retry = Retry::begin();
        loop {
            let bytes = bytes.max(current.raw.len());
            if let Err(error) = heavy(bytes, || mutate(&current, &mut slot)).await {
                if current.is_live {
                    return Err(error);
                }
                current = self.live(target).await?;
                continue;
            }
            let new = slot
                .take()
                .expect("a proposal leaves its outcome in the slot");
            match self.commit(context, target, current, new).await? {
                Attempt::Done(updated) => return Ok(updated),
                Attempt::Overtaken(new, stored) => {
                    slot = Some(new);
                    retry.again().await?;
                    current = match stored {
                        Some(current) => current,
                        None => self.live(target).await?,
                    };
                }
            }
        }
    }

    async fn commit(
        &self,
        context: &RequestContext,
        target: &Target,
        old: Current,
        mut new: Box<dyn Object>,
    ) -> Result<Attempt, ApiError> {
        if nothing_holds(&*new) {
            return self.remove(context, target, old, new).await;
        }
        let allocation = self.allocate(Some(&*old.object), &mut *new).await?;
        let term = fencing::advance(&*self.store, Some(&old), &*new).await?;
        let raw = new.encode();
        let stored = |response| Ok(Attempt::Done(Updated::Stored(response)));
        if raw == old.raw && !old.is_live {
            // The cached object may be stale, so this may be a change of the current one.
            return Ok(Attempt::Overtaken(new, None));
        }
        if raw == old.raw {
            self.check_fence(target, context).await?;
            return stored(ObjectResponse::written(new, &raw, old.revision, old.cause));
        }
        let mut cause = context.cause();
        term.note(&mut cause);
        let write_metrics = WriteMetrics::of(&*new, Some(&old), &mut cause);
        if context.dry_run {
            self.check_fence(target, context).await?;
            return stored(ObjectResponse::written(
                new,
                &raw,
                old.revision,
                Some(cause),
            ));
        }
        let kind = target.kind;
        let value = envelope::write(&kind.api_version(), &kind.kind, &raw, Some(&cause));
        let write = Write::update(target.path(), old.revision, value);
        let write = write
            .fenced(context.fence.clone())
            .with_preconditions(precondition(&allocation));
        match self.store.commit(term.with(write)).await {
            Ok(revision) => {
                write_metrics.count_unless(context.dry_run);
                stored(ObjectResponse::written(new, &raw, revision, Some(cause)))
            }
            Err(store::Error::PreconditionFailed) => {
                let asked = allocation.map_or(new, |allocation| allocation.asked);
                Ok(Attempt::Overtaken(asked, None))
            }
            Err(error) => self.overtaken(context, target, error, new).await,
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
        let term = fencing::forget(&*self.store, &old).await?;
        let write = Write::delete(target.path(), old.revision);
        let write = write.fenced(context.fence.clone()).because(cause.clone());
        let revision = match context.dry_run {
            true => self
                .check_fence(target, context)
                .await
                .map(|()| Ok(old.revision))?,
            false => self.store.commit(term.with(write)).await,
        };
        match revision {
            Ok(revision) => {
                WriteMetrics::of_removal(target.kind, &cause).count_unless(context.dry_run);
                let raw = new.encode();
                let response = ObjectResponse::written(new, &raw, revision, Some(cause));
                Ok(Attempt::Done(Updated::Deleted(response)))
            }
            Err(error) => self.overtaken(context, target, error, new).await,
        }
    }

    /// Turns a conflict into another attempt; returns any other error.
    async fn overtaken(
        &self,
        context: &RequestContext,
        target: &Target,
        error: store::Error,
        new: Box<dyn Object>,
    ) -> Result<Attempt, ApiError> {
        match error {
            store::Error::Conflict {
                current: Some(entry),
            } => Ok(Attempt::Overtaken(
                new,
                Some(Current::of_entry(target, &entry)?),
            )),
            store::Error::Conflict { current: None } => {
                Err(errors::not_found(target.kind, &target.name))
            }
            store::Error::TermMoved { .. } | store::Error::PreconditionFailed => {
                Ok(Attempt::Overtaken(new, None))
            }
            other => Err(self.refused(other, target, context).await),
        }
    }
}

/// Returns whether the object is being deleted, its grace is over and no finalizer holds it.
fn nothing_holds(object: &dyn Object) -> bool {
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
    fn only_an_ending_object_that_nothing_holds_goes() {
        let mut pod = Pod::default();
        assert!(!nothing_holds(&pod));
        pod.metadata.deletion_timestamp = Some(Default::default());
        pod.metadata.deletion_grace_period_seconds = Some(30);
        assert!(!nothing_holds(&pod));
        pod.metadata.deletion_grace_period_seconds = Some(0);
        assert!(nothing_holds(&pod));
        pod.metadata.finalizers.push("a.io/b".into());
        assert!(!nothing_holds(&pod));
        let mut namespace = Namespace::default();
        namespace.metadata.deletion_timestamp = Some(Default::default());
        namespace.metadata.deletion_grace_period_seconds = Some(0);
        namespace.spec.finalizers.push("kubernetes".into());
        assert!(!nothing_holds(&namespace));
    }
}
