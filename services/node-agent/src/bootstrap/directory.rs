//! The files of the certificates of an agent.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use jiff::Timestamp;
use setpoint_model::users::{NODE_PREFIX, NODES};
use setpoint_tls::authority::{Present, write_certificates, write_key};
use setpoint_tls::{Credentials, Files, PeerIdentity, ServingFiles, SigningRequest};

/// The directory with the certificates and keys.
#[derive(Clone, Debug)]
pub struct Directory(PathBuf);

impl Directory {
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Returns the files of the client certificate, with the pinned CA.
    pub fn client(&self) -> Files {
        Files {
            ca_file: self.0.join("ca.crt"),
            certificate_file: self.0.join("client.crt"),
            key_file: self.0.join("client.key"),
        }
    }

    /// Returns the files of the serving certificate.
    pub fn serving(&self) -> ServingFiles {
        ServingFiles {
            certificate_file: self.0.join("serving.crt"),
            key_file: self.0.join("serving.key"),
        }
    }

    /// Returns the credentials of these files.
    ///
    /// # Errors
    /// If those of the client cannot be used.
    pub fn credentials(&self) -> Result<Credentials, setpoint_tls::Error> {
        Credentials::load_with_serving(&self.client(), &self.serving())
    }

    /// Returns whether the client certificate is one of this node, and has not expired.
    pub fn is_usable(&self, node: &str) -> bool {
        let files = self.client();
        let text = fs::read(&files.certificate_file).unwrap_or_default();
        let identity = PeerIdentity::of_pem(&text);
        let name = identity.map(|identity| identity.name).unwrap_or_default();
        let loaded = Credentials::load(&files);
        name.strip_prefix(NODE_PREFIX) == Some(node)
            && loaded.is_ok_and(|loaded| loaded.expiry() > Timestamp::now())
    }

    /// Returns whether the client certificate is not older than a file.
    pub fn is_newer_than(&self, file: &Path) -> bool {
        let modified = |path: &Path| fs::metadata(path).and_then(|found| found.modified());
        let own = modified(&self.client().certificate_file);
        own.is_ok_and(|own| modified(file).is_ok_and(|other| own >= other))
    }

    /// Returns the request for the first certificate of a node. Its key is kept, so that an agent that is started again
    /// asks for the same certificate.
    ///
    /// # Errors
    /// If the file of the key cannot be read or written.
    pub fn first_request(&self, node: &str) -> anyhow::Result<SigningRequest> {
        let (path, name) = (self.next_key(), format!("{NODE_PREFIX}{node}"));
        let failed = || format!("cannot use {}", path.display());
        match fs::read_to_string(&path) {
            Ok(key) => SigningRequest::of_key(&key, &name, NODES).with_context(failed),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let request = SigningRequest::create(&name, NODES, &[])?;
                write_key(&path, &request.key()).with_context(failed)?;
                Ok(request)
            }
            Err(error) => Err(error).with_context(failed),
        }
    }

    /// Removes the key of the first request: the next one has another key.
    pub fn forget_request(&self) {
        let _ = fs::remove_file(self.next_key());
    }

    fn next_key(&self) -> PathBuf {
        self.0.join("client-next.key")
    }

    /// Writes the CAs of the cluster.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_authorities(&self, authorities: &str) -> Result<(), setpoint_tls::Error> {
        write_certificates(&self.client().ca_file, &[authorities])
    }

    /// Writes a client certificate with its key.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write_client(&self, certificate: &str, key: &str) -> Result<(), setpoint_tls::Error> {
        let files = self.client();
        write(&files.certificate_file, certificate, &files.key_file, key)
    }

    /// Writes a serving certificate with its key.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write_serving(&self, certificate: &str, key: &str) -> Result<(), setpoint_tls::Error> {
        let files = self.serving();
        write(&files.certificate_file, certificate, &files.key_file, key)
    }

    /// Returns the names and addresses of the serving certificate, sorted; none if there is none.
    pub fn serving_hosts(&self) -> Vec<String> {
        let present = Present::read(&self.serving().certificate_file);
        let mut hosts = present.map_or_else(|_| Vec::new(), |present| present.leaf.hosts);
        hosts.sort();
        hosts
    }
}

/// Writes the key first: who follows the files waits until both fit.
fn write(
    certificate_file: &Path,
    certificate: &str,
    key_file: &Path,
    key: &str,
) -> Result<(), setpoint_tls::Error> {
    write_key(key_file, key)?;
    write_certificates(certificate_file, &[certificate])
}
