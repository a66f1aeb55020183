//! The verb `create`.

use jiff::Timestamp;
use setpoint_codec::{Object, envelope};
use setpoint_kinds::validation::metadata;
use setpoint_kinds::{self as kinds, create};
use setpoint_model::{Revision, names};
use setpoint_proto::core::Binding;
use setpoint_proto::{ApiError, Reason};
use setpoint_store::{self as store, Write};

use crate::admission::{Attributes, Chain, Reservation};
use crate::registry::target;
use crate::registry::write::field_manager;
use crate::registry::write::retry::Retry;
use crate::registry::write::stored_value;
use crate::registry::write::write_metrics::WriteMetrics;
use crate::registry::{
    AtLeast, ObjectResponse, Registry, RequestContext, Subresource, Target, errors, expect_kind,
};
use crate::reviews::{self, Question};

/// The attempts to generate a name. Names collide about once in 10⁶; eight collisions in a row have another cause.
const NAME_ATTEMPTS: usize = 8;

/// The manager of the fields of a new object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The manager of the request.
    Creator,
    /// Those that the object names.
    Recorded,
}

/// An object that is ready to be written, with what is reserved for it.
struct Draft {
    object: Box<dyn Object>,
    reservation: Reservation,
    /// Whether the name is generated, so that a name that exists is replaced by another.
    generated_name: bool,
}

enum Inserted {
    Done(ObjectResponse),
    /// A precondition failed; the object must be prepared again.
    Conflict(Box<dyn Object>),
}

impl Registry {
    /// Stores a new object, or binds or evicts a Pod through a subresource.
    ///
    /// # Errors
    /// `AlreadyExists`, `Invalid`, `NotFound` for its namespace, `Forbidden` when the namespace is being deleted, …
    pub async fn create(
        &self,
        context: &RequestContext,
        target: &Target,
        object: Box<dyn Object>,
    ) -> Result<ObjectResponse, ApiError> {
        self.create_by(context, target, object, Owner::Creator)
            .await
    }

    /// Like [`Self::create`], with a given owner of the fields.
    pub(crate) async fn create_by(
        &self,
        context: &RequestContext,
        target: &Target,
        mut object: Box<dyn Object>,
        owner: Owner,
    ) -> Result<ObjectResponse, ApiError> {
        errors::check_writable(target)?;
        if object.downcast_ref::<Binding>().is_some() && object.kind() == target.served {
            return Box::pin(self.bind_named(context, target, object)).await;
        }
        if target.served.is_review {
            return Box::pin(self.review(context, target, object)).await;
        }
        // Boxed, since the future of every create would be as large as that of an eviction.
        match target.subresource {
            Subresource::Binding => return Box::pin(self.bind(context, target, object)).await,
            Subresource::Eviction => return Box::pin(self.evict(context, target, object)).await,
            Subresource::Token => return Box::pin(self.issue_token(context, target, object)).await,
            Subresource::None => object = expect_kind(object, target)?,
            _ => return Err(errors::not_allowed()),
        }
        let mut chain = Chain::of(self, target).await?;
        let creating = self.create_whole(context, target, object, owner, &mut chain);
        match creating.await {
            Ok(mut response) => {
                response.warnings.splice(..0, chain.warnings);
                response.served_as(target.served)
            }
            Err(error) => Err(chain.refused(error)),
        }
    }

    async fn create_whole(
        &self,
        context: &RequestContext,
        of: &Target,
        mut object: Box<dyn Object>,
        owner: Owner,
        chain: &mut Chain<'_>,
    ) -> Result<ObjectResponse, ApiError> {
        metadata::prepare_create(object.meta_mut(), of, Timestamp::now())?;
        let generated_name =
            object.meta().name.is_empty() && !object.meta().generate_name.is_empty();
        if generated_name {
            generate_name(&mut *object);
        }
        let rules = kinds::of(of.kind);
        // Upstream sets them when it decodes a request, so the manager owns them, and admission sees them.
        rules.fill_defaults(&mut *object);
        if owner == Owner::Creator {
            field_manager::created(context, &mut *object);
        }
        let mut target = of.clone();
        target.name.clone_from(&object.meta().name);
        rules.set_requester(&mut *object, &context.user);
        let request = Attributes::of_create(context, &target);
        self.plugins.admit(request, &mut *object).await?;
        if chain.mutates() {
            self.mutate_new(context, of, &mut object, generated_name, chain)
                .await?;
            target.name.clone_from(&object.meta().name);
        }
        target::set_span_attributes(&target);
        create::complete(&target, &mut *object)?;
        self.link_create(context, &*object).await;
        let request = Attributes::of_create(context, &target).with_object(Some(&*object));
        self.plugins.check(request).await?;
        chain.judge(&request).await?;
        let warnings = rules.warnings(&*object, None);
        let (mut retry, mut at) = (Retry::begin(), AtLeast::Any);
        loop {
            let request = Attributes::of_create(context, &target);
            let mut reservation = self.plugins.reserve(request, &mut *object, at).await?;
            let requested = reservation.requested.take();
            let draft = Draft {
                reservation,
                object,
                generated_name,
            };
            object = match self.insert(context, &mut target, draft).await? {
                Inserted::Done(mut response) => {
                    response.warnings = warnings;
                    return Ok(response);
                }
                Inserted::Conflict(object) => requested.unwrap_or(object),
            };
            retry.wait().await?;
            at = AtLeast::Newest;
        }
    }

