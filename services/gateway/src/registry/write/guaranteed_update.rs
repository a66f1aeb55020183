//! Guaranteed update: read the object, compute the new one, commit; again if the read was stale or another write was
//! first.

use setpoint_codec::{Object, envelope};
use setpoint_proto::ApiError;
use setpoint_store::{self as store, Write};

use crate::heavy::heavy;
use crate::kinds;
use crate::registry::write::allocation::precondition;
use crate::registry::write::current::State;
use crate::registry::write::fencing;
use crate::registry::write::retry::Retry;
use crate::registry::write::write_metrics::Tally;
use crate::registry::{Answer, Call, Registry, Target, errors};

/// Computes the new object from the current one. The slot carries the result of the previous attempt, or the object that
/// the caller sent, in, and the new result out.
pub(crate) type Propose<'p> =
    dyn FnMut(&State, &mut Option<Box<dyn Object>>) -> Result<(), ApiError> + Send + 'p;

/// The result of a change.
pub(crate) enum Amended {
    /// The object after the change.
    Kept(Answer),
    /// The object before it was removed.
    Removed(Answer),
}

/// The result of one attempt.
enum Round {
    Done(Amended),
    /// Another write was first: the object that we computed, and the current one, if the store returned it.
    Beaten(Box<dyn Object>, Option<State>),
}

impl Amended {
    pub(crate) fn into_answer(self) -> Answer {
        match self {
            Self::Kept(answer) | Self::Removed(answer) => answer,
        }
    }
}

impl Registry {
    /// Changes an object to the result of `propose`; removes it if its deletion is complete.
    ///
    /// A proposal that fails on the cached object is tried on the stored one before its error is returned. After a conflict
    /// it is repeated on the new current object, until the time of the request is up. `bytes` is the size of the request,
    /// which each proposal processes besides the object.
    pub(crate) async fn amend(
        &self,
        call: &Call,
        target: &Target,
        mut slot: Option<Box<dyn Object>>,
        bytes: usize,
        propose: &mut Propose<'_>,
    ) -> Result<Amended, ApiError> {
        target.label_span();
        let mut state = self.hoped(target).await?;
        let mut retry = Retry::begin();
        loop {
            let bytes = bytes.max(state.raw.len());
            if let Err(error) = heavy(bytes, || propose(&state, &mut slot)).await {
                if state.fresh {
                    return Err(error);
                }
                state = self.newest(target).await?;
                continue;
            }
            let new = slot
                .take()
                .expect("a proposal leaves its outcome in the slot");
            match self.commit(call, target, state, new).await? {
                Round::Done(amended) => return Ok(amended),
                Round::Beaten(new, stands) => {
                    slot = Some(new);
                    retry.again().await?;
                    state = match stands {
                        Some(state) => state,
                        None => self.newest(target).await?,
                    };
                }
            }
        }
    }

    async fn commit(
        &self,
        call: &Call,
        target: &Target,
        old: State,
        mut new: Box<dyn Object>,
    ) -> Result<Round, ApiError> {
        if nothing_holds(&*new) {
            return self.remove(call, target, old, new).await;
        }
        let allocation = self.allocate(Some(&*old.object), &mut *new).await?;
        let term = fencing::advance(&*self.store, Some(&old), &*new).await?;
        let raw = new.encode();
        let kept = |answer| Ok(Round::Done(Amended::Kept(answer)));
        if raw == old.raw && !old.fresh {
            // The cached object may be stale, so this may be a change of the current one.
            return Ok(Round::Beaten(new, None));
        }
        if raw == old.raw {
            self.check_fence(target, call).await?;
            return kept(Answer::written(new, &raw, old.revision, old.cause));
        }
        let mut cause = call.cause();
        term.note(&mut cause);
        let tally = Tally::of(&*new, Some(&old), &mut cause);
        if call.dry_run {
            self.check_fence(target, call).await?;
            return kept(Answer::written(new, &raw, old.revision, Some(cause)));
        }
        let kind = target.kind;
        let value = envelope::write(&kind.api_version(), &kind.kind, &raw, Some(&cause));
        let write = Write::update(target.path(), old.revision, value);
        let write = write
            .fenced(call.fence.clone())
            .with_preconditions(precondition(&allocation));
        match self.store.commit(term.with(write)).await {
            Ok(revision) => {
                tally.count_unless(call.dry_run);
                kept(Answer::written(new, &raw, revision, Some(cause)))
            }
            Err(store::Error::PreconditionFailed) => {
                let asked = allocation.map_or(new, |allocation| allocation.asked);
                Ok(Round::Beaten(asked, None))
            }
            Err(error) => self.beaten(call, target, error, new).await,
        }
    }

    async fn remove(
        &self,
        call: &Call,
        target: &Target,
        old: State,
        new: Box<dyn Object>,
    ) -> Result<Round, ApiError> {
        let cause = call.cause();
        let term = fencing::forget(&*self.store, &old).await?;
        let write = Write::delete(target.path(), old.revision);
        let write = write.fenced(call.fence.clone()).because(cause.clone());
        let revision = match call.dry_run {
            true => self
                .check_fence(target, call)
                .await
                .map(|()| Ok(old.revision))?,
            false => self.store.commit(term.with(write)).await,
        };
        match revision {
            Ok(revision) => {
                Tally::of_removal(target.kind, &cause).count_unless(call.dry_run);
                let raw = new.encode();
                let answer = Answer::written(new, &raw, revision, Some(cause));
                Ok(Round::Done(Amended::Removed(answer)))
            }
            Err(error) => self.beaten(call, target, error, new).await,
        }
    }

    /// Turns a conflict into another attempt; returns any other error.
    async fn beaten(
        &self,
        call: &Call,
        target: &Target,
        error: store::Error,
        new: Box<dyn Object>,
    ) -> Result<Round, ApiError> {
        match error {
            store::Error::Conflict {
                current: Some(entry),
            } => Ok(Round::Beaten(new, Some(State::of_entry(target, &entry)?))),
            store::Error::Conflict { current: None } => {
                Err(errors::not_found(target.kind, &target.name))
            }
            store::Error::TermMoved { .. } | store::Error::PreconditionFailed => {
                Ok(Round::Beaten(new, None))
            }
            other => Err(self.refused(other, target, call).await),
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
