//! Audit: the events of requests, in the order of their stages.

mod admission;
mod back_ends;
mod bodies;
mod calls;
mod stages;
mod users;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use setpoint_audit::{Auditor, Log, LogOptions, Policy, Sink};
use setpoint_gateway::in_process;
use setpoint_gateway::registry::Registry;
use setpoint_store::cache::Settings;
use setpoint_store::{Memory, Store};
use tempfile::TempDir;

use super::api::Api;

/// The time in which events are written.
const LIMIT: Duration = Duration::from_secs(10);

/// The log of a gateway.
pub struct Audit {
    directory: TempDir,
    pub auditor: Arc<Auditor>,
}

impl Audit {
    /// Returns the log of a policy with these rules.
    pub fn of(rules: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let log = LogOptions {
            path: directory.path().join("audit.log"),
            max_size: 0,
            max_age: Duration::ZERO,
            max_backups: 0,
        };
        let sink = Log::start(log, 10_000, Sink::default()).unwrap();
        let policy = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n{rules}");
        let policy = Policy::read(policy.as_bytes()).unwrap();
        let auditor = Arc::new(Auditor::new(policy, sink));
        Self { directory, auditor }
    }

    /// Returns the log of a policy that records all requests at a level.
    pub fn at(level: &str) -> Self {
        Self::of(&format!("- level: {level}\n"))
    }

    /// Returns a gateway that is audited, with further settings.
    pub async fn api_with(&self, with: impl FnOnce(Registry) -> Registry) -> Api {
        self.api_over(Arc::new(Memory::default()), with).await
    }

    pub async fn api_over(
        &self,
        store: Arc<dyn Store>,
        with: impl FnOnce(Registry) -> Registry,
    ) -> Api {
        let auditor = Some(self.auditor.clone());
        let with = |registry: Registry| with(registry).with_auditor(auditor);
        let registry = in_process::registry_with(store, Settings::default(), with).await;
        let api = Api::over(registry).await;
        self.forget().await;
        api
    }

    /// Returns a gateway that is audited.
    pub async fn api(&self) -> Api {
        self.api_with(|registry| registry).await
    }

    fn path(&self) -> std::path::PathBuf {
        self.directory.path().join("audit.log")
    }

    /// Empties the log.
    pub async fn forget(&self) {
        self.auditor.sink().flush(LIMIT).await;
        let path: &Path = &self.path();
        fs::File::options()
            .write(true)
            .truncate(true)
            .open(path)
            .unwrap();
    }

    /// Returns the events so far.
    pub async fn events(&self) -> Vec<Value> {
        self.auditor.sink().flush(LIMIT).await;
        let text = fs::read_to_string(self.path()).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Returns the only event of a stage.
    #[track_caller]
    pub fn only(events: &[Value], stage: &str) -> Value {
        let mut found = events.iter().filter(|event| event["stage"] == stage);
        let only = found.next().cloned();
        assert!(only.is_some() && found.next().is_none(), "{events:#?}");
        only.unwrap()
    }

    /// Returns the events once there is one of a stage.
    pub async fn until(&self, stage: &str) -> Vec<Value> {
        for _ in 0..500 {
            let events = self.events().await;
            if events.iter().any(|event| event["stage"] == stage) {
                return events;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("there is no {stage}: {:#?}", self.events().await);
    }
}

/// Returns the stages of events.
pub fn stages(events: &[Value]) -> Vec<&str> {
    let stages = events.iter().map(|event| event["stage"].as_str().unwrap());
    stages.collect()
}
