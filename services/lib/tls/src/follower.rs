//! Reads the files of an identity again when they change.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::files::Stamp;
use crate::{Credentials, Error, Files};

/// The time between two looks at the files.
const INTERVAL: Duration = Duration::from_secs(1);

/// The versions of the files of the identity, and those of the CAs of clients and of the serving certificate.
type Stamps = ([Option<Stamp>; 3], [Option<Stamp>; 3]);

/// Follows the files of credentials.
pub(crate) struct Follower {
    credentials: Credentials,
    files: Files,
    /// The versions that are in use; none while they cannot be used, or before the first look.
    used: Option<Stamps>,
    /// The last error, which is logged once.
    failure: String,
    /// Whether it was logged that the certificate is about to expire.
    is_warned: bool,
}

impl Follower {
    pub(crate) const fn new(credentials: Credentials, files: Files) -> Self {
        Self {
            credentials,
            files,
            used: None,
            failure: String::new(),
            is_warned: false,
        }
    }

    pub(crate) async fn run(mut self) {
        loop {
            self.look();
            sleep(INTERVAL).await;
        }
    }

    /// Reads a few short files of this machine, if they have changed.
    fn look(&mut self) {
        // Taken before the files are read: a change in between is found at the next look.
        let found = (self.files.stamps(), self.credentials.further_stamps());
        if self.used != Some(found) {
            match self.credentials.reload() {
                Ok(()) => self.renewed(found),
                Err(error) => self.failed(&error),
            }
        }
        self.warn_of_expiry();
    }

    fn renewed(&mut self, found: Stamps) {
        if self.used.is_some() || !self.failure.is_empty() {
            let (file, expires) = (self.file(), self.credentials.expiry());
            info!(file, %expires, "certificate renewed");
            self.files.warn_of_readers();
        }
        self.used = Some(found);
        self.failure.clear();
        self.is_warned = false;
    }

    /// The certificate before is kept.
    fn failed(&mut self, error: &Error) {
        let failure = with_source(error);
        if failure != self.failure {
            warn!(error = failure, "certificate not renewed");
            self.failure = failure;
        }
    }

    fn warn_of_expiry(&mut self) {
        let validity = self.credentials.validity();
        if validity.is_expiring(Timestamp::now()) && !self.is_warned {
            let (file, expires) = (self.file(), validity.not_after);
            warn!(file, %expires, "certificate about to expire, and not renewed");
            self.is_warned = true;
        }
    }

    fn file(&self) -> String {
        self.files.certificate_file.display().to_string()
    }
}

fn with_source(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
