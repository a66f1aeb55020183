//! Files with which kubectl and other clients connect to a cluster.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use setpoint_host::private;
use setpoint_tls::authority::Issued;
use setpoint_tls::{Credentials, Files};

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

    /// Reads a kubeconfig that this command has written: of others only those whose values are embedded and on lines
    /// of their own, as kubectl writes them.
    ///
    /// # Errors
    /// If it cannot be read, or lacks one of the values.
    pub fn load(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("cannot use {}", path.display()))
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let value = |name: &str| {
            let mut lines = text.lines().map(str::trim_start);
            let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            value.ok_or_else(|| anyhow!("it has no {name}"))
        };
        let embedded = |name: &str| {
            let pem = STANDARD.decode(value(name)?.trim())?;
            anyhow::Ok(String::from_utf8(pem)?)
        };
        Ok(Self {
            server: value("server")?.trim().to_owned(),
            ca: embedded("certificate-authority-data")?,
            certificate: embedded("client-certificate-data")?,
            key: embedded("client-key-data")?,
        })
    }

    /// Returns the address of the gateway.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns the credentials of the user.
    ///
    /// # Errors
    /// If the certificate cannot be used.
    pub fn credentials(&self) -> anyhow::Result<Credentials> {
        let credentials = Credentials::from_pem(&self.ca, &self.certificate, &self.key);
        credentials.context("the kubeconfig cannot be used")
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

#[cfg(test)]
mod tests {
    use setpoint_tls::authority::Authority;

    use super::super::identity::Identity;
    use super::*;

    #[test]
    fn a_kubeconfig_is_read_as_it_was_written() {
        let authority = Authority::create("test").unwrap();
        let user = authority.issue(&Identity::administrator().leaf()).unwrap();
        let certificate = user.certificate.clone();
        let written = Kubeconfig::new("https://127.0.0.1:7443".to_owned(), user);
        let read = Kubeconfig::parse(&written.text()).unwrap();
        assert_eq!(read.server(), "https://127.0.0.1:7443");
        assert_eq!(read.certificate, certificate);
        assert_eq!(read.text(), written.text());
        assert!(read.credentials().is_ok());
        assert!(Kubeconfig::parse("server: https://a").is_err());
    }
}
