//! The errors of calls of webhooks, in the words of Go's client.

use http::StatusCode;

/// The maximum length of a response in an error message, in bytes.
const QUOTED_MAX: usize = 2048;

/// The error of a call.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    /// The address is not a URL.
    #[error("{0}")]
    Url(String),
    /// None of the certificates of the CA bundle can be used.
    #[error("unable to load root certificates: {0}")]
    Roots(String),
    /// There was no response.
    #[error("Post {url:?}: {cause}")]
    Call { url: String, cause: String },
    /// The response was not successful.
    #[error("{0}")]
    Refused(String),
}

impl Error {
    /// Returns the error of a response that was not successful.
    pub(super) fn refused(status: StatusCode, body: &[u8]) -> Self {
        let body = String::from_utf8_lossy(&body[..body.len().min(QUOTED_MAX)]);
        let body = body.trim();
        Self::Refused(match status.as_u16() {
            401 => "the server has asked for the client to provide credentials".into(),
            403 => "the server does not allow access to the requested resource".into(),
            404 => "the server could not find the requested resource".into(),
            405 => "the server does not allow this method on the requested resource".into(),
            503 => "the server is currently unable to handle the request".into(),
            504 => "the server was unable to return a response in the time allotted, but may still be processing the request".into(),
            code @ 500.. => match body.is_empty() {
                true => format!("an error on the server ({:?}) has prevented the request from succeeding", format!("unknown (status {code})")),
                false => format!("an error on the server ({body:?}) has prevented the request from succeeding"),
            },
            code => format!("the server responded with the status code {code} but did not return more information"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unsuccessful_response_is_told_as_by_a_client_of_kubernetes() {
        let refused = |code, body| {
            let status = StatusCode::from_u16(code).unwrap();
            Error::refused(status, body).to_string()
        };
        assert_eq!(
            refused(500, b"it broke\n"),
            r#"an error on the server ("it broke") has prevented the request from succeeding"#
        );
        assert_eq!(
            refused(302, b""),
            "the server responded with the status code 302 but did not return more information"
        );
        assert_eq!(
            refused(404, b""),
            "the server could not find the requested resource"
        );
    }
}
