//! Authentication: the user of a request, from its headers.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use setpoint_kinds::Identity;
use setpoint_proto::{ApiError, Reason};
use setpoint_store::cache::AtLeast;

use super::authorization::Authorizer;
use super::service_account::{ISSUER, Tokens};
use super::{impersonation, websocket_token};

/// Returns the user of a request: the one that it impersonates, the ServiceAccount of its token or, without
/// credentials, the administrator. Removes the token of a WebSocket from the headers.
///
/// # Errors
/// `Unauthorized` if the credentials are not a valid token, `Forbidden` if it may not impersonate that user.
pub(crate) async fn identify(
    tokens: &Tokens,
    authorizer: &Authorizer,
    headers: &mut HeaderMap,
) -> Result<Identity, ApiError> {
    let of_websocket = websocket_token::take(headers);
    let user = match (headers.get(AUTHORIZATION), of_websocket) {
        (Some(value), _) => match bearer(value) {
            Some(token) => of_token(tokens, token).await?,
            None => return Err(unauthorized("it is no bearer token")),
        },
        (None, Ok(Some(token))) => of_token(tokens, &token).await?,
        (None, Err(why)) => return Err(unauthorized(why)),
        (None, Ok(None)) => Identity::default(),
    };
    impersonation::resolve(authorizer, user, headers).await
}

fn bearer(header: &HeaderValue) -> Option<&str> {
    let (scheme, token) = header.to_str().ok()?.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

async fn of_token(tokens: &Tokens, token: &str) -> Result<Identity, ApiError> {
    let audiences = [ISSUER.into()];
    let verified = tokens.verify(token, &audiences, AtLeast::Any).await;
    let verified = verified.map_err(|why| unauthorized(&why.to_string()))?;
    Ok(verified.user)
}

fn unauthorized(why: &str) -> ApiError {
    tracing::debug!(why, "a token was refused");
    ApiError::new(Reason::Unauthorized, "Unauthorized")
}
