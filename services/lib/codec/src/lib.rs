//! Every kind by name: JSON in and out, the storage envelope, strict checking and patches.
//!
//! Everything here is read from the descriptors of `setpoint-proto`; adding a kind there adds it here.
//! JSON is monomorphised in this crate alone, so no other crate pays for it twice.

pub mod diff;
pub mod envelope;
mod error;
mod explain;
mod kind;
mod kinds;
mod object;
pub mod patch;
pub mod rules;
pub mod strict;

pub use diff::{Difference, diff};
pub use error::Error;
pub use kind::{Column, Kind, Selectable};
pub use kinds::{Kinds, kinds};
pub use object::Object;
