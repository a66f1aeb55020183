//! The verb `update`: the whole object, its status, or its scale.

use setpoint_codec::Object;
use setpoint_kinds::validation::field_errors::FieldErrors;
use setpoint_kinds::validation::field_path::FieldPath;
use setpoint_kinds::validation::metadata;
use setpoint_kinds::{self as kinds, update};
use setpoint_model::Verb;
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::{ApiError, Reason};

use crate::registry::{
    ObjectResponse, Registry, RequestContext, Subresource, Target, errors, expect_kind,
};
use crate::request::Attributes;
use crate::request::audit::{Sent, own_write};
use crate::write::change::Change;
use crate::write::current::Current;
use crate::write::field_manager;
use crate::write::retry::Retry;
use crate::write::scale;

impl Registry {
    /// Replaces the object, or the part that the subresource covers. Creates an object that does not exist, if its kind
    /// says so.
    ///
    /// # Errors
    /// `Conflict` when the object has a resourceVersion or a uid that is not the current one, `NotFound`, `Invalid`, …
    pub async fn update(
        &self,
        context: &RequestContext,
        target: &Target,
        object: Box<dyn Object>,
    ) -> Result<ObjectResponse, ApiError> {
        match own_write(self.auditor(), &context.user, Verb::Update, target, || {
            Sent::Object(object.clone_box())
        }) {
            None => self.update_part(context, target, object).await,
            Some(write) => {
                write
                    .record(self.update_part(context, target, object))
                    .await
            }
        }
    }

    async fn update_part(
        &self,
        context: &RequestContext,
        target: &Target,
        object: Box<dyn Object>,
    ) -> Result<ObjectResponse, ApiError> {
        errors::check_writable(target)?;
        match target.subresource {
            Subresource::Scale => self.update_scale(context, target, object).await,
            Subresource::None if kinds::of(target.kind).creates_on_update() => {
                self.replace_or_create(context, target, object).await
            }
            part if part.is_request() => Err(errors::not_allowed()),
            _ => {
                let object = expect_kind(object, target)?;
                self.replace(context, target, object, |_, _| {}).await
            }
        }
    }

    /// Replaces an object, or creates it if it does not exist.
    async fn replace_or_create(
        &self,
        context: &RequestContext,
        target: &Target,
        sent: Box<dyn Object>,
    ) -> Result<ObjectResponse, ApiError> {
        let mut retry = Retry::begin();
        loop {
            let object = expect_kind(sent.clone_box(), target)?;
            match self.replace(context, target, object, |_, _| {}).await {
                Err(error) if error.reason == Reason::NotFound => {}
                result => return result,
            }
            match Box::pin(self.create_missing(context, target, sent.clone_box())).await {
                // Another request has just created it.
                Err(error) if error.reason == Reason::AlreadyExists => retry.wait().await?,
                result => return result,
            }
        }
    }

    /// Creates the object of an update. Its resourceVersion is not compared with anything, as upstream; its uid is.
    async fn create_missing(
        &self,
        context: &RequestContext,
        target: &Target,
        mut object: Box<dyn Object>,
    ) -> Result<ObjectResponse, ApiError> {
        self.authorize(context, &Attributes::of_target(Verb::Create, target))
            .await?;
        Precondition::of(&*object).check_uid(target, "")?;
        object.meta_mut().resource_version.clear();
        let created = self.create(context, target, object).await?;
        Ok(created.having_created())
    }

