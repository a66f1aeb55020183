//! Typed reads of the watch cache.

use setpoint_codec::{Object, kind_of};
use setpoint_model::Key;
use setpoint_proto::{ApiError, Reason, Resource};
use setpoint_store::cache::{AtLeast, Cache};

use crate::errors::readable;

/// Returns an object of the cache as it was at `at` or later; `None` if there is none.
///
/// # Errors
/// If the cache does not have that state in time, or the object cannot be decoded.
pub(crate) async fn cached<T: Resource + Object>(
    cache: &Cache,
    key: &Key,
    at: AtLeast,
) -> Result<Option<Box<T>>, ApiError> {
    let Some(found) = cache.get(kind_of::<T>(), key, at).await? else {
        return Ok(None);
    };
    let object = readable(found.decode())?;
    object.into_any().downcast().map(Some).map_err(|_| {
        ApiError::new(
            Reason::InternalError,
            "a stored object is of another kind than its key",
        )
    })
}
