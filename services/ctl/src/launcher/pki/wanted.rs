//! A certificate as it is to be.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use setpoint_host::private;
use setpoint_tls::authority::{Leaf, Present};
use setpoint_tls::{Credentials, Files};

use crate::launcher::authorities::Issuer;

/// A certificate that a cluster should have.
pub(crate) struct Wanted {
    /// The folder of its files.
    pub directory: PathBuf,
    /// Its content.
    pub leaf: Leaf,
}

impl Wanted {
    /// Returns whether the folder has such a certificate by this CA, which is not due.
    pub(crate) fn is_present(&self, issuer: &Issuer) -> bool {
        let files = Files::in_directory(&self.directory);
        let ca = fs::read_to_string(&files.ca_file);
        if Credentials::load(&files).is_err() || ca.ok() != Some(issuer.bundle()) {
            return false;
        }
        let present = Present::read(&files.certificate_file);
        present.is_ok_and(|present| {
            let leaf = Leaf {
                lifetime: self.leaf.lifetime,
                ..present.leaf.clone()
            };
            let is_due = is_due(&present, Timestamp::now());
            leaf == self.leaf && !is_due && present.is_by(issuer.authority())
        })
    }

    pub(crate) fn issue(&self, issuer: &Issuer) -> anyhow::Result<()> {
        private::create_dir_all(&self.directory)
            .with_context(|| format!("cannot create {}", self.directory.display()))?;
        let files = Files::in_directory(&self.directory);
        issuer.write_bundle(&files)?;
        issuer.issue(&self.leaf)?.write(&files)?;
        Ok(())
    }
}

/// Returns whether two thirds of the life have passed, without the time before it was issued.
pub(super) fn is_due(present: &Present, now: Timestamp) -> bool {
    let third = present.leaf.lifetime / 3;
    let left = Duration::try_from(present.validity.remaining(now));
    left.unwrap_or_default() <= third
}
