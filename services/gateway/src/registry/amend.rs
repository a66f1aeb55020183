//! Changing what is there: look, think, commit; look again if somebody was faster or the look was stale.

use setpoint_codec::{Object, envelope};
use setpoint_proto::ApiError;
use setpoint_proto::core::Namespace;
use setpoint_store::{self as store, Write};

use super::addresses::witness;
use super::retry::Retry;
use super::state::State;
use super::tally::Tally;
use super::{Answer, Call, Registry, Target, errors, terms};
use crate::heavy::heavy;

/// Makes the new object from what is there. The slot holds what the last round made, or what the caller sent, if
/// anything; the outcome goes there too.
pub(super) type Propose<'p> =
    dyn FnMut(&State, &mut Option<Box<dyn Object>>) -> Result<(), ApiError> + Send + 'p;

/// How a change ended.
pub(super) enum Amended {
    /// The object as it now stands.
    Kept(Answer),
    /// The object as it last stood.
    Removed(Answer),
}

/// How one round ended.
enum Round {
    Done(Amended),
    /// Somebody else wrote. This is what we had proposed, and what stands now, where the store told.
    Beaten(Box<dyn Object>, Option<State>),
}

impl Amended {
    pub(super) fn into_answer(self) -> Answer {
        match self {
            Self::Kept(answer) | Self::Removed(answer) => answer,
        }
    }
}

impl Registry {
    /// Changes an object to what `propose` makes of it; removes it when nothing holds it back any more.
    ///
    /// A proposal that fails against the cache is tried against the store before anyone hears of it. One that others
    /// overtake is made again from what they wrote, until the request's time is up. `bytes` of a request are worked on in
    /// each proposal, besides the object.
    pub(super) async fn amend(
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
        let allotment = self.allot(Some(&*old.object), &mut *new).await?;
        let term = terms::advance(&*self.store, Some(&old), &*new).await?;
        let raw = new.encode();
        let kept = |answer| Ok(Round::Done(Amended::Kept(answer)));
        if raw == old.raw && !old.fresh {
            // That nothing changes was only hoped: another gateway may have written meanwhile.
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
            .with_preconditions(witness(&allotment));
        match self.store.commit(term.with(write)).await {
            Ok(revision) => {
                tally.count_unless(call.dry_run);
                kept(Answer::written(new, &raw, revision, Some(cause)))
            }
            Err(store::Error::PreconditionFailed) => {
                let asked = allotment.map_or(new, |given| given.asked);
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
        let term = terms::forget(&*self.store, &old).await?;
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

    /// A conflict is another round; anything else is the end.
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

/// Is the object to go, and has everyone who wanted to be asked had their say?
fn nothing_holds(object: &dyn Object) -> bool {
    let meta = object.meta();
    let content = object
        .downcast_ref::<Namespace>()
        .is_some_and(|namespace| !namespace.spec.finalizers.is_empty());
    meta.deletion_timestamp.is_some()
        && meta.deletion_grace_period_seconds == Some(0)
        && meta.finalizers.is_empty()
        && !content
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::Pod;

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
