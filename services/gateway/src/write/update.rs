//! The draft of an update: one attempt to change the current object.

use bytes::Bytes;
use setpoint_codec::{Object, envelope, fields};
use setpoint_kinds::{self as kinds, delete, update};
use setpoint_proto::ApiError;
use setpoint_store::{self as store, Write};

use crate::admission::pipeline::{Committed, Draft, Effect};
use crate::admission::{Attributes, Chain, Operation, Reservation};
use crate::offload::offload;
use crate::registry::target;
use crate::registry::{ObjectResponse, Registry, RequestContext, Subresource, Target, errors};
use crate::write::change::Change;
use crate::write::current::Current;
use crate::write::guaranteed_update::{Mutate, Updated};
use crate::write::scale;
use crate::write::stored_value;
use crate::write::write_metrics::WriteMetrics;

/// The result of one attempt.
pub(super) enum Attempt {
    Done(Updated),
    /// The commit failed because of another write: the current object, if the store returned it.
    Conflict(Option<Current>),
}

/// A change of the current object that has not been stored.
pub(super) struct Update<'a, 'm> {
    registry: &'a Registry,
    context: &'a RequestContext,
    /// The object that is written: the whole one for a scale.
    target: &'a Target,
    change: &'a Change<'a>,
    old: Current,
    /// The new object, once it is made.
    new: Option<Box<dyn Object>>,
    mutate: &'a mut Mutate<'m>,
    /// Whether policies or webhooks have changed it.
    mutated: bool,
    /// Warnings about what would be an error if the update changed it.
    forgiven: Vec<String>,
}

const MADE: &str = "the new object is made by the first step";

impl<'a, 'm> Update<'a, 'm> {
    pub(super) fn new(
        registry: &'a Registry,
        context: &'a RequestContext,
        target: &'a Target,
        change: &'a Change<'a>,
        old: Current,
        mutate: &'a mut Mutate<'m>,
    ) -> Self {
        Self {
            registry,
            context,
            target,
            change,
            old,
            new: None,
            mutate,
            mutated: false,
            forgiven: Vec::new(),
        }
    }

    /// Returns the size by which work on the object is offloaded.
    fn bytes(&self) -> usize {
        self.change.bytes.max(self.old.raw.len())
    }

    /// Returns the old and the new object as policies and webhooks see them. They see no new object of a deletion.
    fn forms(&self, target: &Target) -> Result<Forms, ApiError> {
        let new = match self.request().operation {
            Operation::Delete => None,
            _ => Some(in_form(target, self.object(), &self.old)?),
        };
        let old = in_form(target, &*self.old.object, &self.old)?;
        Ok(Forms { old, new })
    }

    /// Returns the request as policies and webhooks see it, without the new object.
    fn hooked_request<'f>(&'f self, old: &'f dyn Object) -> Option<Attributes<'f>> {
        let admission = self.change.admission.as_ref()?;
        Some(Attributes {
            target: admission.target,
            old: Some(old),
            ..self.request()
        })
    }

    /// Takes over what policies and webhooks have changed, as far as the request may change it.
    fn take(&mut self, target: &Target, form: Box<dyn Object>) -> Result<(), ApiError> {
        match target.subresource {
            Subresource::Scale => {
                let replicas = scale::replicas_of(&*form, target)?;
                let new = self.new.as_mut().expect(MADE);
                kinds::of(target.kind).set_replicas(&mut **new, replicas);
            }
            _ => self.new = Some(form),
        }
        self.mutated = true;
        Ok(())
    }
}

/// The objects of a request in its form.
struct Forms {
    old: Box<dyn Object>,
    new: Option<Box<dyn Object>>,
}

impl Draft for Update<'_, '_> {
    type Outcome = Result<Attempt, ApiError>;

    fn hooked(&self) -> Option<&Target> {
        let admission = self.change.admission.as_ref();
        admission.map(|admission| admission.target)
    }

