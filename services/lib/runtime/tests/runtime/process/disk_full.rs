//! An agent whose file system has no space left: nothing that runs is lost, what cannot be written is refused with the
//! reason, and all goes on once there is space.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use setpoint_runtime::contract::{
    POLL_INTERVAL, TIMEOUT, container, id, sandbox, sandbox_with, uid,
};
use setpoint_runtime::{
    self as runtime, ContainerConfig, LogLimits, LogOptions, Runtime as _, Volume, VolumeKind,
};
use setpoint_testkit::SmallDisk;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use super::fixture::{OnDisk, process_in};
use super::wait_until_trap_is_set;

const NO_SPACE: &str = "No space left on device (os error 28)";
/// A grace period that no test reaches.
const LONG: Duration = Duration::from_secs(1000);

/// Returns an agent with its state on the disk.
fn agent_on(disk: &SmallDisk) -> OnDisk {
    process_in(Arc::new(TempDir::new_in(disk.path()).unwrap()))
}

/// Returns the message of an error with its cause.
fn reason(error: &impl std::error::Error) -> String {
    format!("{error}: {}", error.source().unwrap())
}

#[tokio::test]
async fn the_end_of_a_container_is_recorded() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let agent = agent_on(&disk);
    let script =
        "trap 'head -c 100000 /dev/zero; exit 3' TERM; echo armed; while :; do sleep 0.01; done";
    agent.start(0, &["sh", "-c", script]).await;
    wait_until_trap_is_set(&agent).await;
    disk.fill();
    agent.runtime.stop(&id(0), LONG).await.unwrap();
    assert_eq!(agent.exited(0).await.code, 3);
    assert!(agent.file(0, "exit.json").contains(r#""code":3"#));
    let log = agent.log(0, LogOptions::default()).await;
    assert!(log.starts_with("armed\n"), "{log:?}");
}

#[tokio::test]
async fn a_container_is_not_created_until_there_is_space() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let agent = agent_on(&disk);
    agent.runtime.run_sandbox(sandbox()).await.unwrap();
    disk.fill();
    for _ in 0..2 {
        let refused = agent.runtime.start(container(0, &["true"])).await;
        let reason = reason(&refused.unwrap_err());
        assert!(
            reason.starts_with("cannot read or write the state of "),
            "{reason}"
        );
        assert!(reason.ends_with(NO_SPACE), "{reason}");
        assert_eq!(agent.container(0), None);
    }
    disk.free();
    agent.start(0, &["true"]).await;
    assert_eq!(agent.exited(0).await.code, 0);
}

#[tokio::test]
async fn a_sandbox_is_not_created_until_there_is_space() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let agent = agent_on(&disk);
    disk.fill();
    let refused = agent.runtime.run_sandbox(sandbox()).await;
    let reason = reason(&refused.unwrap_err());
    assert!(reason.ends_with(NO_SPACE), "{reason}");
    assert!(agent.runtime.pods().is_empty());
    disk.free();
    agent.start(0, &["true"]).await;
    assert_eq!(agent.exited(0).await.code, 0);
}

#[tokio::test]
async fn a_volume_keeps_its_files_until_new_ones_fit() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let agent = agent_on(&disk);
    let kind = |content: &str| VolumeKind::Files {
        files: vec![runtime::File {
            path: "key".into(),
            content: content.into(),
            mode: 0o644,
            user: None,
        }],
        secret: false,
    };
    let update = async |content: &str| {
        let volume = Volume {
            name: "settings".into(),
            kind: kind(content),
            group: None,
        };
        agent.runtime.update_volumes(&uid(), vec![volume]).await
    };
    let sandbox = sandbox_with([("settings", kind("old"))]);
    agent.runtime.run_sandbox(sandbox).await.unwrap();
    let folder = agent.volume("settings");
    let content = || std::fs::read_to_string(folder.join("key")).unwrap();
    disk.fill();
    let reason = reason(&update("new").await.unwrap_err());
    assert!(reason.ends_with(NO_SPACE), "{reason}");
    assert_eq!(content(), "old");
    disk.free();
    update("new").await.unwrap();
    assert_eq!(content(), "new");
    assert_eq!(versions(&folder), 1, "nothing is left of what did not fit");
}

/// Returns the number of directories of versions in a volume.
fn versions(volume: &Path) -> usize {
    let entries = std::fs::read_dir(volume).unwrap().flatten();
    entries
        .filter(|entry| entry.file_type().unwrap().is_dir())
        .count()
}

#[tokio::test]
async fn a_log_goes_on_once_there_is_space() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let agent = agent_on(&disk);
    agent.runtime.run_sandbox(sandbox()).await.unwrap();
    let marker = tempfile::NamedTempFile::new().unwrap();
    let script = format!(
        "trap 'head -c 200000 /dev/zero; rm {}; while [ -e {} ]; do sleep 0.01; done; echo again; exit 0' TERM
        echo armed; while :; do sleep 0.01; done",
        marker.path().display(),
        disk.filling().display(),
    );
    let config = ContainerConfig {
        log: LogLimits {
            max_size: 10_000,
            max_files: 3,
        },
        ..container(0, &["sh", "-c", &script])
    };
    agent.runtime.start(config).await.unwrap();
    wait_until_trap_is_set(&agent).await;
    disk.fill();
    agent.runtime.stop(&id(0), LONG).await.unwrap();
    let written = async {
        while marker.path().exists() {
            sleep(POLL_INTERVAL).await;
        }
    };
    timeout(TIMEOUT, written).await.expect("the output is read");
    disk.free();
    assert_eq!(agent.exited(0).await.code, 0);
    let log = agent.log(0, LogOptions::default()).await;
    assert!(log.ends_with("again\n"), "{log:?}");
}
