//! Rotates the logs of running containers: the agent renames the file that is full, and the runtime opens a new one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use k8s_cri::v1::ReopenContainerLogRequest;
use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;

use super::Shared;
use super::client::{call, message_of};
use crate::{Container, LogLimits, State};

/// Interval at which sizes are checked, as the kubelet's `containerLogMonitorInterval`.
const INTERVAL: Duration = Duration::from_secs(10);

impl Shared {
    /// Rotates logs until dropped.
    pub(super) async fn rotate_logs(&self) {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.rotate_full_logs().await;
        }
    }

    async fn rotate_full_logs(&self) {
        let running = self.table.lock().alive();
        let running = running.iter();
        for container in running.filter(|one| matches!(one.state, State::Running { .. })) {
            if let Err(error) = self.rotate_if_full(container).await {
                warn!(container = %container.id, error, "cannot rotate the log of the container");
            }
        }
    }

    async fn rotate_if_full(&self, container: &Container) -> Result<(), String> {
        let (Some(limits), Some(sandbox)) = (
            self.configs
                .lock()
                .get(&container.id)
                .map(|config| config.log),
            self.sandbox_config(&container.id.uid),
        ) else {
            return Ok(());
        };
        let log = self.files.log(&sandbox, &container.id);
        let size = fs::metadata(&log).map_or(0, |meta| meta.len());
        if size < limits.max_size {
            return Ok(());
        }
        let rotated = rotate(&log, Timestamp::now()).map_err(|error| error.to_string())?;
        let request = ReopenContainerLogRequest {
            container_id: container.runtime_id.clone(),
        };
        let reopened = call(self.service.runtime().reopen_container_log(request)).await;
        if let Err(status) = reopened {
            // It still writes to the file that was renamed.
            let restored = fs::rename(&rotated, &log).err();
            let restored = restored.map(|error| format!("; {error}"));
            return Err(message_of(&status) + &restored.unwrap_or_default());
        }
        remove_oldest(&log, container.id.attempt, limits).map_err(|error| error.to_string())
    }
}

/// Renames a full log, as the kubelet does. Returns its new name.
fn rotate(log: &Path, now: Timestamp) -> io::Result<PathBuf> {
    let time = now.to_zoned(TimeZone::UTC);
    let mut name = log.as_os_str().to_owned();
    name.push(format!(".{}", time.strftime("%Y%m%d-%H%M%S")));
    let rotated = PathBuf::from(name);
    fs::rename(log, &rotated)?;
    Ok(rotated)
}

/// Removes the oldest files, so that with the one that is written there are as many as allowed.
fn remove_oldest(log: &Path, attempt: u32, limits: LogLimits) -> io::Result<()> {
    let folder = log.parent().unwrap_or(Path::new("/"));
    let mut rotated = files(folder, attempt)?;
    rotated.retain(|path| path != log);
    rotated.sort();
    let most = usize::try_from(limits.max_files.saturating_sub(1)).unwrap_or(usize::MAX);
    let excess = rotated.len().saturating_sub(most);
    rotated.iter().take(excess).try_for_each(fs::remove_file)
}

/// Returns the files of the log of an attempt at the container whose logs are in this directory.
///
/// # Errors
/// If the directory cannot be read.
pub fn files(folder: &Path, attempt: u32) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let (current, older) = (format!("{attempt}.log"), format!("{attempt}.log."));
    let paths = entries.flatten().filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name == current || name.starts_with(&older)
    });
    Ok(paths.map(|entry| entry.path()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_files_of_an_attempt_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("1.log");
        fs::write(folder.path().join("11.log"), "other").unwrap();
        let limits = LogLimits {
            max_size: 1,
            max_files: 3,
        };
        for second in 0..4 {
            fs::write(&log, format!("{second}\n")).unwrap();
            let now = Timestamp::from_second(1_700_000_000 + second).unwrap();
            let rotated = rotate(&log, now).unwrap();
            assert!(
                rotated
                    .to_string_lossy()
                    .ends_with(&format!("1.log.20231114-22132{second}"))
            );
            fs::write(&log, "").unwrap();
            remove_oldest(&log, 1, limits).unwrap();
        }
        let mut left = files(folder.path(), 1).unwrap();
        left.sort();
        let texts: Vec<_> = left
            .iter()
            .map(|path| fs::read_to_string(path).unwrap())
            .collect();
        assert_eq!(texts, ["", "2\n", "3\n"]);
        assert!(files(&folder.path().join("none"), 1).unwrap().is_empty());
    }
}
