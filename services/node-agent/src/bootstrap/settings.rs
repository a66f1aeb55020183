//! The settings of certificates by CertificateSigningRequests.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Certificates by CertificateSigningRequests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Directory of the certificates that the agent requests and renews itself, instead of the files of `tls`; empty
    /// if it has those.
    ///
    /// The file `ca.crt`, the CA of the cluster, must be there. The agent writes `client.crt`, `client.key`,
    /// `serving.crt` and `serving.key`.
    pub directory: PathBuf,
    /// File with the bootstrap token for the first certificate; removed once there is one.
    pub token_file: PathBuf,
}

impl Settings {
    /// Returns whether the agent requests its certificates.
    pub fn is_on(&self) -> bool {
        !self.directory.as_os_str().is_empty()
    }
}
