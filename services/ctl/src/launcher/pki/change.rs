//! The change of the CAs, in the steps of [`crate::launcher::Stage`].

use std::time::Duration;

use setpoint_tls::Files;

use super::{Pki, Stage};

impl Pki {
    /// Returns the stage of a change of the CAs.
    ///
    /// # Errors
    /// If a CA cannot be read or made.
    pub fn stage(&self) -> anyhow::Result<Stage> {
        let _lock = self.lock()?;
        Ok(self.authorities()?.stage())
    }

    /// Returns the time since the new CAs issue.
    ///
    /// # Errors
    /// If there are no others, or a file cannot be read.
    pub fn since_switch(&self) -> anyhow::Result<Duration> {
        let _lock = self.lock()?;
        self.authorities()?.since_switch()
    }

    /// Makes the next CAs, unless there are some, and lets all processes trust them.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn prepare_authorities(&self) -> anyhow::Result<()> {
        let _lock = self.lock()?;
        self.authorities()?.prepare()?;
        self.write_bundles()
    }

    /// Lets the next CAs issue, which all processes must trust by now, and issues all certificates again. Returns their
    /// number.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn switch_authorities(&self) -> anyhow::Result<usize> {
        let _lock = self.lock()?;
        self.authorities()?.switch()?;
        self.reissue_by(&self.authorities()?, None)
    }

    /// Ends the trust in the previous CAs, after certificates that are still by them were issued again.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn remove_previous_authorities(&self) -> anyhow::Result<()> {
        let _lock = self.lock()?;
        let authorities = self.authorities()?;
        for (wanted, present) in self.present() {
            let issuer = authorities.of(&wanted.directory);
            if !present.is_by(issuer.authority()) {
                wanted.issue(issuer)?;
            }
        }
        authorities.remove_previous()?;
        self.write_bundles()
    }

    /// Writes the CAs to trust beside each certificate.
    fn write_bundles(&self) -> anyhow::Result<()> {
        let authorities = self.authorities()?;
        let mut present = self.present();
        present.try_for_each(|(wanted, _)| {
            let files = Files::in_directory(&wanted.directory);
            authorities.of(&wanted.directory).write_bundle(&files)
        })
    }
}
