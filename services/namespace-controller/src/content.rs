//! The content of a namespace, of all kinds.

use std::fmt;

use setpoint_model::Key;
use setpoint_proto::Resource as _;
use setpoint_proto::core::Pod;
use setpoint_proto::setpoint::{ObjectMetadata, ObjectRef};

/// An object in a namespace. Ordered by kind, then by name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    /// The plural of its kind with the group.
    pub resource: String,
    /// Namespace and name.
    pub key: Key,
    /// The uid; empty if the object cannot be read.
    pub uid: String,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// The finalizers that hold it then.
    pub finalizers: Vec<String>,
}

/// Writes kind and key only, since plans are printed for users.
impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.resource, self.key)
    }
}

impl Item {
    /// Returns the item of an object.
    pub fn of(object: ObjectMetadata) -> Self {
        let meta = object.metadata;
        Self {
            resource: object.resource,
            key: Key::of(&meta),
            uid: meta.uid,
            deleting: meta.deletion_timestamp.is_some(),
            finalizers: meta.finalizers,
        }
    }

    /// Returns whether it is a Pod.
    pub fn is_pod(&self) -> bool {
        self.resource == Pod::RESOURCE
    }

    /// Returns a reference to it.
    pub fn reference(&self) -> ObjectRef {
        self.key.clone().in_resource(&self.resource)
    }
}

/// The content of a namespace, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Content {
    /// It could not be read.
    #[default]
    Unread,
    /// There is no such namespace any more, or another one of its name.
    Foreign,
    /// The namespace had this content.
    Known(Vec<Item>),
}

/// Failed deletions of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// The number of failures in a row.
    pub times: u32,
    /// The message of the last one.
    pub message: String,
}
