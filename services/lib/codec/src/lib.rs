//! The table of kinds, the JSON and protobuf of objects, the storage envelope, strict checks and patches.
//!
//! All of it is driven by the descriptors of `setpoint-proto`: adding a kind there adds it here. The JSON code of all
//! kinds is monomorphized in this crate only, which saves compile time.

pub mod custom;
mod definition;
mod depth;
pub mod diff;
pub mod envelope;
mod error;
pub mod fields;
mod groups;
mod json_error;
mod kind;
mod kinds;
mod list;
mod nesting;
mod object;
pub mod patch;
pub mod rest;
pub mod rules;
pub mod strict;

pub use custom::{CustomKinds, CustomObject, KindTable};
pub use definition::{Column, Definition, Selectable};
pub use depth::{MAX_DEPTH, MAX_OBJECT_DEPTH, depth};
pub use diff::{Difference, diff};
pub use error::Error;
pub use groups::group_rank;
pub use kind::Kind;
pub use kinds::{Kinds, kind_of, kinds};
pub use list::EncodedList;
pub use object::Object;
