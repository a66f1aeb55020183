//! Label selectors and field selectors.

mod fields;
mod labels;
mod parse;

pub use fields::{Comparison, FieldRequirement, Fields};
pub use labels::Selector;

/// The error of an invalid selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// The maximum length of a selector, in bytes. URLs do not fit longer ones.
const MAX_BYTES: usize = 64 << 10;
/// The maximum number of requirements of a selector. Each object of a list is compared with all of them.
const MAX_REQUIREMENTS: usize = 256;

/// Rejects selectors that are too long. Upstream limits the length of URLs instead.
fn check_length(text: &str) -> Result<(), Error> {
    match text.len() {
        0..=MAX_BYTES => Ok(()),
        _ => Err(Error(format!(
            "invalid selector: Too long: may not be more than {MAX_BYTES} bytes"
        ))),
    }
}

/// Rejects selectors with too many requirements.
fn check_requirements(count: usize) -> Result<(), Error> {
    match count {
        0..=MAX_REQUIREMENTS => Ok(()),
        _ => Err(Error(format!(
            "invalid selector: Too many: {count}: must have at most {MAX_REQUIREMENTS} requirements"
        ))),
    }
}