    /// Replaces the status of an object. Labels, annotations, owners and finalizers that `object` leaves empty are
    /// kept, so that controllers need not send them.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub async fn report_status(
        &self,
        context: &RequestContext,
        target: &Target,
        object: Box<dyn Object>,
    ) -> Result<ObjectResponse, ApiError> {
        match own_write(self.auditor(), &context.user, Verb::Update, target, || {
            Sent::Object(object.clone_box())
        }) {
            None => self.replace_status(context, target, object).await,
            Some(write) => {
                write
                    .record(self.replace_status(context, target, object))
                    .await
            }
        }
    }

    async fn replace_status(
        &self,
        context: &RequestContext,
        target: &Target,
        object: Box<dyn Object>,
    ) -> Result<ObjectResponse, ApiError> {
        errors::check_writable(target)?;
        let object = expect_kind(object, target)?;
        self.replace(context, target, object, metadata::keep_unset)
            .await
    }

    /// Replaces the object or its status, after `complete` has changed the new metadata according to the
    /// stored one.
    async fn replace(
        &self,
        context: &RequestContext,
        target: &Target,
        object: Box<dyn Object>,
        complete: impl Fn(&mut ObjectMeta, &ObjectMeta) + Send + Sync,
    ) -> Result<ObjectResponse, ApiError> {
        let precondition = Precondition::of(&*object);
        let mut mutate = |old: &Current, slot: &mut Option<Box<dyn Object>>| {
            precondition.check_revision_is_set(target)?;
            precondition.check(target, old)?;
            let new = slot.as_mut();
            let new = new.expect("the slot has the object of the request");
            complete(new.meta_mut(), old.object.meta());
            update::prepare(target, &*old.object, &mut **new)?;
            field_manager::updated(context, target.subresource, old, &mut **new);
            Ok(())
        };
        let change = Change {
            sent: Some(object),
            ..Change::update(target, 0)
        };
        let updated = self.change(context, target, change, &mut mutate).await?;
        updated.into_response().served_as(target.served)
    }

    async fn update_scale(
        &self,
        context: &RequestContext,
        target: &Target,
        object: Box<dyn Object>,
    ) -> Result<ObjectResponse, ApiError> {
        let replicas = scale::replicas_of(&*object, target)?;
        let precondition = Precondition::of(&*object);
        let written = target.written();
        let mut mutate = |old: &Current, slot: &mut Option<Box<dyn Object>>| {
            precondition.check(target, old)?;
            let new = slot.insert(old.object.clone_box());
            kinds::of(target.kind).set_replicas(&mut **new, replicas);
            update::prepare(&written, &*old.object, &mut **new)?;
            field_manager::updated(context, target.subresource, old, &mut **new);
            Ok(())
        };
        let updated = self
            .change(context, &written, Change::update(target, 0), &mut mutate)
            .await?;
        scale::response(updated.into_response())
    }
}

/// The uid and the revision that the current object must have. Empty fields are not compared.
pub(crate) struct Precondition {
    pub uid: String,
    pub revision: String,
}

impl Precondition {
    /// Returns the uid and the revision in the metadata of an object.
    pub(crate) fn of(object: &dyn Object) -> Self {
        let meta = object.meta();
        Self {
            uid: meta.uid.clone(),
            revision: meta.resource_version.clone(),
        }
    }

    /// Checks that there is a revision if the kind requires one; otherwise returns `Invalid`.
    fn check_revision_is_set(&self, target: &Target) -> Result<(), ApiError> {
        if self.names_revision() || kinds::of(target.kind).allows_unconditional_update() {
            return Ok(());
        }
        let path = FieldPath::root("metadata");
        let mut errors = FieldErrors::default();
        errors.invalid(
            &path.field("resourceVersion"),
            0,
            "must be specified for an update",
        );
        errors.into_result(target.served, &target.name)
    }

    /// Returns whether a revision is required. Clients send "0" for any revision.
    fn names_revision(&self) -> bool {
        !["", "0"].contains(&self.revision.as_str())
    }

    /// Checks the uid of the current object, which is empty if there is none; returns `Conflict` if it differs.
    fn check_uid(&self, target: &Target, uid: &str) -> Result<(), ApiError> {
        if self.uid.is_empty() || self.uid == uid {
            return Ok(());
        }
        let why = format!(
            "Precondition failed: UID in precondition: {}, UID in object meta: {uid}",
            self.uid
        );
        Err(errors::conflict(target, why))
    }

    /// Checks the current object; returns `Conflict` if it differs.
    pub(crate) fn check(&self, target: &Target, old: &Current) -> Result<(), ApiError> {
        self.check_uid(target, &old.object.meta().uid)?;
        if self.names_revision() && self.revision != old.revision.to_string() {
            return Err(errors::modified(target));
        }
        Ok(())
    }
}
