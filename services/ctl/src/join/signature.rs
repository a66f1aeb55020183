//! The signature of `cluster-info` by a token (RFC 7515, HS256, with a detached payload).

use anyhow::{Context as _, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde::Deserialize;

use crate::token::Token;

/// The only algorithm: others are refused, so that no sender chooses a weaker one.
const ALGORITHM: &str = "HS256";

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: String,
}

/// Verifies that who has signed a text has the token.
///
/// # Errors
/// If the signature is malformed, by another token, or of another text.
pub fn verify(signature: &str, text: &str, token: &Token) -> anyhow::Result<()> {
    let parts: Vec<_> = signature.split('.').collect();
    let &[header, "", signed] = &parts[..] else {
        bail!("the signature is none of a detached text");
    };
    let decode = |part: &str| {
        URL_SAFE_NO_PAD
            .decode(part)
            .context("the signature is malformed")
    };
    let read: Header =
        serde_json::from_slice(&decode(header)?).context("its header is malformed")?;
    ensure!(
        read.alg == ALGORITHM,
        "the signature is by another algorithm than {ALGORITHM}"
    );
    ensure!(read.kid == token.id(), "the signature is by another token");
    let content = format!("{header}.{}", URL_SAFE_NO_PAD.encode(text));
    let key = hmac::Key::new(hmac::HMAC_SHA256, token.secret().as_bytes());
    let verified = hmac::verify(&key, content.as_bytes(), &decode(signed)?);
    verified
        .ok()
        .context("the signature is by another secret, or of another text")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By Python's hmac, of the header `{"alg":"HS256","kid":"abcdef"}` and the text `apiVersion: v1`.
    const SIGNATURE: &str =
        "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9.._JqomVYZNRdBX9ISkn1b-g4fbXMmdIzRDvSNbs-ccDE";
    const TEXT: &str = "apiVersion: v1";

    fn token(text: &str) -> Token {
        text.parse().unwrap()
    }

    #[test]
    fn a_text_is_signed_by_the_secret_of_the_token() {
        let own = token("abcdef.0123456789abcdef");
        verify(SIGNATURE, TEXT, &own).unwrap();
        let refused = |signature: &str, text: &str, token: &Token| {
            verify(signature, text, token).unwrap_err().to_string()
        };
        let other_secret = token("abcdef.0123456789abcdee");
        let why = "the signature is by another secret, or of another text";
        assert_eq!(refused(SIGNATURE, TEXT, &other_secret), why);
        assert_eq!(refused(SIGNATURE, "apiVersion: v2", &own), why);
        let other_id = token("abcdee.0123456789abcdef");
        assert_eq!(
            refused(SIGNATURE, TEXT, &other_id),
            "the signature is by another token"
        );
    }

    #[test]
    fn no_sender_chooses_another_algorithm_or_payload() {
        let own = token("abcdef.0123456789abcdef");
        let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none","kid":"abcdef"}"#);
        let (header, signed) = SIGNATURE.split_once("..").unwrap();
        let payload = URL_SAFE_NO_PAD.encode(TEXT);
        for forged in [
            format!("{none}.."),
            format!("{none}..{signed}"),
            format!("{header}.{payload}.{signed}"),
            format!("{header}.."),
            header.to_owned(),
            String::new(),
            "..".to_owned(),
            "a.b.c.d".to_owned(),
        ] {
            assert!(verify(&forged, TEXT, &own).is_err(), "{forged}");
        }
    }
}
