//! Formats connection errors as Go's net/http does.

use std::error::Error;
use std::io;

/// Returns the innermost cause of an error, in Go's words where they are known.
pub(crate) fn cause(error: &(dyn Error + 'static)) -> String {
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
