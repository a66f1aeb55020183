//! Holds requests back while the gateway does not know the custom kinds yet.

use http::{Method, Uri};
use setpoint_proto::meta::StatusDetails;
use setpoint_proto::{ApiError, Reason};

use crate::registry::Registry;
use crate::request::RequestInfo;

/// Returns what a request asks for. If that depends on the definitions of custom kinds, they have been read: a client
/// of a gateway that has just started would take `NotFound` for the end of its kind, and stop watching it.
///
/// # Errors
/// `ServiceUnavailable` if they cannot be read in time.
pub(super) async fn request_info(
    registry: &Registry,
    method: &Method,
    uri: &Uri,
) -> Result<RequestInfo, ApiError> {
    let kinds = registry.cache().kinds();
    let info = || RequestInfo::of(kinds, method, uri);
    let found = info();
    if !depends_on_definitions(&found) {
        return Ok(found);
    }
    let loaded = registry.cache().loaded().await;
    loaded.map_err(|_| not_installed())?;
    Ok(info())
}

/// Returns whether a path can be one of a custom kind, or of a document that lists them.
fn depends_on_definitions(info: &RequestInfo) -> bool {
    let path = info.attributes.path.as_str();
    let documented = path == "/" || path.starts_with("/openapi/");
    documented || (path.starts_with("/apis") && info.route.is_none())
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
