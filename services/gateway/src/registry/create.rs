//! `create`: a new object, its identity and its name.

use jiff::Timestamp;
use setpoint_codec::{Object, envelope};
use setpoint_model::{Revision, names};
use setpoint_proto::ApiError;
use setpoint_store::{self as store, Precondition, Write};

use super::addresses::witness;
use super::problems::Problems;
use super::retry::Retry;
use super::strategy::{self, Strategy};
use super::tally::Tally;
use super::{
    Answer, AtLeast, Call, Registry, Subresource, Target, errors, expect_kind, metadata, terms,
};
use setpoint_model::Verb;

/// How many generated names are tried. Two Pods of a set meet once in millions; eight meetings mean something else.
const NAMES: usize = 8;

/// An object that is ready to be written, and what must hold for that.
struct Draft {
    object: Box<dyn Object>,
    term: terms::Move,
    witnesses: Vec<Precondition>,
    /// Is its name made up, so that another will do as well?
    generates: bool,
}

enum Inserted {
    Written(Answer),
    /// What it rests on has changed: it must be judged again.
    Overtaken(Box<dyn Object>),
}

impl Registry {
    /// Stores a new object, or binds a Pod through its `binding`.
    ///
    /// # Errors
    /// `AlreadyExists`, `Invalid`, `NotFound` for its namespace, `Forbidden` when that is ending, …
    pub async fn create(
        &self,
        call: &Call,
        target: &Target,
        mut object: Box<dyn Object>,
    ) -> Result<Answer, ApiError> {
        self.allow(call, Verb::Create, target)?;
        match target.subresource {
            Subresource::Binding => return self.bind(call, target, object).await,
            Subresource::None => expect_kind(&*object, target.kind)?,
            Subresource::Status | Subresource::Scale => return Err(errors::not_allowed()),
        }
        let rules = strategy::of(target.kind);
        metadata::prepare_create(object.meta_mut(), target, Timestamp::now())?;
        let generates = object.meta().name.is_empty() && !object.meta().generate_name.is_empty();
        if generates {
            generate_name(&mut *object);
        }
        let mut target = target.clone();
        target.name.clone_from(&object.meta().name);
        target.label_span();
        let mut namespace = self.check_namespace(&target, AtLeast::Any).await?;
        self.admit(&target, &mut *object).await?;
        complete(rules, &target, &mut *object)?;
        let mut retry = Retry::begin();
        loop {
            let allotment = self.allot(None, &mut *object).await?;
            let draft = Draft {
                term: terms::advance(&*self.store, None, &*object).await?,
                witnesses: namespace.into_iter().chain(witness(&allotment)).collect(),
                object,
                generates,
            };
            object = match self.insert(call, &mut target, draft).await? {
                Inserted::Written(answer) => return Ok(answer),
                Inserted::Overtaken(object) => allotment.map_or(object, |given| given.asked),
            };
            retry.again().await?;
            namespace = self.check_namespace(&target, AtLeast::Newest).await?;
        }
    }

    async fn insert(
        &self,
        call: &Call,
        target: &mut Target,
        draft: Draft,
    ) -> Result<Inserted, ApiError> {
        let mut object = draft.object;
        let mut cause = call.cause();
        draft.term.note(&mut cause);
        for _ in 0..if draft.generates { NAMES } else { 1 } {
            let raw = object.encode();
            let kind = target.kind;
            let tally = Tally::of(&*object, None, &mut cause);
            let value = envelope::write(&kind.api_version(), &kind.kind, &raw, Some(&cause));
            let write = Write::create(target.path(), value)
                .fenced(call.fence.clone())
                .with_preconditions(draft.witnesses.clone());
            let write = draft.term.clone().with(write);
            match self.insert_once(call, target, write).await? {
                Ok(revision) => {
                    tally.count_unless(call.dry_run);
                    let answer = Answer::written(object, &raw, revision, Some(cause));
                    return Ok(Inserted::Written(answer));
                }
                Err(store::Error::PreconditionFailed) => return Ok(Inserted::Overtaken(object)),
                Err(store::Error::Conflict { .. }) if draft.generates => {
                    generate_name(&mut *object);
                    target.name.clone_from(&object.meta().name);
                }
                Err(store::Error::Conflict { .. }) => break,
                Err(error) => return Err(self.refused(error, target, call).await),
            }
        }
        Err(errors::already_exists(target.kind, &target.name))
    }

    async fn insert_once(
        &self,
        call: &Call,
        target: &Target,
        write: Write,
    ) -> Result<Result<Revision, store::Error>, ApiError> {
        if !call.dry_run {
            return Ok(self.store.commit(write).await);
        }
        self.check_fence(target, call).await?;
        Ok(match self.store.get(&write.key).await? {
            None => Ok(Default::default()),
            current => Err(store::Error::Conflict { current }),
        })
    }
}

/// Fills in what is missing, and judges what is there.
fn complete(
    rules: &dyn Strategy,
    target: &Target,
    object: &mut dyn Object,
) -> Result<(), ApiError> {
    rules.fill_defaults(object);
    rules.prepare_create(object);
    let mut problems = Problems::default();
    let check_name = |name: &str| rules.check_name(name);
    metadata::validate(object.meta(), check_name, &mut problems);
    rules.validate(object, &mut problems);
    rules.validate_create(object, &mut problems);
    object.meta_mut().generation = i64::from(rules.counts_generations());
    problems.into_result(target.kind, &target.name)
}

fn generate_name(object: &mut dyn Object) {
    let meta = object.meta_mut();
    meta.name = names::child(&meta.generate_name, &names::suffix(rand::random()));
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::Pod;

    use super::*;

    #[test]
    fn a_generated_name_keeps_its_beginning() {
        let mut pod = Pod::default();
        pod.metadata.generate_name = "web-".into();
        generate_name(&mut pod);
        assert!(pod.metadata.name.starts_with("web-"));
        assert_eq!(pod.metadata.name.len(), 9);
        pod.metadata.generate_name = "x".repeat(100);
        generate_name(&mut pod);
        assert_eq!(pod.metadata.name.len(), 63);
    }
}
