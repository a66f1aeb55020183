//! Volumes, seen from inside of containers, on every runtime that runs programs.

use std::path::PathBuf;

use tokio::time::timeout;

use super::{ALL_OUTPUT, Fixture, POLL_INTERVAL, TIMEOUT, container, id, sandbox_with, uid};
use crate::{ContainerConfig, File, HostPath, LogOptions, Mount, Runtime, Volume, VolumeKind};

/// Returns a path of this test in containers. Those that are processes share it with the machine.
fn at(path: &str) -> String {
    format!("/tmp/setpoint-test-{}/{path}", uid())
}

/// Removes the Pod, its volumes in memory, and the paths that were made on the machine.
async fn end<R: Runtime>(fixture: Fixture<R>) {
    let runtime = fixture.runtime.clone();
    fixture.clean_up().await;
    runtime.remove_sandbox(&uid()).await.unwrap();
    for folder in [at(""), machine_path()] {
        let _ = std::fs::remove_dir_all(folder);
    }
}

fn machine_path() -> String {
    format!("/tmp/setpoint-test-machine-{}", uid())
}

/// Makes a folder of the machine that is no volume's; [`end`] removes it.
fn folder_of_machine() -> PathBuf {
    let path = PathBuf::from(machine_path());
    std::fs::create_dir(&path).unwrap();
    path
}

/// Returns whether volumes can be mounted; says so if not.
fn mounts<R: Runtime>(fixture: &Fixture<R>) -> bool {
    let mounts = fixture.runtime.mounts_volumes();
    if !mounts {
        eprintln!("SKIPPED: this agent may not mount volumes");
    }
    mounts
}

fn file(path: &str, content: &str) -> File {
    File {
        path: path.into(),
        content: content.into(),
        mode: 0o440,
        user: None,
    }
}

fn files(path: &str, content: &str, secret: bool) -> VolumeKind {
    VolumeKind::Files {
        files: vec![file(path, content)],
        secret,
    }
}

/// Returns a mount of a volume at the path of its name.
fn mount(volume: &str) -> Mount {
    part(volume, volume, "")
}

fn part(volume: &str, path: &str, sub_path: &str) -> Mount {
    Mount {
        volume: volume.into(),
        path: at(path),
        sub_path: sub_path.into(),
        ..Mount::default()
    }
}

/// Returns a container that runs a script in the directory of its mounts.
fn script(attempt: u32, script: &str, mounts: Vec<Mount>) -> ContainerConfig {
    let script = format!("exec 2>&1; cd {}; {script}", at(""));
    ContainerConfig {
        mounts,
        ..container(attempt, &["sh", "-c", &script])
    }
}

impl<R: Runtime> Fixture<R> {
    /// Runs a container to its end; returns its output.
    async fn output(&self, config: ContainerConfig) -> String {
        let attempt = config.id.attempt;
        self.runtime.start(config).await.unwrap();
        let exit = self.exited(attempt).await;
        let log = self.log(attempt, LogOptions::default()).await;
        assert_ne!(exit.reason(), "StartError", "{} {log}", exit.message);
        log
    }
}

pub async fn volumes_are_filled_and_shared_and_written_only_where_they_may_be<R: Runtime>(
    fixture: Fixture<R>,
) {
    if !mounts(&fixture) {
        return;
    }
    let sandbox = sandbox_with([
        ("config", files("conf.d/a", "from a map\n", false)),
        ("secret", files("key", "hush\n", true)),
        ("scratch", VolumeKind::Empty),
        ("memory", VolumeKind::Memory(1 << 20)),
    ]);
    fixture.runtime.run_sandbox(sandbox).await.unwrap();
    let all = ["config", "secret", "scratch", "memory"];
    let mut writer = script(
        0,
        "cat config/conf.d/a secret/key; touch scratch/left memory/left config/new; stat -L -c %a scratch secret/key",
        all.map(mount).into(),
    );
    for mount in &mut writer.mounts[..2] {
        mount.read_only = true;
    }
    let log = fixture.output(writer).await;
    let (first, rest) = log.split_at("from a map\nhush\n".len());
    assert_eq!(first, "from a map\nhush\n");
    assert!(rest.contains("Read-only file system"), "{log}");
    assert!(rest.ends_with("777\n440\n"), "{log}");
    let look = "ls scratch memory; ls config";
    let reader = script(1, look, ["scratch", "memory"].map(mount).into());
    let log = fixture.output(reader).await;
    assert!(
        log.contains("memory:\nleft\n") && log.contains("scratch:\nleft\n"),
        "{log}"
    );
    assert!(
        !log.contains("conf.d"),
        "it has only the volumes that it mounts: {log}"
    );
    end(fixture).await;
}

