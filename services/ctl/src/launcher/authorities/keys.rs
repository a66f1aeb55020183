//! The CAs of a cluster with their keys, on their way to another machine.

use std::path::Path;

use anyhow::bail;
use serde::{Deserialize, Serialize};
use setpoint_tls::authority::Authority;

use super::{Paths, read};

/// The CAs of a cluster with their keys, as they go to another machine.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    pub(super) cluster: Pair,
    pub(super) etcd: Pair,
}

impl Keys {
    /// Writes the files of a folder, unless they are there already.
    ///
    /// # Errors
    /// If the folder has other CAs, or a file cannot be written.
    pub fn write(&self, directory: &Path) -> anyhow::Result<()> {
        self.cluster.write(&Paths::new(directory, "ca"))?;
        self.etcd.write(&Paths::new(directory, "etcd-ca"))
    }
}

/// A CA with its key, in PEM.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
}

impl Pair {
    fn write(&self, paths: &Paths) -> anyhow::Result<()> {
        if let Some(present) = read(&paths.certificate)? {
            if present != self.certificate {
                bail!("{} is that of another cluster", paths.certificate.display());
            }
            return Ok(());
        }
        let (certificate, key) = (self.certificate.as_bytes(), self.key.as_bytes());
        Ok(Authority::from_pem(certificate, key)?.write(&paths.certificate, &paths.key)?)
    }
}
