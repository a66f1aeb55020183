//! Reads a file of settings again when it changes. One that is not valid leaves the settings before in force, with an
//! Event, a metric and a line in the log.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::time::sleep;

use crate::registry::Registry;

/// The time between two looks at the file.
const INTERVAL: Duration = Duration::from_secs(1);

/// The version of a file: the time of its last write, and its size in bytes.
type Stamp = Option<(SystemTime, u64)>;

/// The settings that are in a file.
pub(super) struct FileSettings<'a> {
    /// Their name in messages.
    pub name: &'static str,
    /// The reason of the Event about a file that is not valid.
    pub reason: &'static str,
    /// Counts a change of the file, by whether it was valid.
    pub count: &'a (dyn Fn(bool) + Sync),
}

/// A file that is followed.
pub(super) struct Follower {
    path: PathBuf,
    /// The version that was read last.
    read: Stamp,
    /// The error that was told last; empty after a success. After an error, the file is read at each look: a KMS that
    /// it names may work by then.
    told: String,
}

impl Registry {
    /// Follows a file, whose content is in force. `apply` reads it, and puts what it says in force. `instance` is the
    /// gateway that reports in Events. Runs until dropped.
    pub(super) async fn follow_file<F>(
        &self,
        settings: FileSettings<'_>,
        path: PathBuf,
        instance: &str,
        apply: impl Fn(PathBuf) -> F,
    ) where
        F: Future<Output = Result<(), String>> + Send,
    {
        let mut follower = Follower::new(path);
        loop {
            match follower.look(&apply).await {
                None => {}
                Some(Ok(())) => {
                    (settings.count)(true);
                    let file = follower.path.display();
                    tracing::info!(%file, settings = settings.name, "settings read again");
                }
                Some(Err(error)) => {
                    (settings.count)(false);
                    let name = settings.name;
                    tracing::error!(error, settings = name, "the settings before stay in force");
                    let message =
                        format!("the {name} before stays in force (of {instance}): {error}");
                    self.record_warning(instance, settings.reason, message)
                        .await;
                }
            }
            sleep(INTERVAL).await;
        }
    }
}

impl Follower {
    /// Returns a follower of a file that was read.
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            read: None,
            told: String::new(),
        }
    }

    /// Reads the file, if it has changed or was not valid. Returns the outcome if it was not told yet.
    pub(super) async fn look<F>(
        &mut self,
        apply: impl Fn(PathBuf) -> F,
    ) -> Option<Result<(), String>>
    where
        F: Future<Output = Result<(), String>>,
    {
        // Taken before the file is read: a change in between is found at the next look.
        let (found, is_first) = (stamp(&self.path), self.read.is_none());
        if found.is_some() && found == self.read && self.told.is_empty() {
            return None;
        }
        self.read = found;
        match apply(self.path.clone()).await {
            Ok(()) => {
                // The first look finds what the start has read.
                let is_known = is_first && self.told.is_empty();
                self.told.clear();
                (!is_known).then_some(Ok(()))
            }
            Err(error) if error == self.told => None,
            Err(error) => {
                self.told.clone_from(&error);
                Some(Err(error))
            }
        }
    }
}

fn stamp(path: &Path) -> Stamp {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
