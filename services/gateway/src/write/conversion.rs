//! Custom objects of a write in the version of the request, and in the one that is stored.

use bytes::Bytes;
use setpoint_codec::Object;
use setpoint_codec::fields::{self, ApplyError};
use setpoint_kinds::custom;
use setpoint_model::Revision;
use setpoint_proto::{ApiError, Cause, Reason};

use crate::converter::{downcast, only};
use crate::registry::{ObjectResponse, Registry, Target};
use crate::write::current::Current;

/// The treatment, by a write, of fields whose managers have recorded them in another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// It takes those that it changes.
    Taken,
    /// It fails if it changes one of them.
    Checked,
}

impl Registry {
    /// Returns the response to a write of `new`, which was stored as `stored` if that has another version. As upstream,
    /// it is what a read returns. If that cannot be converted any more, it is the object of the write, which has been
    /// done.
    pub(crate) async fn written(
        &self,
        new: Box<dyn Object>,
        stored: Option<Box<dyn Object>>,
        raw: &Bytes,
        (revision, cause): (Revision, Option<Cause>),
    ) -> ObjectResponse {
        let Some(stored) = stored else {
            return ObjectResponse::written(new, raw, revision, cause);
        };
        let response = ObjectResponse::written(stored, raw, revision, cause.clone());
        match self.response_in_version(response, new.kind()).await {
            Ok(response) => response,
            Err(_) => {
                let raw = new.encode();
                ObjectResponse::written(new, &raw, revision, cause)
            }
        }
    }

    /// Returns the current object in the form that a request processes it in.
    ///
    /// # Errors
    /// `InternalError` if the conversion fails.
    pub(crate) async fn current_in_form(
        &self,
        target: &Target,
        mut current: Current,
    ) -> Result<Current, ApiError> {
        let form = target.form();
        let is_other = form.is_custom() && current.object.kind() != form;
        if target.keeps_version || !is_other {
            return Ok(current);
        }
        current.object = self
            .converter()
            .one_of_storage(current.object, form)
            .await?;
        Ok(current)
    }

    /// Returns a new object in the version that is stored, if that is not its own.
    ///
    /// # Errors
    /// `InternalError` if the conversion fails.
    pub(crate) async fn in_storage_version(
        &self,
        target: &Target,
        new: &dyn Object,
    ) -> Result<Option<Box<dyn Object>>, ApiError> {
        let stored = new.kind().stored();
        if target.keeps_version || !new.kind().is_custom() || *stored == *new.kind() {
            return Ok(None);
        }
        let objects = downcast(new.clone_box()).into_iter().collect();
        let converted = self.converter().convert(objects, stored).await?;
        let mut object = only(converted, stored)?;
        custom::prune(&mut object);
        Ok(Some(Box::new(object)))
    }

    /// Takes the fields that a write changes from managers that have recorded them in versions to which a webhook
    /// converts.
    ///
    /// # Errors
    /// `InternalError` if the conversion fails, `Conflict` if the write may not take them.
    pub(crate) async fn settle_ownership(
        &self,
        target: &Target,
        old: &dyn Object,
        new: &mut dyn Object,
        ownership: Ownership,
    ) -> Result<(), ApiError> {
        if target.keeps_version || !new.kind().is_custom() {
            return Ok(());
        }
        let versions = fields::other_versions(new);
        if versions.is_empty() || fields::document(old) == fields::document(new) {
            return Ok(());
        }
        for version in versions {
            let both = [old.clone_box(), new.clone_box()];
            let both = both.into_iter().filter_map(downcast).collect();
            let both = self.converter().convert(both, version).await?;
            let [was, is] = both.as_slice() else { continue };
            let settled = fields::settle(new, was, is, ownership == Ownership::Checked);
            settled.map_err(|error| match error {
                ApplyError::Conflicts(conflicts) => conflicts.into(),
                ApplyError::Malformed(why) | ApplyError::Unfit(why) => {
                    ApiError::new(Reason::InternalError, why)
                }
            })?;
        }
        Ok(())
    }
}
