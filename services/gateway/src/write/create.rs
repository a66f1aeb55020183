//! The draft of a new object.

use jiff::Timestamp;
use setpoint_codec::{Object, envelope};
use setpoint_kinds::validation::metadata;
use setpoint_kinds::{self as kinds, Strategy, create};
use setpoint_model::{Revision, names};
use setpoint_proto::{ApiError, Reason};
use setpoint_store::{self as store, Write};

use crate::admission::pipeline::{Committed, Draft, Effect};
use crate::admission::{Attributes, Chain, Reservation};
use crate::registry::target;
use crate::registry::{ObjectResponse, Registry, RequestContext, Target, errors};
use crate::write::field_manager;
use crate::write::retry::Retry;
use crate::write::stored_value;
use crate::write::write_metrics::WriteMetrics;

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

/// A new object that has not been stored.
pub(crate) struct Create<'a> {
    registry: &'a Registry,
    context: &'a RequestContext,
    /// The target of the request, whose name may be empty.
    of: &'a Target,
    /// The target of the object.
    target: Target,
    object: Box<dyn Object>,
    owner: Owner,
    /// Whether the name is generated, so that a name that exists is replaced by another.
    generated_name: bool,
    retry: Retry,
}

/// The result of one attempt to insert the object.
enum Inserted<'a> {
    Done(ObjectResponse),
    /// A precondition failed.
    Conflict(Create<'a>),
}

impl<'a> Create<'a> {
    /// Returns the draft of an object in the form that requests are processed in.
    pub(crate) fn new(
        registry: &'a Registry,
        context: &'a RequestContext,
        of: &'a Target,
        object: Box<dyn Object>,
        owner: Owner,
    ) -> Self {
        Self {
            registry,
            context,
            of,
            target: of.clone(),
            object,
            owner,
            generated_name: false,
            retry: Retry::begin(),
        }
    }

    fn rules(&self) -> &'static dyn Strategy {
        kinds::of(self.of.kind)
    }

    fn follow_name(&mut self) {
        self.target.name.clone_from(&self.object.meta().name);
    }
}

impl Draft for Create<'_> {
    type Outcome = Result<ObjectResponse, ApiError>;

    fn hooked(&self) -> Option<&Target> {
        Some(self.of)
    }

    async fn set_defaults(&mut self) -> Result<(), ApiError> {
        metadata::prepare_create(self.object.meta_mut(), self.of, Timestamp::now())?;
        let meta = self.object.meta();
        self.generated_name = meta.name.is_empty() && !meta.generate_name.is_empty();
        if self.generated_name {
            generate_name(&mut *self.object);
        }
        // Upstream sets them when it decodes a request, so the manager owns them, and admission sees them.
        self.rules().fill_defaults(&mut *self.object);
        if self.owner == Owner::Creator {
            field_manager::created(self.context, &mut *self.object);
        }
        self.follow_name();
        self.rules()
            .set_requester(&mut *self.object, &self.context.user);
        Ok(())
    }

    fn request(&self) -> Attributes<'_> {
        Attributes::of_create(self.context, &self.target)
    }

    fn object(&self) -> &dyn Object {
        &*self.object
    }

    fn parts(&mut self) -> (Attributes<'_>, &mut dyn Object) {
        let request = Attributes::of_create(self.context, &self.target);
        (request, &mut *self.object)
    }

    /// Policies and webhooks see an object that has defaults, but no identity yet.
    async fn mutate(&mut self, chain: &mut Chain<'_>) -> Result<(), ApiError> {
        let meta = self.object.meta_mut();
        let created = meta.creation_timestamp;
        (meta.uid, meta.creation_timestamp) = Default::default();
        if self.generated_name {
            meta.name.clear();
        }
        self.follow_name();
        self.rules().fill_defaults(&mut *self.object);
        let request = Attributes::of_create(self.context, &self.target);
        chain.mutate(&request, Some(&mut self.object)).await?;
        let now = created.timestamp().unwrap_or_default();
        metadata::prepare_create(self.object.meta_mut(), self.of, now)?;
        if self.object.meta().name.is_empty() && self.generated_name {
            generate_name(&mut *self.object);
        }
        self.follow_name();
        Ok(())
    }

    fn prepare(&mut self) -> Result<(), ApiError> {
        target::set_span_attributes(&self.target);
        create::prepare(&self.target, &mut *self.object);
        Ok(())
    }

    async fn validate(&mut self) -> Result<(), ApiError> {
        create::validate(&self.target, &mut *self.object)?;
        let object = &*self.object;
        self.registry.link_create(self.context, object).await;
        Ok(())
    }

    async fn validate_by(&mut self, chain: &mut Chain<'_>) -> Result<(), ApiError> {
        let request = self.request().with_object(Some(&*self.object));
        chain.validate(&request).await
    }

    fn warnings(&self) -> Vec<String> {
        create::warnings(&self.target, &*self.object)
    }

    fn effect(&self) -> Effect {
        Effect::Writes
    }

    async fn commit(self, mut reservation: Reservation) -> Committed<Self> {
        let requested = reservation.requested.take();
        let mut draft = match self.insert(&reservation).await {
            Ok(Inserted::Conflict(draft)) => draft,
            Ok(Inserted::Done(response)) => return Committed::Ended(Ok(response)),
            Err(error) => return Committed::Ended(Err(error)),
        };
        // Others wait for its locks.
        drop(reservation);
        if let Some(requested) = requested {
            draft.object = requested;
        }
        match draft.retry.wait().await {
            Ok(()) => Committed::Again(draft),
            Err(error) => Committed::Ended(Err(error)),
        }
    }
}

