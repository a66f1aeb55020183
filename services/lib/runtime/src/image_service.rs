//! The images of a container engine, as pulls and the removal of unused images need them.

use crate::image_gc::Listed;
use crate::{Credential, Error};

/// An image that is present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Present {
    /// The engine's id of it, which is that of its content.
    pub id: String,
    /// Its size.
    pub bytes: i64,
}

/// The images of a container engine.
pub trait ImageService: Send + Sync + 'static {
    /// Returns an image; `None` if it is not present.
    ///
    /// # Errors
    /// [`Error::Image`] if its name is invalid, and those of the engine.
    fn find(&self, image: &str) -> impl Future<Output = Result<Option<Present>, Error>> + Send;

    /// Pulls an image, as this user of its registry if there is one. One that tells no progress is given more time
    /// after this many `failures` of earlier pulls.
    ///
    /// # Errors
    /// With the engine's message.
    fn pull(
        &self,
        image: &str,
        credential: Option<&Credential>,
        failures: u32,
    ) -> impl Future<Output = Result<(), String>> + Send;

    /// Returns the images that are present.
    ///
    /// # Errors
    /// With the engine's message.
    fn list(&self) -> impl Future<Output = Result<Vec<Listed>, String>> + Send;

    /// Removes an image by one of its names.
    ///
    /// # Errors
    /// With the engine's message.
    fn remove(&self, image: &str) -> impl Future<Output = Result<(), String>> + Send;
}

/// Returns the error for an image that is not available, with the reason that the kubelet gives.
pub fn unavailable(image: &str, reason: &'static str, message: String, pulling: bool) -> Error {
    Error::Image {
        image: image.to_owned(),
        reason,
        message,
        pulling,
    }
}
