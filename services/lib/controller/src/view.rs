//! Views: the part of an object that an informer keeps.

use setpoint_model::Meta;
use setpoint_proto::Resource;

/// The part of an object that an informer keeps: small, total, and without a buffer shared with the wire.
pub trait View: Send + Sync + Sized + 'static {
    /// The kind as it travels.
    type Object: Resource;

    /// Keeps what matters.
    fn of(object: Self::Object) -> Self;
    /// Returns its metadata.
    fn meta(&self) -> &Meta;
    /// A value under which [`Reader::tagged`](crate::Reader::tagged) finds it, such as the node of a Pod.
    fn tag(&self) -> Option<&str> {
        None
    }
}

/// The view of those who need all of it, for kinds with few objects.
#[derive(Clone, Debug, PartialEq)]
pub struct Whole<T> {
    /// Its metadata.
    pub meta: Meta,
    /// All of it.
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