/// Checks K14.
pub async fn a_part_of_a_volume_is_made_and_mounted_and_never_leads_out_of_it<R: Runtime>(
    fixture: Fixture<R>,
) {
    if !mounts(&fixture) {
        return;
    }
    let sandbox = sandbox_with([
        ("data", VolumeKind::Empty),
        ("memory", VolumeKind::Memory(1 << 20)),
        ("config", files("conf.d/a", "one\n", false)),
    ]);
    fixture.runtime.run_sandbox(sandbox).await.unwrap();
    let mut whole = part("config", "one", "conf.d/a");
    whole.files = true;
    let writer = script(
        0,
        "ln -s /etc data/out; ln -s logs/web data/in; echo part >part/file; echo small >memory/file; \
         cat data/logs/web/file one; stat -c %a part; ls data",
        vec![
            mount("data"),
            part("data", "part", "logs/web"),
            part("memory", "memory", "sub"),
            whole,
        ],
    );
    let log = fixture.output(writer).await;
    assert_eq!(log, "part\none\n777\nin\nlogs\nout\n");
    let reader = script(
        1,
        "cat file linked/file memory/sub/file",
        vec![
            part("data", "file", "logs/web/file"),
            part("data", "linked", "in"),
            mount("memory"),
        ],
    );
    assert_eq!(fixture.output(reader).await, "part\npart\nsmall\n");
    let escaping = script(2, "ls outside", vec![part("data", "outside", "out")]);
    let refused = fixture.runtime.start(escaping).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "failed to prepare subPath for volumeMount \"data\" of container \"main\": the path is not within the volume"
    );
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let ours = [format!("/run/setpoint/subpaths/test-{}/", uid()), at("")];
    let left = ours.iter().any(|ours| mounts.contains(ours.as_str()));
    assert!(!left, "nothing stays mounted: {mounts}");
    end(fixture).await;
}

pub async fn the_files_of_a_volume_change_at_once_while_a_container_reads_them<R: Runtime>(
    fixture: Fixture<R>,
) {
    if !mounts(&fixture) {
        return;
    }
    let sandbox = sandbox_with([("config", files("key", "one\n", false))]);
    fixture.runtime.run_sandbox(sandbox).await.unwrap();
    let config = script(0, "exec sleep 1000", vec![mount("config")]);
    fixture.runtime.start(config).await.unwrap();
    fixture.running(0).await;
    let (path, folder) = (at("config/key"), at("config"));
    let read = || async {
        let shown = fixture.run(&["cat", &path], ALL_OUTPUT, &[]).await.0;
        let listed = fixture.run(&["ls", &folder], ALL_OUTPUT, &[]).await.0;
        (shown, listed)
    };
    assert_eq!(read().await, ("one\n".into(), "key\n".into()));
    for _ in 0..2 {
        let volume = Volume {
            name: "config".into(),
            kind: files("key", "two\n", false),
            group: None,
        };
        let updated = fixture.runtime.update_volumes(&uid(), vec![volume]).await;
        updated.unwrap();
        assert_eq!(read().await, ("two\n".into(), "key\n".into()));
    }
    end(fixture).await;
}

pub async fn a_volume_of_the_machine_outlives_its_pod<R: Runtime>(fixture: Fixture<R>) {
    if !mounts(&fixture) {
        return;
    }
    let folder = folder_of_machine();
    let path = folder.join("made");
    let mut data = part("data", "data", "");
    data.host = Some(HostPath {
        path: path.display().to_string(),
        root: folder.display().to_string(),
        create: true,
    });
    let mut inner = part("data", "inner", "sub");
    inner.host.clone_from(&data.host);
    fixture.runtime.run_sandbox(sandbox_with([])).await.unwrap();
    let config = script(
        0,
        "echo kept >data/new; echo part >inner/new",
        vec![data, inner],
    );
    assert_eq!(fixture.output(config).await, "");
    fixture.runtime.remove_sandbox(&uid()).await.unwrap();
    let read = |name: &str| std::fs::read_to_string(path.join(name)).unwrap();
    assert_eq!([read("new"), read("sub/new")], ["kept\n", "part\n"]);
    end(fixture).await;
}

/// Checks DG18.
pub async fn a_link_in_a_path_of_the_machine_gives_no_other<R: Runtime>(fixture: Fixture<R>) {
    if !mounts(&fixture) {
        return;
    }
    let allowed = folder_of_machine().join("allowed");
    std::fs::create_dir_all(allowed.join("inner")).unwrap();
    std::os::unix::fs::symlink("/", allowed.join("out")).unwrap();
    std::os::unix::fs::symlink("inner", allowed.join("in")).unwrap();
    let data = |below: &str| Mount {
        host: Some(HostPath {
            path: allowed.join(below).display().to_string(),
            root: allowed.display().to_string(),
            create: true,
        }),
        ..mount("data")
    };
    fixture.runtime.run_sandbox(sandbox_with([])).await.unwrap();
    for below in ["out", "out/made"] {
        let escaping = script(0, "ls data", vec![data(below)]);
        let refused = fixture.runtime.start(escaping).await.unwrap_err();
        let refused = refused.to_string();
        assert!(refused.contains("a link leads out of"), "{refused}");
    }
    assert!(!std::path::Path::new("/made").exists());
    let within = script(1, "echo kept >data/new", vec![data("in/made")]);
    assert_eq!(fixture.output(within).await, "");
    let read = std::fs::read_to_string(allowed.join("inner/made/new"));
    assert_eq!(read.unwrap(), "kept\n");
    end(fixture).await;
}

