//! Holds requests back while the gateway does not know the custom kinds yet.

use setpoint_proto::meta::StatusDetails;
use setpoint_proto::{ApiError, Reason};

use super::route::Route;
use crate::registry::Registry;

/// Waits until the definitions have been read, if the response depends on them. A client of a gateway that has just started would
/// take `NotFound` for the end of its kind, and stop watching it.
///
/// # Errors
/// `ServiceUnavailable` if they cannot be read in time.
pub(super) async fn wait(registry: &Registry, path: &str) -> Result<(), ApiError> {
    let waits = depends_on_definitions(registry, path);
    match waits && registry.cache().loaded().await.is_err() {
        true => Err(not_installed()),
        false => Ok(()),
    }
}

/// Returns whether a path can be one of a custom kind, or of a document that lists them.
fn depends_on_definitions(registry: &Registry, path: &str) -> bool {
    let documented = path == "/" || path.starts_with("/openapi/");
    let of_group = path.starts_with("/apis");
    documented || (of_group && Route::of(registry.cache().kinds(), path).is_none())
}

/// Returns the error of upstream's server for a path that it does not serve while it starts.
fn not_installed() -> ApiError {
    let message =
        "the request has been made before all known HTTP paths have been installed, please retry";
    ApiError::new(Reason::ServiceUnavailable, message).with_details(StatusDetails {
        retry_after_seconds: 1,
        ..Default::default()
    })
}
