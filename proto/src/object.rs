//! The common interface of stored kinds.

use crate::meta::ObjectMeta;

/// An object that the gateway stores. Implemented for each kind from its options in the `.proto` files.
pub trait Resource:
    prost::Message + Clone + Default + PartialEq + Send + Sync + Unpin + 'static
{
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
}

/// A message with a kind: a stored object, or a body such as `DeleteOptions`.
pub trait Body: prost::Message + Default {
    /// Returns its metadata, if it has any.
    fn metadata(&self) -> Option<&ObjectMeta>;
    /// Returns its metadata.
    fn metadata_mut(&mut self) -> Option<&mut ObjectMeta>;
}