    /// Also prepares it, since the manager of the request owns only what it may change.
    async fn set_defaults(&mut self) -> Result<(), ApiError> {
        let bytes = self.bytes();
        let mut slot = self.change.sent.as_ref().map(|sent| sent.clone_box());
        offload(bytes, || (self.mutate)(&self.old, &mut slot)).await?;
        let new = self
            .new
            .insert(slot.expect("`mutate` puts its result into the slot"));
        let (old, ownership) = (&*self.old.object, self.change.ownership);
        self.registry
            .settle_ownership(self.target, old, &mut **new, ownership)
            .await
    }

    fn request(&self) -> Attributes<'_> {
        attributes(self.context, self.target, self.change, &self.old)
    }

    fn object(&self) -> &dyn Object {
        &**self.new.as_ref().expect(MADE)
    }

    fn parts(&mut self) -> (Attributes<'_>, &mut dyn Object) {
        let request = attributes(self.context, self.target, self.change, &self.old);
        (request, &mut **self.new.as_mut().expect(MADE))
    }

    async fn mutate(&mut self, chain: &mut Chain<'_>) -> Result<(), ApiError> {
        let Some(target) = self.change.admission.as_ref().map(|one| one.target) else {
            return Ok(());
        };
        let mut forms = self.forms(target)?;
        let Some(request) = self.hooked_request(&*forms.old) else {
            return Ok(());
        };
        let changed = chain.mutate(&request, forms.new.as_mut()).await?;
        match forms.new.filter(|_| changed) {
            Some(form) => self.take(target, form),
            None => Ok(()),
        }
    }

    fn prepare(&mut self) -> Result<(), ApiError> {
        if let Some(admission) = self.change.admission.as_ref().filter(|_| self.mutated) {
            let new = self.new.as_mut().expect(MADE);
            update::prepare(&admission.target.written(), &*self.old.object, &mut **new)?;
            fields::keep_times(&*self.old.object, &mut **new);
        }
        Ok(())
    }

    async fn validate(&mut self) -> Result<(), ApiError> {
        if !self.change.validates && !self.mutated {
            return Ok(());
        }
        let Some(admission) = &self.change.admission else {
            return Ok(());
        };
        let (bytes, target) = (self.bytes(), admission.target.written());
        let new = self.new.as_mut().expect(MADE);
        let old = &*self.old.object;
        self.forgiven = offload(bytes, || update::validate(&target, old, &mut **new)).await?;
        Ok(())
    }

    async fn validate_by(&mut self, chain: &mut Chain<'_>) -> Result<(), ApiError> {
        let Some(admission) = &self.change.admission else {
            return Ok(());
        };
        let forms = self.forms(admission.target)?;
        match self.hooked_request(&*forms.old) {
            Some(request) => {
                chain
                    .validate(&request.with_object(forms.new.as_deref()))
                    .await
            }
            None => Ok(()),
        }
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = self.forgiven.clone();
        if let Some(admission) = &self.change.admission
            && admission.operation == Operation::Update
        {
            let (target, old) = (admission.target.written(), &*self.old.object);
            warnings.extend(update::warnings(&target, old, self.object()));
        }
        warnings
    }

    fn effect(&self) -> Effect {
        match delete::is_complete(self.object()) {
            true => Effect::Removes,
            false => Effect::Writes,
        }
    }

    async fn commit(mut self, reservation: Reservation) -> Committed<Self> {
        let new = self.new.take().expect(MADE);
        Committed::Ended(match delete::is_complete(&*new) {
            true => self.remove(new, &reservation).await,
            false => self.store(new, &reservation).await,
        })
    }
}

