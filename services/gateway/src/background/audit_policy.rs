//! Reads the audit policy again when its file changes. One that is not valid leaves the policy before in force.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use setpoint_audit::{Auditor, Policy, reloaded};
use tokio::time::sleep;

use crate::registry::Registry;

const REASON: &str = "AuditPolicyInvalid";
/// The time between two looks at the file.
const INTERVAL: Duration = Duration::from_secs(1);

/// The version of a file: the time of its last write, and its size in bytes.
type Stamp = Option<(SystemTime, u64)>;

/// The file of a policy.
struct Follower {
    path: PathBuf,
    /// The version that was read last.
    read: Stamp,
    /// The error that was told last.
    told: String,
}

impl Registry {
    /// Follows the file of the audit policy, whose content is in force. `instance` is the gateway that reports in
    /// Events. Runs until dropped.
    pub async fn follow_audit_policy(&self, auditor: &Arc<Auditor>, path: PathBuf, instance: &str) {
        let mut follower = Follower {
            read: None,
            told: String::new(),
            path,
        };
        loop {
            if let Some(error) = follower.look(auditor) {
                let message =
                    format!("the audit policy before stays in force (of {instance}): {error}");
                self.record_warning(instance, REASON, message).await;
            }
            sleep(INTERVAL).await;
        }
    }
}

impl Follower {
    /// Reads the file, if it has changed. Returns an error that was not told yet.
    fn look(&mut self, auditor: &Auditor) -> Option<String> {
        // Taken before the file is read: a change in between is found at the next look.
        let (found, is_first) = (stamp(&self.path), self.read.is_none());
        if found.is_some() && found == self.read {
            return None;
        }
        self.read = found;
        match Policy::read_file(&self.path) {
            Ok(policy) => {
                auditor.set_policy(policy);
                // The first look finds what the start has read.
                if !is_first || !self.told.is_empty() {
                    reloaded(true);
                    tracing::info!(file = %self.path.display(), "audit policy read again");
                }
                self.told.clear();
                None
            }
            Err(error) => {
                let error = error.to_string();
                if error == self.told {
                    return None;
                }
                reloaded(false);
                tracing::error!(error, "the audit policy before stays in force");
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
    use setpoint_audit::{Level, Sink, Subject};

    use super::*;

    fn policy(level: &str) -> String {
        format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{{level: {level}}}]\n")
    }

    #[test]
    fn a_policy_that_is_not_valid_leaves_the_one_before_in_force() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("policy.yaml");
        let read = |text: &str| Policy::read(text.as_bytes()).unwrap();
        let auditor = Auditor::new(read(&policy("None")), Sink::default());
        let level = || auditor.decide(&[Subject::default()]).level;
        let mut follower = Follower {
            path: path.clone(),
            read: None,
            told: String::new(),
        };
        fs::write(&path, policy("Metadata")).unwrap();
        assert_eq!(follower.look(&auditor), None);
        assert_eq!(level(), Level::Metadata);
        fs::write(&path, policy("Everything")).unwrap();
        let error = follower.look(&auditor).unwrap();
        assert!(
            error.starts_with("rules[0].level: Unsupported value"),
            "{error}"
        );
        assert_eq!(follower.look(&auditor), None);
        assert_eq!(level(), Level::Metadata);
        fs::remove_file(&path).unwrap();
        assert!(follower.look(&auditor).is_some());
        assert_eq!(follower.look(&auditor), None);
        fs::write(&path, policy("RequestResponse")).unwrap();
        assert_eq!(follower.look(&auditor), None);
        assert_eq!(level(), Level::RequestResponse);
    }
}
