//! The files of the certificates of an agent.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use jiff::Timestamp;
use setpoint_model::users::{NODE_PREFIX, NODES};
use setpoint_tls::authority::Issued;
use setpoint_tls::{Credentials, Files, PeerIdentity, ServingFiles, SigningRequest, Validity};

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
                write_private(&path, &request.key()).with_context(failed)?;
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

    /// Writes a client certificate with its key.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write_client(&self, certificate: &str, key: String) -> Result<(), setpoint_tls::Error> {
        issued(certificate, key).write(&self.client())
    }

    /// Writes a serving certificate with its key.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write_serving(&self, certificate: &str, key: String) -> Result<(), setpoint_tls::Error> {
        let files = self.serving();
        issued(certificate, key).write(&Files {
            ca_file: PathBuf::new(),
            certificate_file: files.certificate_file,
            key_file: files.key_file,
        })
    }

    /// Returns the names and addresses of the serving certificate; none if there is none.
    pub fn serving_hosts(&self) -> Vec<String> {
        let text = fs::read(self.serving().certificate_file).unwrap_or_default();
        setpoint_tls::hosts_of_pem(&text)
    }
}

fn issued(certificate: &str, key: String) -> Issued {
    Issued {
        ca: String::new(),
        certificate: certificate.to_owned(),
        key,
        // Not written.
        validity: Validity {
            not_before: Timestamp::MIN,
            not_after: Timestamp::MAX,
        },
    }
}

/// Writes a file that others may not read. It is there as a whole, or not at all.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension("new");
    let _ = fs::remove_file(&new);
    let mut options = fs::File::options();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)?;
    file.write_all(text.as_bytes())?;
    fs::rename(&new, path)
}