impl<'a> Create<'a> {
    /// Writes the object, with another generated name if its name exists.
    async fn insert(mut self, reservation: &Reservation) -> Result<Inserted<'a>, ApiError> {
        take_revision(self.context, &mut *self.object)?;
        let mut cause = self.context.cause();
        reservation.record_in(&mut cause);
        for _ in 0..self.attempts() {
            let converted = self
                .registry
                .in_storage_version(&self.target, &*self.object)
                .await?;
            let stored = converted.as_deref().unwrap_or(&*self.object);
            let raw = stored.encode();
            let write_metrics = WriteMetrics::of(&*self.object, None, &mut cause);
            let value = envelope::of_object(stored, &raw, Some(&cause));
            stored_value::check(&self.target, stored, &raw, &value, None).await?;
            let write = Write::create(target::path(&self.target), value);
            let write = reservation.apply_to(write.fenced(self.context.fence.clone()));
            match self.insert_once(write).await? {
                Ok(revision) => {
                    write_metrics.count_unless(self.context.dry_run);
                    let (registry, at) = (self.registry, (revision, Some(cause)));
                    let response = registry.written(self.object, converted, &raw, at).await;
                    return Ok(Inserted::Done(response));
                }
                Err(store::Error::PreconditionFailed) => return Ok(Inserted::Conflict(self)),
                Err(store::Error::Conflict { .. }) if self.generated_name => {
                    generate_name(&mut *self.object);
                    self.follow_name();
                }
                Err(store::Error::Conflict { .. }) => break,
                Err(error) => {
                    let (target, context) = (&self.target, self.context);
                    return Err(self.registry.write_error(error, target, context).await);
                }
            }
        }
        Err(self.exists())
    }

    fn attempts(&self) -> usize {
        match self.generated_name {
            true => NAME_ATTEMPTS,
            false => 1,
        }
    }

    fn exists(&self) -> ApiError {
        let (kind, name) = (self.target.served, &self.target.name);
        match self.generated_name {
            true => errors::no_unique_name(kind, name),
            false => errors::already_exists(kind, name),
        }
    }

    async fn insert_once(&self, write: Write) -> Result<Result<Revision, store::Error>, ApiError> {
        let store = self.registry.store();
        if !self.context.dry_run {
            return Ok(store.commit(write).await);
        }
        self.registry
            .check_fence(&self.target, self.context)
            .await?;
        Ok(match store.get(&write.key).await? {
            None => Ok(Default::default()),
            current => Err(store::Error::Conflict { current }),
        })
    }
}

fn generate_name(object: &mut dyn Object) {
    let meta = object.meta_mut();
    meta.name = names::child(&meta.generate_name, &names::suffix(rand::random()));
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
