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
        Ok(Self {
            server: value(text, "server")?.to_owned(),
            ca: embedded(text, "certificate-authority-data")?,
            certificate: embedded(text, "client-certificate-data")?,
            key: embedded(text, "client-key-data")?,
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

/// Returns the value of a key of a kubeconfig that is on a line of its own.
fn value<'t>(text: &'t str, name: &str) -> anyhow::Result<&'t str> {
    let mut lines = text.lines().map(|line| line.trim_start_matches([' ', '-']));
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let value = value.ok_or_else(|| anyhow!("it has no {name}"))?;
    Ok(value.trim().trim_matches('"'))
}

/// Returns the text of a key of a kubeconfig that is embedded in base64, on a line of its own.
///
/// # Errors
/// If there is none, or it is malformed.
pub fn embedded(text: &str, name: &str) -> anyhow::Result<String> {
    let decoded = STANDARD.decode(value(text, name)?)?;
    Ok(String::from_utf8(decoded)?)
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
