//! The certificate that clients are served with, where that is another one than the one for connections.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_tls::{Credentials, Files, ServingFiles};

/// The files of the certificate that clients are served with, in PEM.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Serving {
    /// File with the certificate for clients of this process, such as the serving one of the node's agent, where that
    /// of `tls.certificate_file` is for connections alone; empty if it is for both. No client is served before the file
    /// is there.
    pub certificate_file: PathBuf,
    /// File with the private key of `serving.certificate_file`.
    pub key_file: PathBuf,
}

impl Serving {
    /// Returns the identity of a process with these files of the table `tls`.
    ///
    /// # Errors
    /// If a file cannot be read, but for those of the serving certificate, which may come later.
    pub fn identity(&self, files: &Files) -> Result<Credentials, setpoint_tls::Error> {
        if self.certificate_file.as_os_str().is_empty() {
            return Credentials::load(files);
        }
        let serving = ServingFiles {
            certificate_file: self.certificate_file.clone(),
            key_file: self.key_file.clone(),
        };
        Credentials::load_with_serving(files, &serving)
    }

    /// Returns the rule that both files are named or none, and its message, for [`super::first_broken`].
    pub fn rule(&self) -> (bool, &'static str) {
        let is_missing =
            [&self.certificate_file, &self.key_file].map(|file| file.as_os_str().is_empty());
        (
            is_missing[0] == is_missing[1],
            "serving.certificate_file and serving.key_file must both be given, or none",
        )
    }
}
