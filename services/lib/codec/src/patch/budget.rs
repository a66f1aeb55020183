//! Limits the work of a strategic merge patch.

use super::Error;

/// The number of bytes of list entries that a strategic merge patch may compare. Merging a document of the maximum size
/// into itself compares about 12 MiB. The whole takes about 0.15 s.
const MAX_COMPARED: usize = 32 << 20;

/// The remaining work of a strategic merge patch, in bytes.
///
/// Without a limit a small patch could take very long, by repeating the key of an entry with a long list in it.
pub(super) struct Budget {
    bytes: usize,
}

impl Budget {
    pub fn new() -> Self {
        Self {
            bytes: MAX_COMPARED,
        }
    }

    /// Subtracts bytes of list entries that are compared.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if not enough is left.
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
