//! The verb `delete`.

use setpoint_kinds::delete;
use setpoint_model::Target;
use setpoint_proto::meta::{DeleteOptions, Preconditions};
use setpoint_proto::{ApiError, Reason, Resource};

use crate::objects::check;
use crate::{Objects, Stored};

impl Objects {
    /// Deletes an object, or begins its deletion if finalizers or a grace period keep it.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn delete<T: Stored>(&mut self, name: &str) -> Result<(), ApiError> {
        self.delete_with_options::<T>(name, &DeleteOptions::default())
    }

    /// Deletes an object without a grace period, as the agent of a node does once all containers have stopped.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn delete_now<T: Stored>(&mut self, name: &str) -> Result<(), ApiError> {
        let options = DeleteOptions {
            grace_period_seconds: Some(0),
            ..DeleteOptions::default()
        };
        self.delete_with_options::<T>(name, &options)
    }

    /// Deletes the version that was observed. Succeeds if the object is gone already.
    ///
    /// # Errors
    /// `Conflict` if it has changed since.
    pub fn delete_unchanged<T: Stored>(&mut self, seen: &Target) -> Result<(), ApiError> {
        self.delete_seen::<T>(seen, None)
    }

    /// Is [`Self::delete_unchanged`] with a propagation policy.
    ///
    /// # Errors
    /// `Conflict` if it has changed since.
    pub fn delete_unchanged_with<T: Stored>(
        &mut self,
        seen: &Target,
        propagation: &str,
    ) -> Result<(), ApiError> {
        self.delete_seen::<T>(seen, Some(propagation.to_owned()))
    }

    fn delete_seen<T: Stored>(
        &mut self,
        seen: &Target,
        propagation_policy: Option<String>,
    ) -> Result<(), ApiError> {
        let options = DeleteOptions {
            preconditions: Some(Preconditions {
                uid: Some(seen.uid.clone()),
                resource_version: Some(seen.revision.to_string()),
            }),
            propagation_policy,
            ..DeleteOptions::default()
        };
        match self.delete_with_options::<T>(&seen.key.name, &options) {
            Err(error) if error.reason == Reason::NotFound => Ok(()),
            result => result,
        }
    }

    /// Deletes an object as these options say.
    ///
    /// # Errors
    /// `NotFound`, or `Conflict` if a precondition fails.
    pub fn delete_with_options<T: Stored>(
        &mut self,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<(), ApiError> {
        let old: T = self.existing(name)?;
        let wanted = options.preconditions.clone().unwrap_or_default();
        let uid = wanted.uid.unwrap_or_default();
        let revision = wanted.resource_version.unwrap_or_default();
        check::<T>(Resource::meta(&old), &uid, &revision)?;
        let mut new = old.clone();
        delete::begin_or_shorten(&mut new, options, self.now);
        self.store(&old, new)
    }
}
