//! Creating objects in namespaces that may not be there yet.

use setpoint_proto::core::Namespace;
use setpoint_proto::{ApiError, Reason, Resource};

use super::Client;
use crate::Written;

impl Client {
    /// Creates an object, and its namespace first if that is missing.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub async fn create_with_namespace<T: Resource>(
        &self,
        object: &T,
    ) -> Result<Written<T>, ApiError> {
        match self.create(object).await {
            Err(error) if error.reason == Reason::NotFound => {
                self.create_namespace(&object.meta().namespace).await?;
                self.create(object).await
            }
            answer => answer,
        }
    }

    async fn create_namespace(&self, name: &str) -> Result<(), ApiError> {
        let mut namespace = Namespace::default();
        name.clone_into(&mut namespace.metadata.name);
        match self.create(&namespace).await {
            Err(error) if error.reason != Reason::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }
}
