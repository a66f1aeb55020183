//! Authorization: whether a user may do what a request asks for.

use setpoint_proto::ApiError;

use super::Attributes;
use crate::access::Identity;

/// Authorizes a request. It is called once for each request, and once more with another verb where upstream does that: for
/// an update or an apply that creates its object.
///
/// # Errors
/// `Forbidden` if the user may not do that; at present this never fails.
pub(crate) fn authorize(_user: &Identity, _attributes: &Attributes) -> Result<(), ApiError> {
    Ok(())
}
