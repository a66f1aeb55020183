//! Authentication: the user of a request, from its headers.

use std::collections::BTreeMap;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use setpoint_kinds::Identity;
use setpoint_kinds::identity::{AUTHENTICATED, UNAUTHENTICATED};
use setpoint_proto::{ApiError, Reason};
use setpoint_store::cache::AtLeast;

use super::service_account::Tokens;
use super::service_account::{self, ISSUER};
use super::websocket_token;

/// The start of the names of all headers of impersonation.
const PREFIX: &str = "impersonate-";
const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA: &str = "impersonate-extra-";

/// Returns the user of a request: the one that it impersonates, the ServiceAccount of its token or, without
/// credentials, the administrator. Removes the token of a WebSocket from the headers.
///
/// # Errors
/// `Unauthorized` if the credentials are not a valid token.
pub(crate) async fn identify(
    tokens: &Tokens,
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
    Ok(impersonated(headers)?.unwrap_or(user))
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

/// Returns the user that the request acts as, which anybody may choose.
fn impersonated(headers: &HeaderMap) -> Result<Option<Identity>, ApiError> {
    let mut names = headers.keys().map(HeaderName::as_str);
    if !names.any(|name| name.starts_with(PREFIX)) {
        return Ok(None);
    }
    let text = |value: &HeaderValue| value.to_str().ok().map(str::to_owned);
    let one = |name: &str| headers.get(name).and_then(text).unwrap_or_default();
    let groups: Vec<String> = headers.get_all(GROUP).iter().filter_map(text).collect();
    let mut extra = BTreeMap::<String, Vec<String>>::new();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            let key = percent_decode_str(key).decode_utf8_lossy().into_owned();
            extra.entry(key).or_default().extend(text(value));
        }
    }
    let (name, uid) = (one(USER), one(UID));
    if name.is_empty() {
        let alone = groups.is_empty() && extra.is_empty() && uid.is_empty();
        let message = format!(
            "Internal Server Error: requested [{}] without impersonating a user",
            groups.join(" ")
        );
        return match alone {
            true => Ok(None),
            false => Err(ApiError::new(Reason::InternalError, message)),
        };
    }
    Ok(Some(Identity {
        groups: complete(&name, groups),
        name,
        uid,
        extra,
    }))
}

/// Returns the groups of an impersonated user, with those that every such user has.
fn complete(name: &str, mut groups: Vec<String>) -> Vec<String> {
    let account = name.strip_prefix("system:serviceaccount:");
    if let Some((namespace, _)) = account.and_then(|account| account.split_once(':'))
        && groups.is_empty()
    {
        groups = service_account::groups(namespace);
    }
    let known = match name == "system:anonymous" {
        true => UNAUTHENTICATED,
        false => AUTHENTICATED,
    };
    if !groups.iter().any(|group| group == known) {
        groups.push(known.into());
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn an_impersonated_user_has_the_named_groups_and_attributes() {
        let user = impersonated(&headers(&[
            (USER, "jane"),
            (GROUP, "a"),
            (GROUP, "b"),
            ("impersonate-extra-acme.com%2fscope", "dev"),
        ]));
        let user = user.unwrap().unwrap();
        assert_eq!(user.groups, ["a", "b", AUTHENTICATED]);
        assert_eq!(user.extra["acme.com/scope"], ["dev"]);
        let account = headers(&[(USER, "system:serviceaccount:ns:web")]);
        let account = impersonated(&account).unwrap().unwrap();
        assert_eq!(account.groups[1], "system:serviceaccounts:ns");
        assert!(impersonated(&headers(&[(GROUP, "a")])).is_err());
        assert_eq!(impersonated(&HeaderMap::new()), Ok(None));
    }
}
