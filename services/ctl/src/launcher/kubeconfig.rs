//! Files with which kubectl and other clients connect to a cluster.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use setpoint_host::private;
use setpoint_tls::Files;
use setpoint_tls::authority::Issued;

/// The name of the context, the cluster and the user in the file.
const NAME: &str = "setpoint";

/// A kubeconfig with the CA of a cluster and the certificate of a user, both embedded.
pub struct Kubeconfig {
    server: String,
    ca: String,
    certificate: String,
    key: String,
}

impl Kubeconfig {
    /// Returns that of a user of the gateway at the URL `server`, whose certificate was issued now.
    pub fn new(server: String, user: Issued) -> Self {
        Self {
            server,
            ca: user.ca,
            certificate: user.certificate,
            key: user.key,
        }
    }

    /// Returns that of the user whose certificate is in these files.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn read(server: String, files: &Files) -> anyhow::Result<Self> {
        let read = |path: &Path| {
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
        };
        Ok(Self {
            server,
            ca: read(&files.ca_file)?,
            certificate: read(&files.certificate_file)?,
            key: read(&files.key_file)?,
        })
    }

    /// Returns the content of the file.
    pub fn text(&self) -> String {
        let [ca, certificate, key] =
            [&self.ca, &self.certificate, &self.key].map(|pem| STANDARD.encode(pem));
        format!(
            "apiVersion: v1\n\
             kind: Config\n\
             current-context: {NAME}\n\
             contexts:\n\
             - name: {NAME}\n  context: {{cluster: {NAME}, user: {NAME}}}\n\
             clusters:\n\
             - name: {NAME}\n  cluster:\n    server: {server}\n    certificate-authority-data: {ca}\n\
             users:\n\
             - name: {NAME}\n  user:\n    client-certificate-data: {certificate}\n    client-key-data: {key}\n",
            server = self.server
        )
    }

    /// Writes the file, which only its owner may read.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let file = private::open(private::options().write(true).truncate(true), path);
        let written = file.and_then(|mut file| file.write_all(self.text().as_bytes()));
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}
