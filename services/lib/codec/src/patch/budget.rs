//! The work that one patch may take.

use super::Error;

/// Bytes of list entries that a strategic merge patch may have compared. Merging a document of the largest size into
/// itself compares about 12 MiB.
const MAX_COMPARED: usize = 32 << 20;

/// What is left of the work that one strategic merge patch may take: the entries of one list can be merged as often as
/// the patch repeats the key of the object around it.
pub(super) struct Budget {
    bytes: usize,
}

impl Budget {
    pub fn new() -> Self {
        Self {
            bytes: MAX_COMPARED,
        }
    }

    /// Takes the bytes that tell the entries of a list apart.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when there is not enough left.
    pub fn spend(&mut self, bytes: usize) -> Result<(), Error> {
        match self.bytes.checked_sub(bytes) {
            Some(left) => self.bytes = left,
            None => {
                return Err(Error::TooLarge(format!(
                    "a strategic merge patch may compare {MAX_COMPARED} bytes of list entries at most"
                )));
            }
        }
        Ok(())
    }
}
