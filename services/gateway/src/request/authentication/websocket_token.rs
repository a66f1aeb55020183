//! The bearer token of a WebSocket. Browsers cannot send `Authorization` with one, but subprotocols.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::header::{SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderMap, HeaderValue};

/// The start of a subprotocol with a token, which follows in base64 for URLs without padding.
const PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// Removes subprotocols with a token from the headers, which may be echoed or passed on, and returns the token; `None`
/// if there is none, or the request does not ask for a WebSocket.
///
/// # Errors
/// If there are several, the encoding is invalid, or no other subprotocol is left for the response.
pub(super) fn take(headers: &mut HeaderMap) -> Result<Option<String>, &'static str> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).into_iter();
    let values = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let names = values.map(|name| name.trim_ascii().to_owned());
    let is_token = |name: &Vec<u8>| name.starts_with(PREFIX.as_bytes());
    let (tokens, others): (Vec<_>, Vec<_>) = names.partition(is_token);
    if tokens.is_empty() {
        return Ok(None);
    }
    headers.remove(SEC_WEBSOCKET_PROTOCOL);
    if let Ok(left) = HeaderValue::from_bytes(&others.join(&b", "[..]))
        && !left.is_empty()
    {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, left);
    }
    let upgrade = headers.get(UPGRADE).map(HeaderValue::as_bytes);
    if !upgrade.is_some_and(|upgrade| upgrade.eq_ignore_ascii_case(b"websocket")) {
        return Ok(None);
    }
    let [token] = tokens.as_slice() else {
        return Err("multiple base64.bearer.authorization tokens specified");
    };
    let token = BASE64_URL_SAFE_NO_PAD.decode(&token[PREFIX.len()..]);
    let token = token.map_err(|_| "invalid base64.bearer.authorization token encoding")?;
    let token =
        String::from_utf8(token).map_err(|_| "invalid base64.bearer.authorization token")?;
    match (token.is_empty(), others.is_empty()) {
        (true, _) => Ok(None),
        (false, true) => Err("missing additional subprotocol"),
        (false, false) => Ok(Some(token)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the token, and the subprotocols that are left.
    fn taken(
        upgrade: &'static str,
        values: &[&str],
    ) -> (Result<Option<String>, &'static str>, String) {
        let mut headers = HeaderMap::new();
        headers.insert(UPGRADE, HeaderValue::from_static(upgrade));
        for value in values {
            headers.append(SEC_WEBSOCKET_PROTOCOL, value.parse().unwrap());
        }
        let token = take(&mut headers);
        let left = headers.get_all(SEC_WEBSOCKET_PROTOCOL).into_iter();
        let left: Vec<_> = left.map(|value| value.to_str().unwrap()).collect();
        (token, left.join("|"))
    }

    /// Checks DG16.
    #[test]
    fn a_token_is_taken_out_of_the_subprotocols() {
        let token = &format!("{PREFIX}YS1iLmM");
        let some = || Ok(Some("a-b.c".to_owned()));
        let websocket = |values: &[&str]| taken("WebSocket", values);
        assert_eq!(websocket(&["a,b", "c"]), (Ok(None), "a,b|c".into()));
        assert_eq!(websocket(&[token, "a"]), (some(), "a".into()));
        let mixed = format!("a, {token},b");
        assert_eq!(websocket(&[&mixed, "c"]), (some(), "a, b, c".into()));
        let missing = Err("missing additional subprotocol");
        assert_eq!(websocket(&[token]), (missing, String::new()));
        let twice = Err("multiple base64.bearer.authorization tokens specified");
        assert_eq!(websocket(&[token, "a", token]), (twice, "a".into()));
        for (token, why) in [
            (
                "YS1iLmM=",
                "invalid base64.bearer.authorization token encoding",
            ),
            ("_w", "invalid base64.bearer.authorization token"),
        ] {
            let token = format!("{PREFIX}{token}");
            assert_eq!(websocket(&[&token, "a"]), (Err(why), "a".into()));
        }
        assert_eq!(websocket(&[PREFIX, "a"]), (Ok(None), "a".into()));
        assert_eq!(taken("SPDY/3.1", &[token, "a"]), (Ok(None), "a".into()));
    }
}