impl Update<'_, '_> {
    /// Writes the new object, unless it is encoded as the old one and stored as it would be now.
    async fn store(
        self,
        new: Box<dyn Object>,
        reservation: &Reservation,
    ) -> Result<Attempt, ApiError> {
        let (registry, context) = (self.registry, self.context);
        let converted = registry.in_storage_version(self.target, &*new).await?;
        let stored = converted.as_deref().unwrap_or(&*new);
        let raw = stored.encode();
        if raw == self.old.raw && !self.old.is_in_old_form {
            return self.keep(new, converted, &raw).await;
        }
        let mut cause = context.cause();
        reservation.record_in(&mut cause);
        let write_metrics = WriteMetrics::of(&*new, Some(&self.old), &mut cause);
        let value = envelope::of_object(stored, &raw, Some(&cause));
        stored_value::check(self.target, stored, &raw, &value, Some(&self.old)).await?;
        let revision = if context.dry_run {
            registry.check_fence(self.target, context).await?;
            self.old.revision
        } else {
            registry.link_update(context, &self.old, &*new).await;
            let write = Write::update(target::path(self.target), self.old.revision, value);
            let write = reservation.apply_to(write.fenced(context.fence.clone()));
            match registry.store().commit(write).await {
                Ok(revision) => revision,
                Err(error) => return self.retry_or_fail(error).await,
            }
        };
        write_metrics.count_unless(context.dry_run);
        let at = (revision, Some(cause));
        let response = registry.written(new, converted, &raw, at).await;
        Ok(Attempt::Done(Updated::Stored(response)))
    }

    /// Writes nothing, since nothing changes. A cached object may be stale, so that this may be a change of the stored
    /// one.
    async fn keep(
        self,
        new: Box<dyn Object>,
        converted: Option<Box<dyn Object>>,
        raw: &Bytes,
    ) -> Result<Attempt, ApiError> {
        let (registry, old) = (self.registry, self.old);
        if !old.is_live {
            let live = registry.live(self.target).await?;
            if live.raw != raw || live.is_in_old_form {
                return Ok(Attempt::Conflict(Some(live)));
            }
        }
        registry.check_fence(self.target, self.context).await?;
        let at = (old.revision, old.cause);
        let response = registry.written(new, converted, raw, at).await;
        Ok(Attempt::Done(Updated::Stored(response)))
    }

    /// Removes the object.
    async fn remove(
        self,
        new: Box<dyn Object>,
        reservation: &Reservation,
    ) -> Result<Attempt, ApiError> {
        let (registry, context, target) = (self.registry, self.context, self.target);
        let cause = context.cause();
        let revision = if context.dry_run {
            registry.check_fence(target, context).await?;
            self.old.revision
        } else {
            let write = Write::delete(target::path(target), self.old.revision);
            let write = write.fenced(context.fence.clone()).because(cause.clone());
            match registry.store().commit(reservation.apply_to(write)).await {
                Ok(revision) => revision,
                Err(error) => return self.retry_or_fail(error).await,
            }
        };
        WriteMetrics::of_removal(target.kind, &cause).count_unless(context.dry_run);
        let raw = new.encode();
        let response = ObjectResponse::written(new, &raw, revision, Some(cause));
        Ok(Attempt::Done(Updated::Deleted(response)))
    }

    /// Turns a conflict into another attempt; returns any other error.
    async fn retry_or_fail(self, error: store::Error) -> Result<Attempt, ApiError> {
        let target = self.target;
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
            other => Err(self.registry.write_error(other, target, self.context).await),
        }
    }
}

/// Returns the request as plugins see it, without the new object.
fn attributes<'a>(
    context: &'a RequestContext,
    target: &'a Target,
    change: &'a Change<'_>,
    old: &'a Current,
) -> Attributes<'a> {
    let admission = change.admission.as_ref();
    Attributes {
        context,
        target,
        subresource: admission
            .map_or(target, |admission| admission.target)
            .subresource,
        operation: admission.map_or(Operation::Update, |admission| admission.operation),
        object: None,
        old: Some(&*old.object),
        old_cause: old.cause.as_ref(),
        options: admission.and_then(|admission| admission.options),
        is_admitted: admission.is_none(),
    }
}

/// Returns an object as a request sees it: the scale for that subresource, and with the revision of the current object.
fn in_form(
    target: &Target,
    object: &dyn Object,
    current: &Current,
) -> Result<Box<dyn Object>, ApiError> {
    let mut object = object.clone_box();
    object.meta_mut().resource_version = current.revision.to_string();
    Ok(match target.subresource {
        Subresource::Scale => Box::new(scale::of(&*object)?),
        _ => object,
    })
}
