//! Views: the part of an object that an informer keeps.
//!
//! 2026-11: we chose a type with few fields for each controller over whole objects (client-go), because a decision then
//! shows what it depends on, and a process with twenty informers stays small. Wrong if controllers write whole objects:
//! they patch, or read the object before they write it.

use setpoint_model::Meta;
use setpoint_proto::Resource;

/// The part of an object that an informer keeps: small, total, and without a buffer shared with the wire.
pub trait View: Send + Sync + Sized + 'static {
    /// The message of the kind.
    type Object: Resource;

    /// Returns the view of an object.
    fn of(object: Self::Object) -> Self;
    /// Returns the metadata.
    fn meta(&self) -> &Meta;
    /// Returns a value under which [`Reader::tagged`](crate::Reader::tagged) finds the object, such as the node of a
    /// Pod.
    fn tag(&self) -> Option<&str> {
        None
    }
}

/// Returns the namespace of an object without a controller: the tag by which
/// [`Reader::candidates`](crate::Reader::candidates) finds it.
pub fn orphan_tag(meta: &Meta) -> Option<&str> {
    meta.owner.is_none().then_some(&meta.key.namespace)
}

/// A view that keeps the whole object, for kinds with few objects.
#[derive(Clone, Debug, PartialEq)]
pub struct Whole<T> {
    /// The metadata.
    pub meta: Meta,
    /// The whole object.
    pub object: T,
}

impl<T: Resource> View for Whole<T> {
    type Object = T;

    fn of(object: T) -> Self {
        Self {
            meta: Meta::of(object.meta()),
            object,
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}
