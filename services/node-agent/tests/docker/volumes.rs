//! Volumes: shared by the containers of a Pod, filled before they start.

use setpoint_node_agent::runtime::{File, LogOptions, Mount, Runtime as _, VolumeKind};

use crate::support::docker::bench;
use crate::support::{container, sandbox_with};

#[tokio::test]
async fn volumes_are_shared_filled_and_kept_from_the_disk_where_they_are_secret() {
    let Some(bench) = bench().await else { return };
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
    bench.runtime.run_sandbox(sandbox).await.unwrap();
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
    bench.runtime.start(writer).await.unwrap();
    bench.exited(0).await;
    assert_eq!(
        bench.log(0, LogOptions::default()).await,
        "from a map\nhush\none file\n1\n1\n777\n440\n"
    );
    let mut reader = container(1, &["ls", "/scratch", "/memory"]);
    reader.mounts = ["scratch", "memory"]
        .map(|name| mount(name, Vec::new()))
        .into();
    bench.runtime.start(reader).await.unwrap();
    bench.exited(1).await;
    assert_eq!(
        bench.log(1, LogOptions::default()).await,
        "/memory:\nleft\n\n/scratch:\nleft\n"
    );
}

#[tokio::test]
async fn a_volume_is_as_big_as_it_may_be_as_closed_as_it_is_to_be_and_hides_what_the_image_has() {
    let Some(bench) = bench().await else { return };
    let sandbox = sandbox_with([
        ("srv", VolumeKind::Empty),
        ("memory", VolumeKind::Memory(1 << 20)),
    ]);
    bench.runtime.run_sandbox(sandbox).await.unwrap();
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
    bench.runtime.start(config).await.unwrap();
    bench.exited(0).await;
    let log = bench.log(0, LogOptions::default()).await;
    assert!(log.contains("No space left on device"), "{log}");
    assert!(log.contains("Read-only file system"), "{log}");
    assert!(!log.contains("mark"), "{log}");
}

/// Checks K16.
#[tokio::test]
async fn the_group_of_a_pods_volumes_may_read_its_files_and_write_where_containers_write() {
    let Some(bench) = bench().await else { return };
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
    bench.runtime.run_sandbox(sandbox).await.unwrap();
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
    bench.runtime.start(config).await.unwrap();
    bench.exited(0).await;
    assert_eq!(
        bench.log(0, LogOptions::default()).await,
        "hush\nhush\n2755 4242\n440 4242\n440 4242\n2777 4242\n2777 4242\n4242\n4242\n"
    );
}
