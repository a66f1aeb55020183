//! Mounts beyond the contract: propagation, and what not every runtime can do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use setpoint_runtime::contract::{ALL_OUTPUT, Fixture, IMAGE, container, sandbox_with};
use setpoint_runtime::cri::Cri;
use setpoint_runtime::{
    ContainerConfig, Error, HostPath, ImageVolume, Mount, Pull, RecursiveReadOnly, Runtime as _,
    VolumeKind,
};
use tempfile::TempDir;

use super::fixture::{Containerd, fixture, fixture_of};

/// A directory in which mounts are shared, as they are on most machines.
struct Shared(TempDir);

impl Shared {
    fn mount() -> Self {
        let shared = Self(tempfile::tempdir().unwrap());
        let path = shared.path().display().to_string();
        run(&["mount", "--bind", &path, &path]);
        run(&["mount", "--make-shared", &path]);
        fs::create_dir(shared.path().join("later")).unwrap();
        shared
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Mounts another file system in it, with a file.
    fn mount_later(&self) {
        let path = self.path().join("later");
        run(&["mount", "-t", "tmpfs", "tmpfs", &path.display().to_string()]);
        fs::write(path.join("file"), "").unwrap();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-R").arg(self.path()).output();
        assert!(unmounted.is_ok_and(|unmounted| unmounted.status.success()));
    }
}

fn run(words: &[&str]) {
    let done = Command::new(words[0]).args(&words[1..]).output().unwrap();
    assert!(done.status.success(), "{words:?}: {done:?}");
}

fn host_path(path: &Path) -> HostPath {
    let path = path.display().to_string();
    HostPath {
        root: path.clone(),
        path,
        create: false,
    }
}

#[tokio::test]
async fn what_is_mounted_in_a_volume_later_appears_where_the_mount_propagates() {
    let Some(fixture) = fixture().await else {
        return;
    };
    let shared = Shared::mount();
    let host = host_path(shared.path());
    let volumes = [("data", VolumeKind::Host(host.clone()))];
    fixture
        .runtime
        .run_sandbox(sandbox_with(volumes))
        .await
        .unwrap();
    let mount = |path: &str, propagates| Mount {
        volume: "data".into(),
        path: path.into(),
        host: Some(host.clone()),
        propagates,
        ..Mount::default()
    };
    let config = ContainerConfig {
        mounts: vec![mount("/follows", true), mount("/stays", false)],
        ..container(0, &["sleep", "1000"])
    };
    fixture.runtime.start(config).await.unwrap();
    fixture.running(0).await;
    shared.mount_later();
    for (path, expected) in [("/follows/later", "file\n"), ("/stays/later", "")] {
        let (seen, _, code) = fixture.run(&["ls", path], ALL_OUTPUT, &[]).await;
        assert_eq!((seen.as_str(), code), (expected, 0), "{path}");
    }
    fixture.clean_up().await;
}

/// Starts a container with a mount; returns why it does not start.
async fn refusal(fixture: &Fixture<Cri>, mount: Mount) -> String {
    let config = ContainerConfig {
        mounts: vec![mount],
        ..container(0, &["true"])
    };
    match fixture.runtime.start(config).await {
        Err(Error::Config(message)) => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn mounts_that_the_runtime_does_not_support_are_refused_and_asked_for_if_possible() {
    let Some(containerd) = Containerd::start() else {
        return;
    };
    if containerd
        .features()
        .await
        .supplemental_groups_policy
        .is_some()
    {
        eprintln!("SKIPPED: this containerd is too new to refuse them");
        return;
    }
    let fixture = fixture_of(containerd).await;
    let host = host_path(&PathBuf::from("/srv"));
    let volumes = [
        ("data", VolumeKind::Host(host.clone())),
        ("files", VolumeKind::Image),
    ];
    let run = fixture.runtime.run_sandbox(sandbox_with(volumes));
    run.await.unwrap();
    let recursive = |recursive_read_only| Mount {
        volume: "data".into(),
        path: "/data".into(),
        host: Some(host.clone()),
        read_only: true,
        recursive_read_only,
        ..Mount::default()
    };
    // Of containerd before 2.0 and 2.1.
    let refused = refusal(&fixture, recursive(RecursiveReadOnly::Enabled)).await;
    let expected = "volume \"data\" requested recursive read-only mode, but it is not supported by the runtime";
    assert_eq!(refused, expected);
    let image = Mount {
        volume: "files".into(),
        path: "/files".into(),
        image: Some(ImageVolume {
            reference: IMAGE.into(),
            pull: Pull::Never,
            volume: String::new(),
        }),
        ..Mount::default()
    };
    let refused = refusal(&fixture, image).await;
    assert!(
        refused.starts_with("volume \"files\": containerd 1.6.")
            && refused.ends_with(" does not support image volumes"),
        "{refused}"
    );
    let config = ContainerConfig {
        mounts: vec![recursive(RecursiveReadOnly::IfPossible)],
        ..container(0, &["sh", "-c", "! touch /data/x"])
    };
    fixture.runtime.start(config).await.unwrap();
    assert_eq!(fixture.exited(0).await.code, 0);
}
