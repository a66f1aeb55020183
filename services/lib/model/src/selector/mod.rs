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

/// The longest text that is read, in bytes: no longer one fits in a URL.
const MAX_BYTES: usize = 64 << 10;
/// The most requirements of a selector. Each object of a list is compared with all of them.
const MAX_REQUIREMENTS: usize = 256;

/// Refuses texts that are too long to be read. Upstream has no such limit of its own, but one for URLs.
fn check_length(text: &str) -> Result<(), Error> {
    match text.len() {
        0..=MAX_BYTES => Ok(()),
        _ => Err(Error(format!(
            "invalid selector: Too long: may not be more than {MAX_BYTES} bytes"
        ))),
    }
}

/// Refuses selectors that are too much work for every object.
fn check_requirements(count: usize) -> Result<(), Error> {
    match count {
        0..=MAX_REQUIREMENTS => Ok(()),
        _ => Err(Error(format!(
            "invalid selector: Too many: {count}: must have at most {MAX_REQUIREMENTS} requirements"
        ))),
    }
}
