//! The reasons why a value cannot be sealed or opened, in upstream's words.

use std::sync::Arc;

/// The reason why a value cannot be sealed or opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The value was sealed by a provider that the configuration does not name, or is in plain text and the
    /// configuration does not name the provider `identity`.
    #[error("no matching prefix found")]
    NoProvider,
    /// The value was sealed with a key that the provider does not have.
    #[error("no matching key was found for the provided {0} transformer")]
    NoKey(&'static str),
    /// The value is shorter than what each one has that was sealed.
    #[error("the stored data was shorter than the required size")]
    TooShort,
    /// The key is another one, or the value was changed or copied from another object.
    #[error("message authentication failed")]
    Authentication,
    /// The value does not consist of blocks.
    #[error("the stored data is not a multiple of the block size")]
    BlockSize,
    /// The key is another one, or the value was changed.
    #[error("invalid padding on input")]
    Padding,
    /// Several providers could have sealed the value, and none can open it.
    #[error("[{}]", .0.iter().map(Self::to_string).collect::<Vec<_>>().join(", "))]
    Several(Vec<Self>),
    /// The provider of keys does not answer, or refuses.
    #[error("{0}")]
    Kms(Arc<str>),
}

impl Error {
    /// Returns one error for all; `none` if there are none.
    pub(crate) fn of_all(mut errors: Vec<Self>, none: Self) -> Self {
        match errors.len() {
            0 => none,
            1 => errors.remove(0),
            _ => Self::Several(errors),
        }
    }
}
