//! Signatures of a text by a token (RFC 7515, with a detached payload).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;

/// Returns the signature of a text by the token with this id and secret: `<header>..<signature>`, each in base64 for
/// URLs. Whoever has the token can verify by it that the text is from a cluster that has the token, too.
pub fn signature(text: &str, id: &str, secret: &[u8]) -> String {
    let header = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"HS256","kid":"{id}"}}"#));
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(text));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let signature = hmac::sign(&key, signed.as_bytes());
    format!("{header}..{}", URL_SAFE_NO_PAD.encode(signature))
}
