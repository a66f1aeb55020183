//! Volumes: sharing, content, modes and groups.

use setpoint_node_agent::runtime::{File, LogOptions, Mount, Runtime as _, VolumeKind};

use crate::support::docker::fixture;
use crate::support::{container, sandbox_with};

#[tokio::test]
async fn volumes_are_shared_and_filled_and_secrets_are_kept_in_memory() {
    let Some(fixture) = fixture().await else {
        return;
    };
    let file = |path: &str, content: &str| File {
        path: path.into(),
        content: content.into(),
        mode: 0o440,
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
    let mount = |volume: &str, copies| Mount {
        volume: volume.into(),
        path: format!("/{volume}"),
        read_only: false,
        copies,
        group: None,
    };
    let script = "cat /config/conf.d/a /secret/key /etc/one; touch /scratch/left /memory/left; \
                  grep -c 'tmpfs /memory' /proc/mounts; grep -c 'tmpfs /secret' /proc/mounts; stat -c %a /scratch /secret/key";
    let mut writer = container(0, &["sh", "-c", script]);
    writer.security.run_as_user = Some(1000);
    writer.security.supplemental_groups = vec![0];
    let one = mount("config", vec![file("/etc/one", "one file\n")]);
    writer.mounts = ["config", "secret", "scratch", "memory"]
        .map(|name| mount(name, Vec::new()))
        .into();
    writer.mounts.push(one);
    fixture.runtime.start(writer).await.unwrap();
    fixture.exited(0).await;
    assert_eq!(
        fixture.log(0, LogOptions::default()).await,
        "from a map\nhush\none file\n1\n1\n777\n440\n"
    );
    let mut reader = container(1, &["ls", "/scratch", "/memory"]);
    reader.mounts = ["scratch", "memory"]
        .map(|name| mount(name, Vec::new()))
        .into();
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
            copies: Vec::new(),
            group: None,
        })
        .into();
    fixture.runtime.start(config).await.unwrap();
    fixture.exited(0).await;
    let log = fixture.log(0, LogOptions::default()).await;
    assert!(log.contains("No space left on device"), "{log}");
    assert!(log.contains("Read-only file system"), "{log}");
    assert!(!log.contains("mark"), "{log}");
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
    };
    let copy = File {
        path: "/srv/one".into(),
        ..file.clone()
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
                  stat -c '%a %g' /secret /secret/key /srv/one /scratch /memory; \
                  stat -c %g /scratch/new /memory/new";
    let mut config = container(0, &["sh", "-c", script]);
    config.security.run_as_user = Some(1000);
    config.security.run_as_group = Some(1000);
    config.security.supplemental_groups = vec![4242];
    let mount = |volume: &str, copies| Mount {
        volume: volume.into(),
        path: format!("/{volume}"),
        read_only: false,
        copies,
        group: Some(4242),
    };
    config.mounts = ["secret", "scratch", "memory"]
        .map(|name| mount(name, Vec::new()))
        .into();
    config.mounts.push(mount("secret", vec![copy]));
    fixture.runtime.start(config).await.unwrap();
    fixture.exited(0).await;
    assert_eq!(
        fixture.log(0, LogOptions::default()).await,
        "hush\nhush\n2755 4242\n440 4242\n440 4242\n2777 4242\n2777 4242\n4242\n4242\n"
    );
}
