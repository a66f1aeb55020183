//! Custom kinds: the versions of custom resources, which CustomResourceDefinitions declare while the gateway runs.
//!
//! ```text
//! CustomResourceDefinition ─▶ Resource ─▶ CustomKinds ── published ──▶ KindTable ◀── lookups by name
//!                              │ versions: &'static Kind, each with its present Definition
//! ```
//! A [`Kind`](crate::Kind) stands for its names, which never change, and is never freed. Everything else of a
//! definition is replaced when the definition is, and freed when nothing uses it any more.
//!
//! * The store's cache follows definitions in the order of its log, so that an object and the definition that it was
//!   written under are never seen in the wrong order; `cache.kinds()` are the kinds at its revision. Watches of a kind
//!   that is deleted get its last events and then expire.
//! * An object is typed metadata and JSON ([`CustomObject`]); in etcd it is JSON in the usual envelope, as Kubernetes
//!   writes it.
//! * A request is processed in the version that it names: defaults, patches, validation, apply. At both edges the
//!   gateway converts the object from and to the version that is stored, by name or by a webhook. What needs only
//!   metadata converts nothing: deletions go on while a webhook is broken.
//! * `setpoint-schema` prunes, sets defaults and validates. The gateway accepts names, establishes definitions, and
//!   deletes the objects of a deleted one.

mod object;
mod resource;
mod table;

use prost_reflect::MessageDescriptor;

pub(crate) use object::encode_json;

pub use object::CustomObject;
pub use resource::{Conversion, Resource, ScalePaths, Version};
pub use table::{CustomKinds, KindTable, Undeclarable};

/// The message that objects of custom kinds are encoded as.
const MESSAGE: &str = "setpoint.v1.CustomObject";

/// Returns the descriptor of the message that objects of custom kinds are encoded as.
pub(crate) fn message() -> MessageDescriptor {
    crate::kinds::pool()
        .get_message_by_name(MESSAGE)
        .expect("objects.proto declares it")
}
