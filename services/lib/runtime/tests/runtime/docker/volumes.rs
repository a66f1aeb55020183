//! Volumes: sharing, content, modes and groups.

use setpoint_runtime::contract::{ALL_OUTPUT, container, id, sandbox_with, uid};
use setpoint_runtime::{File, HostPath, LogOptions, Mount, Runtime as _, Volume, VolumeKind};

use super::fixture::fixture;

/// Returns a mount of a volume at the path of its name.
fn mount(volume: &str) -> Mount {
    Mount {
        volume: volume.into(),
        path: format!("/{volume}"),
        ..Mount::default()
    }
}

/// Returns a mount of one of a volume's files.
fn part(volume: &str, sub_path: &str, path: &str) -> Mount {
    Mount {
        volume: volume.into(),
        path: path.into(),
        sub_path: sub_path.into(),
        read_only: true,
        files: true,
        ..Mount::default()
    }
}

#[tokio::test]
async fn volumes_are_shared_and_filled_and_secrets_are_kept_in_memory() {
    let Some(fixture) = fixture().await else {
        return;
    };
    let file = |path: &str, content: &str| File {
        path: path.into(),
        content: content.into(),
        mode: 0o440,
        user: None,
    };
    let files = |file, secret| VolumeKind::Files {
        files: vec![file],
        secret,
    };
    let sandbox = sandbox_with([
        ("config", files(file("conf.d/a", "from a map\n"), false)),
        ("secret", files(file("key", "hush\n"), true)),
        ("scratch", VolumeKind::Empty),
        ("memory", VolumeKind::Memory(1 << 20)),
    ]);
    fixture.runtime.run_sandbox(sandbox).await.unwrap();
    let script = "cat /config/conf.d/a /secret/key /etc/one; touch /scratch/left /memory/left; \
                  grep -c 'tmpfs /memory' /proc/mounts; grep -c 'tmpfs /secret' /proc/mounts; stat -L -c %a /scratch /secret/key";
    let mut writer = container(0, &["sh", "-c", script]);
    writer.security.run_as_user = Some(1000);
    writer.security.supplemental_groups = vec![0];
    writer.mounts = ["config", "secret", "scratch", "memory"].map(mount).into();
    writer.mounts.push(part("config", "conf.d/a", "/etc/one"));
    fixture.runtime.start(writer).await.unwrap();
    fixture.exited(0).await;
    assert_eq!(
        fixture.log(0, LogOptions::default()).await,
        "from a map\nhush\nfrom a map\n1\n1\n777\n440\n"
    );
    let mut reader = container(1, &["ls", "/scratch", "/memory"]);
    reader.mounts = ["scratch", "memory"].map(mount).into();
    fixture.runtime.start(reader).await.unwrap();
    fixture.exited(1).await;
    assert_eq!(
        fixture.log(1, LogOptions::default()).await,
        "/memory:\nleft\n\n/scratch:\nleft\n"
    );
}

#[tokio::test]
async fn a_volume_has_its_size_limit_and_read_only_flag_and_hides_files_of_the_image() {
    let Some(fixture) = fixture().await else {
        return;
    };
    let sandbox = sandbox_with([
        ("srv", VolumeKind::Empty),
        ("memory", VolumeKind::Memory(1 << 20)),
    ]);
    fixture.runtime.run_sandbox(sandbox).await.unwrap();
    let script = "exec 2>&1; dd if=/dev/zero of=/memory/big bs=1M count=3; touch /srv/new; ls /srv";
    let mut config = container(0, &["sh", "-c", script]);
    config.mounts = [("srv", true), ("memory", false)]
        .map(|(volume, read_only)| Mount {
            volume: volume.into(),
            path: format!("/{volume}"),
            read_only,
            ..Mount::default()
        })
        .into();
    fixture.runtime.start(config).await.unwrap();
    fixture.exited(0).await;
    let log = fixture.log(0, LogOptions::default()).await;
    assert!(log.contains("No space left on device"), "{log}");
    assert!(log.contains("Read-only file system"), "{log}");
    assert!(!log.contains("mark"), "{log}");
}

/// Checks K17.
#[tokio::test]
async fn files_of_volumes_are_mounted_over_a_read_only_root_and_over_files_of_the_engine() {
    let Some(fixture) = fixture().await else {
        return;
    };
    let sandbox = sandbox_with([("config", files("one"))]);
    fixture.runtime.run_sandbox(sandbox).await.unwrap();
    let script =
        "cat /config/one /etc/passwd /etc/resolv.conf; touch /new 2>/dev/null || echo refused";
    let mut config = container(0, &["sh", "-c", script]);
    config.security.read_only = true;
    config.mounts = vec![
        mount("config"),
        part("config", "one", "/etc/passwd"),
        part("config", "conf.d/a", "/etc/resolv.conf"),
    ];
    fixture.runtime.start(config).await.unwrap();
    fixture.exited(0).await;
    let log = fixture.log(0, LogOptions::default()).await;
    assert_eq!(log, "oneoneonerefused\n");
    fixture.clean_up().await;
}

