//! Custom kinds: the versions of custom resources, which CustomResourceDefinitions declare while the gateway runs.
//!
//! ```text
//! CustomResourceDefinition ─▶ Resource ─▶ CustomKinds ── published ──▶ KindTable ◀── lookups by name
//!                              │ versions: &'static Kind, each with its present Definition
//! ```
//! A [`Kind`](crate::Kind) stands for its names, which never change, and is never freed. Everything else of a definition is
//! replaced when the definition is, and freed when nothing uses it any more.

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
