//! Termination messages of containers.
//!
//! Each container has a file of its own in a volume of its Pod, which is mounted at the path that its spec names, and
//! read through the pause container once the container has ended. Files below the container's /dev would be gone then.

use std::collections::HashMap;
use std::io::Read as _;

use bollard::errors::Error as BollardError;
use bollard::models::{ContainerInspectResponse, Mount, MountType};
use bollard::query_parameters::{DownloadFromContainerOptionsBuilder, LogsOptionsBuilder};
use futures::StreamExt as _;
use tracing::debug;

use super::identity::{Identity, Labels};
use super::{Shared, ask, volume};
use crate::termination::{MAX_LOG, MAX_LOG_LINES, of_file, of_log};
use crate::{Exit, File, TerminationMessage, Volume, VolumeKind};

/// Name of the volume. No volume of a Pod can have it, because of its dot.
const VOLUME: &str = "setpoint.termination";
/// Labels of a container with a message.
const PATH: &str = "setpoint.dev/termination-message-path";
const POLICY: &str = "setpoint.dev/termination-message-policy";
const FALLBACK: &str = "FallbackToLogsOnError";
/// Maximum number of bytes that are read of an archive with a message. What is behind is not part of the message.
const MAX_ARCHIVE: usize = 1 << 20;

/// Returns the labels by which the message is found after a restart of the agent.
pub fn labels(message: &TerminationMessage) -> HashMap<String, String> {
    let policy = if message.falls_back_to_logs {
        FALLBACK
    } else {
        "File"
    };
    [(PATH, message.path.as_str()), (POLICY, policy)]
        .map(|(label, value)| (label.to_owned(), value.to_owned()))
        .into()
}

/// Returns the volume of a Pod's messages.
pub fn volume() -> Volume {
    Volume {
        name: VOLUME.to_owned(),
        kind: VolumeKind::Empty,
        group: None,
    }
}

fn file_name(identity: &Identity) -> String {
    format!("{}-{}", identity.id.name, identity.id.attempt)
}

fn file_path(identity: &Identity) -> String {
    format!("{}/{}", volume::mount_path(&volume()), file_name(identity))
}

impl Shared {
    /// Creates the file for a container's message; returns its mount, or `None` if the container has no message.
    pub(super) async fn message_file(
        &self,
        identity: &Identity,
        message: &TerminationMessage,
    ) -> Result<Option<Mount>, BollardError> {
        if message.path.is_empty() {
            return Ok(None);
        }
        let name = volume::name(&identity.id.uid, VOLUME);
        let volume = match self.engine.client.inspect_volume(&name).await {
            // A sandbox from before there were messages.
            Err(error) if super::is_not_found(&error) => return Ok(None),
            volume => volume?,
        };
        let empty = File {
            path: file_path(identity),
            content: Vec::new(),
            mode: 0o666,
            user: None,
        };
        self.copy_message(&identity.id.uid, empty).await?;
        Ok(Some(Mount {
            typ: Some(MountType::BIND),
            source: Some(format!("{}/{}", volume.mountpoint, file_name(identity))),
            target: Some(message.path.clone()),
            ..Mount::default()
        }))
    }

    /// Adds the message of a container that has ended to its end.
    pub(super) async fn with_message(
        &self,
        container: &ContainerInspectResponse,
        identity: &Identity,
        exit: Exit,
    ) -> Exit {
        let none = Labels::new();
        let config = container.config.as_ref();
        let labels = config
            .and_then(|config| config.labels.as_ref())
            .unwrap_or(&none);
        if !labels.contains_key(PATH) || !exit.message.is_empty() {
            return exit;
        }
        let mut message = self.read_message(identity).await;
        let falls_back = labels.get(POLICY).is_some_and(|policy| policy == FALLBACK);
        if message.is_empty() && falls_back && exit.code != 0 {
            message = self
                .read_log_end(container.id.as_deref().unwrap_or_default())
                .await;
        }
        Exit { message, ..exit }
    }

    async fn read_message(&self, identity: &Identity) -> String {
        let pause = self.pauses.lock().get(&identity.id.uid).cloned();
        let Some(pause) = pause else {
            return String::new();
        };
        let path = file_path(identity);
        // It is read when the end is noticed, and not later.
        match ask(|| self.read_file(&pause.runtime_id, &path)).await {
            Ok(content) => of_file(&content),
            Err(error) => {
                debug!(container = %identity.id, %error, "cannot read the termination message");
                String::new()
            }
        }
    }

    /// Reads the start of a file of a container.
    pub(super) async fn read_file(
        &self,
        runtime_id: &str,
        path: &str,
    ) -> Result<Vec<u8>, BollardError> {
        let options = DownloadFromContainerOptionsBuilder::default()
            .path(path)
            .build();
        let client = &self.engine.client;
        let mut pieces = std::pin::pin!(client.download_from_container(runtime_id, Some(options)));
        let mut archive = Vec::new();
        while let Some(piece) = pieces.next().await {
            archive.extend_from_slice(&piece?);
            if archive.len() >= MAX_ARCHIVE {
                break;
            }
        }
        Ok(first_file(&archive))
    }

    async fn read_log_end(&self, runtime_id: &str) -> String {
        let options = LogsOptionsBuilder::default()
            .stdout(true)
            .stderr(true)
            .tail(&MAX_LOG_LINES.to_string())
            .build();
        let mut pieces = std::pin::pin!(self.engine.client.logs(runtime_id, Some(options)));
        let mut log = Vec::new();
        while let Some(Ok(piece)) = pieces.next().await {
            log.extend_from_slice(&piece.into_bytes());
            // Lines may be long.
            let excess = log.len().saturating_sub(MAX_LOG);
            log.drain(..excess);
        }
        of_log(&log)
    }
}

/// Returns the content of the first file of an archive, which may be cut.
fn first_file(archive: &[u8]) -> Vec<u8> {
    let mut archive = tar::Archive::new(archive);
    let mut content = Vec::new();
    let mut entries = archive.entries().into_iter().flatten();
    if let Some(Ok(mut entry)) = entries.next() {
        // The error of a cut archive comes after its content.
        let _ = entry.read_to_end(&mut content);
    }
    content
}