/// Checks K16.
#[tokio::test]
async fn the_fs_group_may_read_files_and_write_to_writable_volumes() {
    let Some(fixture) = fixture().await else {
        return;
    };
    let file = File {
        path: "key".into(),
        content: "hush\n".into(),
        mode: 0o400,
        user: None,
    };
    let files = VolumeKind::Files {
        files: vec![file],
        secret: true,
    };
    let kinds = [
        ("secret", files),
        ("scratch", VolumeKind::Empty),
        ("memory", VolumeKind::Memory(1 << 20)),
    ];
    let mut sandbox = sandbox_with(kinds);
    for volume in &mut sandbox.volumes {
        volume.group = Some(4242);
    }
    fixture.runtime.run_sandbox(sandbox).await.unwrap();
    let script = "exec 2>&1; cat /secret/key /srv/one; touch /scratch/new /memory/new; \
                  stat -L -c '%a %g' /secret /secret/key /srv/one /scratch /memory; \
                  stat -c %g /scratch/new /memory/new";
    let mut config = container(0, &["sh", "-c", script]);
    config.security.run_as_user = Some(1000);
    config.security.run_as_group = Some(1000);
    config.security.supplemental_groups = vec![4242];
    config.mounts = ["secret", "scratch", "memory"].map(mount).into();
    config.mounts.push(part("secret", "key", "/srv/one"));
    fixture.runtime.start(config).await.unwrap();
    fixture.exited(0).await;
    assert_eq!(
        fixture.log(0, LogOptions::default()).await,
        "hush\nhush\n2755 4242\n440 4242\n440 4242\n2777 4242\n2777 4242\n4242\n4242\n"
    );
}

fn files(content: &str) -> VolumeKind {
    let file = |path: &str| File {
        path: path.into(),
        content: content.into(),
        mode: 0o444,
        user: None,
    };
    VolumeKind::Files {
        files: vec![file("conf.d/a"), file(content)],
        secret: false,
    }
}

/// All files of a volume change at once, while the container runs.
#[tokio::test]
async fn the_files_of_a_volume_are_replaced_while_a_container_reads_them() {
    let Some(fixture) = fixture().await else {
        return;
    };
    let sandbox = sandbox_with([("config", files("one"))]);
    fixture.runtime.run_sandbox(sandbox).await.unwrap();
    let mut config = container(0, &["sleep", "1000"]);
    config.mounts = vec![Mount {
        volume: "config".into(),
        path: "/config".into(),
        read_only: true,
        ..Mount::default()
    }];
    fixture.runtime.start(config).await.unwrap();
    fixture.running(0).await;
    let script = "cat /config/conf.d/a; echo; ls /config";
    let command = ["sh", "-c", script];
    let read = || fixture.run(&command, ALL_OUTPUT, &[]);
    assert_eq!(read().await.0, "one\nconf.d\none\n");
    for _ in 0..2 {
        let volume = Volume {
            name: "config".into(),
            kind: files("two"),
            group: None,
        };
        let updated = fixture.runtime.update_volumes(&uid(), vec![volume]).await;
        updated.unwrap();
        assert_eq!(read().await.0, "two\nconf.d\ntwo\n");
    }
    fixture.clean_up().await;
}

#[tokio::test]
async fn a_path_of_the_machine_is_mounted_and_made_if_there_is_nothing() {
    let Some(fixture) = fixture().await else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made");
    fixture.runtime.run_sandbox(sandbox_with([])).await.unwrap();
    let mut config = container(0, &["touch", "/host/new"]);
    config.mounts = vec![Mount {
        volume: "host".into(),
        path: "/host".into(),
        host: Some(HostPath {
            path: path.display().to_string(),
            root: path.display().to_string(),
            create: true,
        }),
        ..Mount::default()
    }];
    fixture.runtime.start(config).await.unwrap();
    assert_eq!(fixture.exited(0).await.code, 0);
    assert!(path.join("new").exists());
    fixture.clean_up().await;
}

/// Checks K13.
#[tokio::test]
async fn what_a_container_writes_beside_its_volumes_is_measured() {
    let Some(fixture) = fixture().await else {
        return;
    };
    let fill = ["dd", "if=/dev/zero", "of=/tmp/large", "bs=1M", "count=3"];
    fixture.start(0, &fill).await;
    fixture.exited(0).await;
    let usage = fixture.runtime.disk_usage([uid()].into()).await;
    let space = usage.containers[&id(0)];
    assert!(
        (3 << 20..4 << 20).contains(&space.total().bytes),
        "{space:?}"
    );
}
