//! `update`: the whole object, its status, or its scale.

use setpoint_codec::Object;
use setpoint_proto::ApiError;

use super::problems::Problems;
use super::state::State;
use super::{
    Answer, Call, Registry, Subresource, Target, errors, expect_kind, metadata, scale, strategy,
};
use crate::access::Verb;

impl Registry {
    /// Puts `object` in place of what its subresource covers.
    ///
    /// # Errors
    /// `Conflict` when the object names a revision or a uid that is not the newest, `NotFound`, `Invalid`, …
    pub async fn update(
        &self,
        call: &Call,
        target: &Target,
        object: Box<dyn Object>,
    ) -> Result<Answer, ApiError> {
        self.allow(call, Verb::Update, target)?;
        match target.subresource {
            Subresource::Scale => return self.update_scale(call, target, object).await,
            Subresource::Binding => return Err(errors::not_allowed()),
            Subresource::None | Subresource::Status => expect_kind(&*object, target.kind)?,
        }
        let precondition = Precondition::of(&*object);
        let mut propose = |old: &State, slot: &mut Option<Box<dyn Object>>| {
            precondition.check(target, old)?;
            revise(
                target,
                old,
                slot.as_mut()
                    .expect("what was sent lies there from the start"),
            )
        };
        let amended = self.amend(call, target, Some(object), &mut propose).await?;
        Ok(amended.into_answer())
    }

    async fn update_scale(
        &self,
        call: &Call,
        target: &Target,
        object: Box<dyn Object>,
    ) -> Result<Answer, ApiError> {
        let replicas = scale::replicas_of(&*object, target)?;
        let precondition = Precondition::of(&*object);
        let whole = Target::whole(target.kind, &target.key());
        let mut propose = |old: &State, slot: &mut Option<Box<dyn Object>>| {
            precondition.check(target, old)?;
            let new = slot.insert(old.object.clone_box());
            scale::set(&mut **new, replicas);
            revise(&whole, old, new)
        };
        let amended = self.amend(call, &whole, None, &mut propose).await?;
        scale::answer(amended.into_answer())
    }
}

/// What the sender knew of the object: empty fields demand nothing.
pub(super) struct Precondition {
    pub uid: String,
    pub revision: String,
}

impl Precondition {
    pub(super) fn of(object: &dyn Object) -> Self {
        let meta = object.meta();
        Self {
            uid: meta.uid.clone(),
            revision: meta.resource_version.clone(),
        }
    }

    pub(super) fn check(&self, target: &Target, old: &State) -> Result<(), ApiError> {
        let uid = &old.object.meta().uid;
        if !self.uid.is_empty() && self.uid != *uid {
            let why = format!(
                "Precondition failed: UID in precondition: {}, UID in object meta: {uid}",
                self.uid
            );
            return Err(errors::conflict(target, why));
        }
        // "0" is what clients send that mean "whatever there is".
        let unspecified = self.revision.is_empty() || self.revision == "0";
        if !unspecified && self.revision != old.revision.to_string() {
            return Err(errors::modified(target));
        }
        Ok(())
    }
}

/// Makes of the update `new` what is to stand in place of `old`, if it is a good one.
pub(super) fn revise(
    target: &Target,
    old: &State,
    new: &mut Box<dyn Object>,
) -> Result<(), ApiError> {
    let rules = strategy::of(target.kind);
    let was = &*old.object;
    if target.subresource == Subresource::Status {
        let mut sent = std::mem::replace(new, was.clone_box());
        rules.take_status(&mut **new, &mut *sent);
        return Ok(());
    }
    let new = &mut **new;
    metadata::prepare_update(new.meta_mut(), was.meta(), target)?;
    rules.prepare_update(new, was);
    rules.fill_defaults(new);
    let mut problems = Problems::default();
    let name = rules.check_name(&new.meta().name);
    metadata::validate(new.meta(), name, &mut problems);
    metadata::validate_update(new.meta(), was.meta(), &mut problems);
    rules.validate(new, &mut problems);
    rules.validate_update(new, was, &mut problems);
    problems.into_result(target.kind, &new.meta().name)?;
    if rules.counts_generations() {
        let changed = rules.intent_changed(new, was);
        new.meta_mut().generation = was.meta().generation + i64::from(changed);
    }
    Ok(())
}
