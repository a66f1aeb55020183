//! The reasons why credentials cannot be used.

use std::io;

use rustls::pki_types::pem;

/// The reason why credentials cannot be used. It names the file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Only some of the files are given.
    #[error("a CA, a certificate and a key belong together: {missing} is missing")]
    Incomplete {
        /// The setting that is empty.
        missing: &'static str,
    },
    /// A file cannot be read.
    #[error("cannot read {file}")]
    Read {
        /// The path of the file.
        file: String,
        /// The error of the file system.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {file}")]
    Write {
        /// The path of the file.
        file: String,
        /// The error of the file system.
        source: io::Error,
    },
    /// A file has no PEM block of the kind that is needed, or a malformed one.
    #[error("{file} has no {needed} in PEM")]
    Pem {
        /// The path of the file.
        file: String,
        /// The block that it must have.
        needed: &'static str,
        /// The error of the parser.
        source: pem::Error,
    },
    /// A certificate or key is malformed, or of an unknown kind.
    #[error("{file} cannot be used")]
    Unusable {
        /// The path of the file.
        file: String,
        /// The error of TLS.
        source: rustls::Error,
    },
    /// A certificate is malformed, or is not one of a CA.
    #[error("{file} cannot be used: {reason}")]
    Certificate {
        /// The path of the file.
        file: String,
        /// The reason.
        reason: String,
    },
    /// The key does not belong to the certificate.
    #[error("{key} does not have the key of the certificate in {certificate}")]
    Mismatch {
        /// The path of the certificate.
        certificate: String,
        /// The path of the key.
        key: String,
    },
    /// A key or certificate cannot be made.
    #[error("cannot make a certificate")]
    Issue(#[from] rcgen::Error),
    /// A name is neither a DNS name nor an IP address.
    #[error("{0:?} is neither a DNS name nor an IP address")]
    Name(String),
}