    /// Lets webhooks change a new object, which has defaults by then, but no identity yet.
    async fn mutate_new(
        &self,
        context: &RequestContext,
        target: &Target,
        object: &mut Box<dyn Object>,
        generated_name: bool,
        chain: &mut Chain<'_>,
    ) -> Result<(), ApiError> {
        let meta = object.meta_mut();
        let created = meta.creation_timestamp;
        (meta.uid, meta.creation_timestamp) = Default::default();
        if generated_name {
            meta.name.clear();
        }
        let mut named = target.clone();
        named.name.clone_from(&meta.name);
        kinds::of(target.kind).fill_defaults(&mut **object);
        let request = Attributes::of_create(context, &named);
        chain.mutate(&request, Some(object)).await?;
        let now = created.timestamp().unwrap_or_default();
        metadata::prepare_create(object.meta_mut(), target, now)?;
        if object.meta().name.is_empty() && generated_name {
            generate_name(&mut **object);
        }
        Ok(())
    }

    /// Lets webhooks change the body of a subresource that is created.
    ///
    /// # Errors
    /// If one of them denies it.
    pub(crate) async fn mutate_body<'r>(
        &'r self,
        context: &RequestContext,
        target: &Target,
        body: &mut Box<dyn Object>,
    ) -> Result<Chain<'r>, ApiError> {
        let mut chain = Chain::of(self, target).await?;
        let request = Attributes::of_create(context, target);
        match chain.mutate(&request, Some(body)).await {
            Ok(_) => Ok(chain),
            Err(error) => Err(chain.refused(error)),
        }
    }

    /// Lets policies and webhooks judge the body of a subresource that is created. Returns their warnings.
    ///
    /// # Errors
    /// If one of them denies it.
    pub(crate) async fn judge_body(
        &self,
        context: &RequestContext,
        target: &Target,
        body: &dyn Object,
        mut chain: Chain<'_>,
    ) -> Result<Vec<String>, ApiError> {
        let request = Attributes::of_create(context, target).with_object(Some(body));
        match chain.judge(&request).await {
            Ok(()) => Ok(chain.warnings),
            Err(error) => Err(chain.refused(error)),
        }
    }

    /// Answers a review.
    async fn review(
        &self,
        context: &RequestContext,
        target: &Target,
        object: Box<dyn Object>,
    ) -> Result<ObjectResponse, ApiError> {
        let mut object = expect_kind(object, target)?;
        let chain = self.mutate_body(context, target, &mut object).await?;
        let warnings = self.judge_body(context, target, &*object, chain).await?;
        let question = Question {
            context,
            target,
            registry: self,
        };
        if let Some(answering) = reviews::answer(target.served, &mut *object, &question) {
            answering.await?;
        }
        let mut response = ObjectResponse::not_stored(object, Revision::default());
        response.warnings = warnings;
        Ok(response)
    }

    /// Writes the object, with another generated name if its name exists.
    async fn insert(
        &self,
        context: &RequestContext,
        target: &mut Target,
        draft: Draft,
    ) -> Result<Inserted, ApiError> {
        let mut object = draft.object;
        take_revision(context, &mut *object)?;
        let mut cause = context.cause();
        draft.reservation.record_in(&mut cause);
        for _ in 0..if draft.generated_name {
            NAME_ATTEMPTS
        } else {
            1
        } {
            let converted = self.in_storage_version(target, &*object).await?;
            let stored = converted.as_deref().unwrap_or(&*object);
            let raw = stored.encode();
            let write_metrics = WriteMetrics::of(&*object, None, &mut cause);
            let value = envelope::of_object(stored, &raw, Some(&cause));
            stored_value::check(target, stored, &raw, &value, None).await?;
            let write = Write::create(target::path(target), value).fenced(context.fence.clone());
            let write = draft.reservation.apply_to(write);
            match self.insert_once(context, target, write).await? {
                Ok(revision) => {
                    write_metrics.count_unless(context.dry_run);
                    let at = (revision, Some(cause));
                    let response = self.written(object, converted, &raw, at).await;
                    return Ok(Inserted::Done(response));
                }
                Err(store::Error::PreconditionFailed) => return Ok(Inserted::Conflict(object)),
                Err(store::Error::Conflict { .. }) if draft.generated_name => {
                    generate_name(&mut *object);
                    target.name.clone_from(&object.meta().name);
                }
                Err(store::Error::Conflict { .. }) => break,
                Err(error) => return Err(self.write_error(error, target, context).await),
            }
        }
        let (kind, name) = (target.served, &target.name);
        Err(match draft.generated_name {
            true => errors::no_unique_name(kind, name),
            false => errors::already_exists(kind, name),
        })
    }

    async fn insert_once(
        &self,
        context: &RequestContext,
        target: &Target,
        write: Write,
    ) -> Result<Result<Revision, store::Error>, ApiError> {
        if !context.dry_run {
            return Ok(self.store.commit(write).await);
        }
        self.check_fence(target, context).await?;
        Ok(match self.store.get(&write.key).await? {
            None => Ok(Default::default()),
            current => Err(store::Error::Conflict { current }),
        })
    }
}

/// Clears the resourceVersion, which a new object may only have in a dry run. As upstream's, this is the last check.
fn take_revision(context: &RequestContext, object: &mut dyn Object) -> Result<(), ApiError> {
    let revision = std::mem::take(&mut object.meta_mut().resource_version);
    if revision.is_empty() || context.dry_run {
        return Ok(());
    }
    let message = "resourceVersion should not be set on objects to be created";
    Err(ApiError::new(Reason::BadRequest, message))
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
    fn a_generated_name_starts_with_its_prefix() {
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
