//! The common interface of stored kinds.

use std::convert::Infallible;

use serde::{Serialize, Serializer};

use crate::meta::{ObjectMeta, PartialObjectMetadata};

/// An object that the gateway stores. Implemented for each kind from its options in the `.proto` files.
pub trait Resource:
    prost::Message + Clone + Default + PartialEq + Send + Sync + Unpin + 'static
{
    /// Its status; [`Infallible`] for a kind without one.
    type Status: Send + Sync + 'static;

    /// The kind, for example `Deployment`.
    const KIND: &'static str;
    /// The apiVersion, for example `apps/v1`.
    const API_VERSION: &'static str;
    /// The plural with the group, for example `deployments.apps`.
    const RESOURCE: &'static str;
    /// The type URL in an [`Any`](crate::Any).
    const TYPE_URL: &'static str;

    /// Returns its metadata.
    fn meta(&self) -> &ObjectMeta;
    /// Returns its metadata.
    fn meta_mut(&mut self) -> &mut ObjectMeta;
    /// Sets its status.
    fn set_status(&mut self, status: Self::Status);
}

/// The metadata of an object whose kind is known at run time only.
impl Resource for PartialObjectMetadata {
    type Status = Infallible;

    const KIND: &'static str = "PartialObjectMetadata";
    const API_VERSION: &'static str = "meta.k8s.io/v1";
    const RESOURCE: &'static str = "partialobjectmetadata.meta.k8s.io";
    const TYPE_URL: &'static str = "type.googleapis.com/k8s.meta.v1.PartialObjectMetadata";

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }

    fn set_status(&mut self, status: Infallible) {
        match status {}
    }
}

/// A message with a kind: a stored object, or a body such as `DeleteOptions`.
pub trait Body: prost::Message + Default {
    /// Returns its metadata, if it has any.
    fn metadata(&self) -> Option<&ObjectMeta>;
    /// Returns its metadata.
    fn metadata_mut(&mut self) -> Option<&mut ObjectMeta>;
}

/// Serializes a list of objects with kind and version.
pub(crate) fn typed_list<T: Resource + Serialize, S: Serializer>(
    objects: &[T],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Typed<'a, T> {
        kind: &'static str,
        #[serde(rename = "apiVersion")]
        api_version: &'static str,
        #[serde(flatten)]
        object: &'a T,
    }
    serializer.collect_seq(objects.iter().map(|object| Typed {
        kind: T::KIND,
        api_version: T::API_VERSION,
        object,
    }))
}
