//! Files with settings that are read again when they change. One that is wrong leaves what was in force before.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use setpoint_audit::{Auditor, Policy, reloaded};
use tokio::time::sleep;

use crate::metrics::ConfigReloads;
use crate::registry::Registry;
use crate::request::{authentication, authorization};

/// The time between two looks at a file.
const INTERVAL: Duration = Duration::from_secs(1);

/// The version of a file: the time of its last write, and its size in bytes.
type Stamp = Option<(SystemTime, u64)>;

/// A file that is followed.
struct Followed<'a> {
    /// What is in it, for people.
    name: &'static str,
    /// The reason of Events about one that is wrong.
    reason: &'static str,
    path: PathBuf,
    /// Reads the file and sets what is in it in force, or returns what is wrong.
    apply: Box<dyn FnMut(&Path) -> Result<(), String> + Send + 'a>,
    /// Counts a change that was set in force, or was not.
    count: Box<dyn Fn(bool) + Send + Sync + 'a>,
}

/// What is known of a file.
#[derive(Default)]
struct Look {
    /// The version that was read last.
    read: Stamp,
    /// The error that was told last.
    told: String,
}

impl Registry {
    /// Follows the file of the audit policy, whose content is in force. `instance` is the gateway that reports in
    /// Events. Runs until dropped.
    pub async fn follow_audit_policy(&self, auditor: &Arc<Auditor>, path: PathBuf, instance: &str) {
        let followed = Followed {
            name: "audit policy",
            reason: "AuditPolicyInvalid",
            path,
            apply: Box::new(|path| {
                let policy = Policy::read_file(path).map_err(|error| error.to_string())?;
                auditor.set_policy(policy);
                Ok(())
            }),
            count: Box::new(reloaded),
        };
        self.follow(followed, instance).await;
    }

    /// Follows the file of the configuration of authentication, as [`Self::follow_audit_policy`].
    pub async fn follow_authentication(&self, path: PathBuf, instance: &str) {
        let reloads = ConfigReloads::authentication(instance);
        let followed = Followed {
            name: "authentication configuration",
            reason: "AuthenticationConfigurationInvalid",
            path,
            apply: Box::new(|path| {
                let configuration = authentication::read_configuration(path)?;
                self.authenticator().reload(configuration)
            }),
            count: Box::new(move |succeeded| reloads.count(succeeded)),
        };
        self.follow(followed, instance).await;
    }

    /// Follows the file of the configuration of authorization, as [`Self::follow_audit_policy`].
    pub async fn follow_authorization(&self, path: PathBuf, instance: &str) {
        let reloads = ConfigReloads::authorization(instance);
        let followed = Followed {
            name: "authorization configuration",
            reason: "AuthorizationConfigurationInvalid",
            path,
            apply: Box::new(|path| {
                let configuration = authorization::read_configuration(path)?;
                self.authorizer().reload(configuration)
            }),
            count: Box::new(move |succeeded| reloads.count(succeeded)),
        };
        self.follow(followed, instance).await;
    }

    async fn follow(&self, mut followed: Followed<'_>, instance: &str) {
        let mut look = Look::default();
        loop {
            if let Some(error) = look.again(&mut followed) {
                let name = followed.name;
                let message = format!("the {name} before stays in force (of {instance}): {error}");
                self.record_warning(instance, followed.reason, message)
                    .await;
            }
            sleep(INTERVAL).await;
        }
    }
}

impl Look {
    /// Reads the file, if it has changed. Returns an error that was not told yet.
    fn again(&mut self, file: &mut Followed<'_>) -> Option<String> {
        // Taken before the file is read: a change in between is found at the next look.
        let (found, is_first) = (stamp(&file.path), self.read.is_none());
        if found.is_some() && found == self.read {
            return None;
        }
        self.read = found;
        match (file.apply)(&file.path) {
            Ok(()) => {
                // The first look finds what the start has read.
                if !is_first || !self.told.is_empty() {
                    (file.count)(true);
                    tracing::info!(file = %file.path.display(), "{} read again", file.name);
                }
                self.told.clear();
                None
            }
            Err(error) => {
                if error == self.told {
                    return None;
                }
                (file.count)(false);
                tracing::error!(error, "the {} before stays in force", file.name);
                self.told.clone_from(&error);
                Some(error)
            }
        }
    }
}

fn stamp(path: &Path) -> Stamp {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use parking_lot::Mutex;

    use super::*;

    #[test]
    fn a_file_that_is_wrong_leaves_what_was_in_force_before() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("settings.yaml");
        let (in_force, counted) = (Mutex::new(String::new()), Mutex::new(Vec::new()));
        let mut file = Followed {
            name: "test",
            reason: "TestInvalid",
            path: path.clone(),
            apply: Box::new(|path| {
                let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
                match text.strip_prefix("wrong") {
                    Some(_) => Err(text),
                    None => {
                        *in_force.lock() = text;
                        Ok(())
                    }
                }
            }),
            count: Box::new(|succeeded| counted.lock().push(succeeded)),
        };
        let look = RefCell::new(Look::default());
        let mut again = || look.borrow_mut().again(&mut file);
        fs::write(&path, "first").unwrap();
        assert_eq!(again(), None);
        fs::write(&path, "wrong one").unwrap();
        assert_eq!(again().as_deref(), Some("wrong one"));
        assert_eq!(again(), None);
        assert_eq!(*in_force.lock(), "first");
        fs::remove_file(&path).unwrap();
        assert!(again().is_some());
        assert_eq!(again(), None);
        fs::write(&path, "another").unwrap();
        assert_eq!(again(), None);
        assert_eq!(*in_force.lock(), "another");
        assert_eq!(*counted.lock(), [false, false, true]);
    }
}
