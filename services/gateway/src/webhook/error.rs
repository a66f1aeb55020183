//! The errors of calls of webhooks, in the words of Go's client.

use std::error::Error as StdError;
use std::io;

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

/// Returns the innermost cause of an error, in Go's words where they are known.
pub(crate) fn cause(error: &(dyn StdError + 'static)) -> String {
    if let Some(error) = error.downcast_ref::<rustls::Error>() {
        return of_tls(error);
    }
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return match error.get_ref() {
            Some(inner) => cause(inner),
            None => of_io(error),
        };
    }
    error.source().map_or_else(|| error.to_string(), cause)
}

fn of_tls(error: &rustls::Error) -> String {
    use rustls::CertificateError::{
        BadSignature, Expired, NotValidForName, NotValidForNameContext, UnknownIssuer,
    };
    let rustls::Error::InvalidCertificate(problem) = error else {
        return format!("tls: {error}");
    };
    let problem = match problem {
        // A certificate of that name exists, but it has not signed this one.
        UnknownIssuer | BadSignature => "certificate signed by unknown authority".to_owned(),
        Expired => "certificate has expired or is not yet valid".to_owned(),
        NotValidForName => "certificate is not valid for the name of the server".to_owned(),
        NotValidForNameContext {
            expected,
            presented,
        } => format!(
            "certificate is valid for {}, not {}",
            presented.join(", "),
            expected.to_str()
        ),
        other => other.to_string(),
    };
    format!("tls: failed to verify certificate: x509: {problem}")
}

pub(super) fn of_io(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "connection reset by peer".to_owned(),
        io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        _ => error.to_string(),
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

    #[test]
    fn the_innermost_cause_is_told() {
        let unknown = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let wrapped = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, unknown));
        assert_eq!(
            cause(&wrapped),
            "tls: failed to verify certificate: x509: certificate signed by unknown authority"
        );
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(cause(&refused), "connection refused");
    }
}
