//! Reads the audit policy again when its file changes. One that is not valid leaves the policy before in force.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use setpoint_audit::{Auditor, Policy, reloaded};

use super::settings_file::FileSettings;
use crate::registry::Registry;

const POLICY: FileSettings<'_> = FileSettings {
    name: "audit policy",
    reason: "AuditPolicyInvalid",
    count: &reloaded,
};

impl Registry {
    /// Follows the file of the audit policy, whose content is in force. `instance` is the gateway that reports in
    /// Events. Runs until dropped.
    pub async fn follow_audit_policy(&self, auditor: &Arc<Auditor>, path: PathBuf, instance: &str) {
        let apply = |path: PathBuf| std::future::ready(apply(auditor, &path));
        self.follow_file(POLICY, path, instance, apply).await;
    }
}

fn apply(auditor: &Auditor, path: &Path) -> Result<(), String> {
    let policy = Policy::read_file(path).map_err(|error| error.to_string())?;
    auditor.set_policy(policy);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use setpoint_audit::{Level, Sink, Subject};

    use super::super::settings_file::Follower;
    use super::*;

    fn policy(level: &str) -> String {
        format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{{level: {level}}}]\n")
    }

    #[tokio::test]
    async fn a_policy_that_is_not_valid_leaves_the_one_before_in_force() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("policy.yaml");
        let read = |text: &str| Policy::read(text.as_bytes()).unwrap();
        let auditor = Auditor::new(read(&policy("None")), Sink::default());
        let level = || auditor.decide(&[Subject::default()]).level;
        let mut follower = Follower::new(path.clone());
        let look = |path: PathBuf| std::future::ready(apply(&auditor, &path));
        fs::write(&path, policy("Metadata")).unwrap();
        assert_eq!(follower.look(look).await, None);
        assert_eq!(level(), Level::Metadata);
        fs::write(&path, policy("Everything")).unwrap();
        let error = follower.look(look).await.unwrap().unwrap_err();
        assert!(
            error.starts_with("rules[0].level: Unsupported value"),
            "{error}"
        );
        assert_eq!(follower.look(look).await, None);
        assert_eq!(level(), Level::Metadata);
        fs::remove_file(&path).unwrap();
        assert!(follower.look(look).await.unwrap().is_err());
        assert_eq!(follower.look(look).await, None);
        fs::write(&path, policy("RequestResponse")).unwrap();
        assert_eq!(follower.look(look).await, Some(Ok(())));
        assert_eq!(level(), Level::RequestResponse);
    }
}
