//! Which objects are meant: by their labels, or by their fields.

mod fields;
mod labels;
mod parse;

pub use fields::{Comparison, FieldRequirement, Fields};
pub use labels::Selector;

/// The text or message is no selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);
