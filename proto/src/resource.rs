//! The common interface of stored kinds.

use crate::meta::ObjectMeta;

/// An object that the gateway stores. Implemented for each kind from its options in the `.proto` files.
pub trait Resource:
    prost::Message + Clone + Default + PartialEq + Send + Sync + Unpin + 'static
{
    /// As in `kind:`, for example `Deployment`.
    const KIND: &'static str;
    /// As in `apiVersion:`, for example `apps/v1`.
    const API_VERSION: &'static str;
    /// The plural with its group, for example `deployments.apps`.
    const RESOURCE: &'static str;
    /// The name of its type in an [`Any`](crate::Any).
    const TYPE_URL: &'static str;

    /// Its identity.
    fn meta(&self) -> &ObjectMeta;
    /// Its identity, to be changed.
    fn meta_mut(&mut self) -> &mut ObjectMeta;
}

/// A message that has a kind and may stand alone in a request: a stored object, or a body such as `DeleteOptions`.
pub trait Body: prost::Message + Default {
    /// Its identity, if it has one.
    fn metadata(&self) -> Option<&ObjectMeta>;
    /// Its identity, to be changed.
    fn metadata_mut(&mut self) -> Option<&mut ObjectMeta>;
}
