//! Reads the manifests of a node at intervals.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_controller::{Recorder, events};
use setpoint_proto::core;
use tokio::time::sleep;
use tracing::warn;

use super::directory::{Directory, Reading};
use super::{Settings, StaticPods};
use crate::pod::events::shortened;

/// The reason of the Event about a manifest that is not run as it stands.
const REASON: &str = "StaticPodManifest";

/// The manifests of one node.
pub struct ManifestSource {
    directory: Arc<Mutex<Directory>>,
    path: String,
    period: Duration,
    pods: Arc<StaticPods>,
    /// The error that was told last.
    unreadable: Mutex<Option<String>>,
}

impl ManifestSource {
    /// Returns the manifests of `node`, before they have been read.
    pub fn new(settings: &Settings, node: &str, pods: Arc<StaticPods>) -> Self {
        let path: &Path = &settings.directory;
        Self {
            directory: Arc::new(Mutex::new(Directory::new(path, node))),
            path: path.display().to_string(),
            period: settings.period,
            pods,
            unreadable: Mutex::default(),
        }
    }

    /// Reads the manifests now and at each interval, until dropped. What is wrong with one is told once, in the log and
    /// by an Event about the node.
    pub async fn run(&self, events: &Recorder, about: &core::Node) {
        loop {
            self.read(events, about).await;
            sleep(self.period).await;
        }
    }

    /// Reads the manifests.
    pub async fn read(&self, events: &Recorder, about: &core::Node) {
        let (directory, now) = (Arc::clone(&self.directory), Timestamp::now());
        let read = tokio::task::spawn_blocking(move || directory.lock().read(now)).await;
        let read = read.map_err(|panic| panic.to_string());
        let read = read.and_then(|read| read.map_err(|error| error.to_string()));
        let tell = |path: &str, problem: &str| {
            warn!(path, problem, "a manifest of a static Pod");
            let message = shortened(format!("{path}: {problem}"));
            events.warning(&events::reference_to(about), REASON, message);
        };
        match read {
            Ok(Reading { pods, problems }) => {
                self.pods.replace(pods, now);
                for (path, problem) in &problems {
                    tell(&path.display().to_string(), problem);
                }
                *self.unreadable.lock() = None;
            }
            Err(error) => {
                let known = self.unreadable.lock().replace(error.clone());
                if known.as_ref() != Some(&error) {
                    tell(&self.path, &error);
                }
            }
        }
    }
}
