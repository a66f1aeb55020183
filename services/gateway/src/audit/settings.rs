//! The settings of audit.

use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_audit::{BUFFER, Batches, LogOptions, Policy};
use setpoint_host::DurationText;
use setpoint_host::settings::first_broken;

use crate::kubeconfig::Server;

const MEBIBYTE: u64 = 1 << 20;
/// The largest queue, in events.
const MOST_EVENTS: usize = 1_000_000;
/// The largest list that is sent to a webhook, in events.
const LONGEST_BATCH: usize = 10_000;

/// The settings of audit.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Settings {
    /// Events that may wait for each of the log and the webhook; further ones are dropped and counted.
    buffer: usize,
    /// Time after which a log file that was rotated is deleted; 0s for never.
    #[serde(with = "DurationText")]
    log_max_age: Duration,
    /// Number of rotated log files that are kept; 0 for all.
    log_max_backups: usize,
    /// Size in MiB beyond which another log file is begun; 0 for no limit.
    log_max_size: u64,
    /// File to which events are appended, each a line of JSON; `-` for the standard output, empty for none.
    log_path: PathBuf,
    /// File with the policy that says which requests are recorded (`audit.k8s.io/v1`); empty for none. It is read again
    /// when it changes.
    policy_file: PathBuf,
    /// Events in a list that is sent to the webhook, at most.
    webhook_batch_size: usize,
    /// Time after which a list of events is sent that is not full.
    #[serde(with = "DurationText")]
    webhook_batch_wait: Duration,
    /// Kubeconfig file with the URL and the credentials of a server that events are sent to; empty for none.
    webhook_config_file: PathBuf,
    /// Time before a list of events is sent again that was not accepted; it grows with each of five tries.
    #[serde(with = "DurationText")]
    webhook_initial_backoff: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            buffer: BUFFER,
            log_max_age: Duration::from_secs(366 * 24 * 60 * 60),
            log_max_backups: 100,
            log_max_size: 100,
            log_path: PathBuf::new(),
            policy_file: PathBuf::new(),
            webhook_batch_size: 400,
            webhook_batch_wait: Duration::from_secs(30),
            webhook_config_file: PathBuf::new(),
            webhook_initial_backoff: Duration::from_secs(10),
        }
    }
}

impl Settings {
    /// Checks the settings and the files that they name.
    ///
    /// # Errors
    /// The first problem: of the policy, the path of each wrong field.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let is_kept = self.log().is_some() || self.webhook_config_file().is_some();
        first_broken(&[
            (
                (1..=MOST_EVENTS).contains(&self.buffer),
                "audit.buffer must be from 1 to 1000000",
            ),
            (
                (1..=LONGEST_BATCH).contains(&self.webhook_batch_size),
                "audit.webhook_batch_size must be from 1 to 10000",
            ),
            (
                is_kept || self.policy_file().is_none(),
                "audit.policy_file has no effect without audit.log_path or audit.webhook_config_file",
            ),
            (
                !is_kept || self.policy_file().is_some(),
                "audit.log_path and audit.webhook_config_file have no effect without audit.policy_file",
            ),
        ])?;
        if let Some(file) = self.policy_file() {
            let policy = Policy::read_file(&file);
            policy.map_err(|error| format!("audit.policy_file: {error}"))?;
        }
        if let Some(file) = self.webhook_config_file() {
            let server = Server::read(&file);
            server.map_err(|error| format!("audit.webhook_config_file: {error}"))?;
        }
        Ok(())
    }

    pub(super) fn policy_file(&self) -> Option<PathBuf> {
        named(&self.policy_file)
    }

    pub(super) fn log(&self) -> Option<LogOptions> {
        let path = named(&self.log_path)?;
        Some(LogOptions {
            path,
            max_size: self.log_max_size.saturating_mul(MEBIBYTE),
            max_age: self.log_max_age,
            max_backups: self.log_max_backups,
        })
    }

    pub(super) fn webhook_config_file(&self) -> Option<PathBuf> {
        named(&self.webhook_config_file)
    }

    pub(super) const fn buffer(&self) -> usize {
        self.buffer
    }

    pub(super) const fn batches(&self) -> Batches {
        Batches {
            size: self.webhook_batch_size,
            wait: self.webhook_batch_wait,
            initial_backoff: self.webhook_initial_backoff,
        }
    }
}

fn named(path: &Path) -> Option<PathBuf> {
    (!path.as_os_str().is_empty()).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_wrong_policy_is_refused_with_the_path_of_its_field() {
        let directory = tempfile::tempdir().unwrap();
        let policy_file = directory.path().join("policy.yaml");
        let text = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: All}]\n";
        fs::write(&policy_file, text).unwrap();
        let settings = Settings {
            policy_file,
            log_path: "-".into(),
            ..Settings::default()
        };
        let error = settings.validate().unwrap_err();
        let start = r#"audit.policy_file: rules[0].level: Unsupported value: "All""#;
        assert!(error.starts_with(start), "{error}");
    }

    #[test]
    fn settings_without_effect_are_refused() {
        assert_eq!(Settings::default().validate(), Ok(()));
        let named = || PathBuf::from("x");
        for settings in [
            Settings {
                policy_file: named(),
                ..Settings::default()
            },
            Settings {
                log_path: named(),
                ..Settings::default()
            },
            Settings {
                webhook_config_file: named(),
                ..Settings::default()
            },
        ] {
            let error = settings.validate().unwrap_err();
            assert!(error.contains("no effect without"), "{error}");
        }
        let settings = Settings {
            buffer: 0,
            ..Settings::default()
        };
        assert!(settings.validate().is_err());
    }
}