/// Checks E9: the kubelet reads variables from what an init container has written.
pub async fn a_file_of_a_volume_is_read_by_the_agent<R: Runtime>(fixture: Fixture<R>) {
    if !mounts(&fixture) {
        return;
    }
    let sandbox = sandbox_with([("scratch", VolumeKind::Empty)]);
    fixture.runtime.run_sandbox(sandbox).await.unwrap();
    let script = script(
        0,
        "cd scratch; mkdir sub; echo \"A='1'\" >sub/app.env; ln -s /dev/zero zero",
        vec![mount("scratch")],
    );
    assert_eq!(fixture.output(script).await, "");
    let read = async |path: &str| fixture.runtime.read_file(&uid(), "scratch", path).await;
    assert_eq!(read("sub/app.env").await.unwrap(), b"A='1'\n");
    for path in ["sub/none", "zero"] {
        let content = read(path).await.unwrap_or_default();
        assert_eq!(content, b"", "{path}");
    }
    end(fixture).await;
}

pub async fn a_container_works_in_a_volume<R: Runtime>(fixture: Fixture<R>) {
    if !mounts(&fixture) {
        return;
    }
    let sandbox = sandbox_with([("scratch", VolumeKind::Empty)]);
    fixture.runtime.run_sandbox(sandbox).await.unwrap();
    let mut config = container(0, &["sh", "-c", "echo one >file; exec sleep 1000"]);
    config.mounts = vec![mount("scratch")];
    config.working_dir = at("scratch");
    fixture.runtime.start(config).await.unwrap();
    fixture.running(0).await;
    let script = "until [ -s file ]; do sleep 0.01; done; cat file";
    let ended = fixture.run(&["sh", "-c", script], ALL_OUTPUT, &[]).await;
    assert_eq!(ended, ("one\n".into(), String::new(), 0));
    end(fixture).await;
}

/// Checks K16.
pub async fn the_group_of_a_volume_may_read_and_write_it<R: Runtime>(fixture: Fixture<R>) {
    if !mounts(&fixture) {
        return;
    }
    let mut sandbox = sandbox_with([
        ("secret", files("key", "hush\n", true)),
        ("scratch", VolumeKind::Empty),
    ]);
    for volume in &mut sandbox.volumes {
        volume.group = Some(4242);
    }
    fixture.runtime.run_sandbox(sandbox).await.unwrap();
    let look = "cat secret/key; touch scratch/new; stat -L -c '%a %g' secret secret/key scratch; stat -c %g scratch/new";
    let mut config = script(0, look, ["secret", "scratch"].map(mount).into());
    config.security.run_as_user = Some(1000);
    config.security.run_as_group = Some(1000);
    config.security.supplemental_groups = vec![4242];
    assert_eq!(
        fixture.output(config).await,
        "hush\n2755 4242\n440 4242\n2777 4242\n4242\n"
    );
    end(fixture).await;
}

/// Checks K13.
pub async fn the_space_that_a_pod_holds_is_measured<R: Runtime>(fixture: Fixture<R>) {
    if !mounts(&fixture) {
        return;
    }
    let volumes = [
        ("scratch", VolumeKind::Empty),
        ("memory", VolumeKind::Memory(8 << 20)),
    ];
    fixture
        .runtime
        .run_sandbox(sandbox_with(volumes))
        .await
        .unwrap();
    let fill = "dd if=/dev/zero of=scratch/large bs=1M count=3 2>/dev/null; \
                dd if=/dev/zero of=memory/small bs=1M count=1 2>/dev/null; \
                dd if=/dev/zero bs=1M count=2 2>/dev/null; sleep 1000000";
    let writer = script(0, fill, ["scratch", "memory"].map(mount).into());
    fixture.runtime.start(writer).await.unwrap();
    fixture.running(0).await;
    let measured = async {
        loop {
            let usage = fixture.runtime.disk_usage([uid()].into()).await;
            let log = usage
                .containers
                .get(&id(0))
                .map_or(0, |space| space.total().bytes);
            let of = |name: &str| {
                let volumes = usage.volumes.get(&uid());
                volumes.and_then(|volumes| volumes.get(name).copied())
            };
            if let (Some(scratch), Some(memory), true) =
                (of("scratch"), of("memory"), log >= 2 << 20)
            {
                return (scratch, memory);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    let (scratch, memory) = timeout(TIMEOUT, measured).await.expect("all is written");
    assert!((3 << 20..4 << 20).contains(&scratch.bytes), "{scratch:?}");
    assert!((1 << 20..2 << 20).contains(&memory.bytes), "{memory:?}");
    assert_eq!((scratch.inodes, memory.inodes), (2, 2));
    let others = fixture
        .runtime
        .disk_usage(["other".to_owned()].into())
        .await;
    assert!(others.containers.is_empty() && others.volumes.is_empty());
    end(fixture).await;
}
