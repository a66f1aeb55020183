//! The content of a certificate to issue, and the certificate.

use std::time::Duration;

use super::{write_certificates, write_key};
use crate::{Credentials, Error, Files, Validity};

/// The permitted uses of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// To listen.
    Server,
    /// To connect.
    Client,
    /// To listen and to connect, as the processes of a cluster do.
    ServerAndClient,
}

/// The content of a certificate to issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The common name: the name of the user.
    pub name: String,
    /// The organizations: the groups of the user.
    pub groups: Vec<String>,
    /// The DNS names and IP addresses of the server.
    pub hosts: Vec<String>,
    /// The permitted uses.
    pub usage: Usage,
    /// The time for which the certificate is valid.
    pub lifetime: Duration,
}

/// A certificate with its key.
#[derive(Clone, Debug)]
pub struct Issued {
    /// The certificate of the authority in PEM.
    pub ca: String,
    /// The certificate in PEM.
    pub certificate: String,
    /// The private key in PEM (PKCS #8).
    pub key: String,
    /// The time in which the certificate is valid.
    pub validity: Validity,
}

impl Issued {
    /// Writes the certificate, and the key to a file that others may not read. That of the authority is not written,
    /// since several may be trusted ([`super::write_certificates`]). Each file is replaced as a whole, the key first:
    /// [`Credentials::follow`] waits until both are there.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, files: &Files) -> Result<(), Error> {
        write_key(&files.key_file, &self.key)?;
        write_certificates(&files.certificate_file, &[&self.certificate])
    }

    /// Returns the credentials of a process that trusts the authority alone.
    ///
    /// # Errors
    /// None, if the texts were not changed.
    pub fn credentials(&self) -> Result<Credentials, Error> {
        Credentials::from_pem(&self.ca, &self.certificate, &self.key)
    }
}
