//! The configuration of containers, seen from inside: command, namespaces, limits and privileges.

use std::process::Command;
use std::time::Duration;

use bollard::models::ContainerInspectResponse;
use futures::StreamExt as _;
use setpoint_runtime::contract::{
    ALL_OUTPUT, IMAGE, TIMEOUT, container, id, resources, sandbox, sandbox_with, uid,
};
use setpoint_runtime::{
    Console, ContainerConfig, Dns, Error, Input, LogOptions, Output, Processes, Profile,
    Runtime as _, SandboxConfig, Security, Streams, TerminationMessage, VolumeKind,
};

use super::fixture::{client, fixture};

#[tokio::test]
async fn a_container_runs_as_its_pod_describes_it() {
    let Some(fixture) = fixture().await else {
        return;
    };
    let named = SandboxConfig {
        hostname: "web-0".into(),
        sysctls: [("kernel.shm_rmid_forced".into(), "1".into())].into(),
        ..sandbox()
    };
    fixture.runtime.run_sandbox(named).await.unwrap();
    let mut config = container(0, &["sh", "-c"]);
    let script = "echo $GREETING; hostname; cat /proc/sys/kernel/shm_rmid_forced; ls hosts; grep -E 'CapPrm|CapBnd|NoNewPrivs|Uid|Groups' /proc/self/status; touch /x 2>&1";
    config.args = vec![script.into()];
    config.working_dir = "/etc".into();
    config.security = Security {
        run_as_user: Some(1000),
        run_as_group: Some(1000),
        run_as_non_root: true,
        supplemental_groups: vec![4242],
        read_only: true,
        no_new_privileges: true,
        strict_groups: false,
        seccomp_profile: Profile::RuntimeDefault,
        app_armor_profile: Profile::Unset,
        add: vec!["NET_ADMIN".into()],
        drop: vec!["ALL".into()],
        privileged: false,
    };
    fixture.runtime.start(config).await.unwrap();
    fixture.exited(0).await;
    let log = fixture.log(0, LogOptions::default()).await;
    for expected in [
        "hello\nweb-0\n1\n",
        "hosts\n",
        "4242",
        "Uid:\t1000\t1000\t1000\t1000\n",
        "CapBnd:\t0000000000001000\n",
        "NoNewPrivs:\t1\n",
        "Read-only file system",
    ] {
        assert!(log.contains(expected), "{expected:?} in {log}");
    }
}

/// Checks F7.
#[tokio::test]
async fn a_container_that_must_not_be_root_does_not_start_as_the_root_of_its_image() {
    let Some(fixture) = fixture().await else {
        return;
    };
    fixture.runtime.run_sandbox(sandbox()).await.unwrap();
    let mut config = container(0, &["true"]);
    config.security.run_as_non_root = true;
    let refused = fixture.runtime.start(config.clone()).await.unwrap_err();
    let uid = uid();
    assert_eq!(
        refused.to_string(),
        format!(
            "container has runAsNonRoot and image will run as root (pod: \"web_default({uid})\", container: main)"
        )
    );
    assert!(fixture.container(0).is_none());
    config.security.run_as_user = Some(1000);
    fixture.runtime.start(config).await.unwrap();
    assert_eq!(fixture.exited(0).await.code, 0);
}

#[tokio::test]
async fn containers_of_a_pod_share_their_namespaces() {
    let Some(fixture) = fixture().await else {
        return;
    };
    fixture.runtime.run_sandbox(sandbox()).await.unwrap();
    // The first keeps running, because the number of a namespace may be reused.
    let list = "ls -l /proc/self/ns/net /proc/self/ns/ipc";
    let mut seen = Vec::new();
    for attempt in 0..2 {
        let script = format!("{list}; sleep 1000");
        let config = container(attempt, &["sh", "-c", &script]);
        fixture.runtime.start(config).await.unwrap();
        fixture.running(attempt).await;
        let log = fixture.read_lines(attempt, 2).await;
        let arrows = log.lines().filter_map(|line| line.split_once(" -> "));
        seen.push(
            arrows
                .map(|(_, space)| space.to_owned())
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(seen[0].len(), 2, "{seen:?}");
    assert_eq!(seen[0], seen[1]);
}

#[tokio::test]
async fn limits_are_passed_to_the_engine() {
    let Some(client) = client().await else { return };
    let Some(fixture) = fixture().await else {
        return;
    };
    fixture.runtime.run_sandbox(sandbox()).await.unwrap();
    let mut config = container(0, &[]);
    config.resources = resources(&[("cpu", "250m")], &[("cpu", "500m"), ("memory", "32Mi")]);
    fixture.runtime.start(config).await.unwrap();
    let runtime_id = fixture.container(0).unwrap().runtime_id;
    let seen: ContainerInspectResponse = client.inspect_container(&runtime_id, None).await.unwrap();
    let host = seen.host_config.unwrap();
    let actual = (
        host.cpu_shares,
        host.nano_cpus,
        host.memory,
        host.memory_swap,
    );
    let memory = Some(32 << 20);
    assert_eq!(actual, (Some(256), Some(500_000_000), memory, memory));
}

/// The kubelet shows such a refusal as `CreateContainerError`.
#[tokio::test]
async fn a_container_that_the_engine_refuses_has_its_reason() {
    let Some(fixture) = fixture().await else {
        return;
    };
    fixture.runtime.run_sandbox(sandbox()).await.unwrap();
    let mut config = container(0, &[]);
    config.working_dir = "relative".into();
    let refused = fixture.runtime.start(config).await.unwrap_err();
    let Error::Refused { why, .. } = refused else {
        panic!("{refused:?}");
    };
    assert!(why.contains("working directory"), "{why}");
}

/// Returns the CPU shares, the CPU quota and the memory limit that the cgroup of a container has, of either version.
const LIMITS: &str = "cd /sys/fs/cgroup; for files in 'cpu.weight cpu/cpu.shares' 'cpu.max cpu/cpu.cfs_quota_us' \
    'memory.max memory/memory.limit_in_bytes'; do cat $files 2>/dev/null; done";

/// Seen in the cgroup of the container, from inside.
#[tokio::test]
async fn a_running_container_gets_other_limits_in_place() {
    let Some(fixture) = fixture().await else {
        return;
    };
    fixture.runtime.run_sandbox(sandbox()).await.unwrap();
    fixture.runtime.start(container(0, &[])).await.unwrap();
    fixture.running(0).await;
    let limits = async || fixture.run(&["sh", "-c", LIMITS], ALL_OUTPUT, &[]).await.0;
    let before = limits().await;
    let small = resources(&[("cpu", "250m")], &[("cpu", "500m"), ("memory", "32Mi")]);
    fixture.runtime.resize(&id(0), &small).await.unwrap();
    let shares = |v1: &str, v2: &str, seen: &str| seen.starts_with(v1) || seen.starts_with(v2);
    let seen = limits().await;
    assert_ne!(seen, before);
    assert!(
        shares("256\n50000\n33554432", "10\n50000 100000\n33554432", &seen),
        "{seen}"
    );
    let large = resources(&[("cpu", "500m")], &[("cpu", "1"), ("memory", "64Mi")]);
    fixture.runtime.resize(&id(0), &large).await.unwrap();
    let seen = limits().await;
    assert!(
        shares(
            "512\n100000\n67108864",
            "20\n100000 100000\n67108864",
            &seen
        ),
        "{seen}"
    );
    assert_eq!(fixture.container(0).unwrap().resources, Some(large));
    fixture.clean_up().await;
}

#[tokio::test]
async fn memory_that_a_container_uses_is_not_taken_from_it() {
    let Some(fixture) = fixture().await else {
        return;
    };
    fixture.runtime.run_sandbox(sandbox()).await.unwrap();
    let script = "x=0123456789abcdef; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do x=$x$x; done; echo full; sleep 1000 & wait";
    let mut config = container(0, &["sh", "-c", script]);
    let roomy = resources(&[], &[("memory", "256Mi")]);
    config.resources = roomy.clone();
    fixture.runtime.start(config).await.unwrap();
    fixture.read_lines(0, 1).await;
    let tight = resources(&[], &[("memory", "8Mi")]);
    let refused = fixture.runtime.resize(&id(0), &tight).await.unwrap_err();
    let message = refused.to_string();
    let expected =
        "attempting to set container \"main\" memory limit (8388608) below current usage (";
    assert!(message.starts_with(expected), "{message}");
    let container = fixture.container(0).unwrap();
    assert_eq!(container.resources, Some(roomy));
    fixture.clean_up().await;
}

/// The engine would name its own resolver.
#[tokio::test]
async fn a_pod_has_its_own_resolver_configuration() {
    let Some(fixture) = fixture().await else {
        return;
    };
    fixture.runtime.run_sandbox(sandbox()).await.unwrap();
    let mut config = container(0, &["cat", "/etc/resolv.conf"]);
    let own = Dns {
        replaces: true,
        cluster: None,
        nameservers: vec!["1.1.1.1".into()],
        searches: vec!["resolv.conf.local".into()],
        options: vec![("ndots".into(), Some("2".into()))],
    };
    config.dns = Some(own.clone());
    fixture.runtime.start(config.clone()).await.unwrap();
    fixture.exited(0).await;
    let expected = "search resolv.conf.local\nnameserver 1.1.1.1\noptions ndots:2\n";
    assert_eq!(fixture.log(0, LogOptions::default()).await, expected);
    config.id = id(1);
    config.dns = Some(Dns {
        replaces: false,
        cluster: None,
        ..own
    });
    fixture.runtime.start(config).await.unwrap();
    fixture.exited(1).await;
    let added = fixture.log(1, LogOptions::default()).await;
    assert!(
        added.contains("resolv.conf.local") && added.contains("nameserver 1.1.1.1"),
        "{added}"
    );
    assert_eq!(added.matches("nameserver").count(), 2, "{added}");
    fixture.clean_up().await;
}

/// The image's `STOPSIGNAL` is sent in place of SIGTERM.
#[tokio::test]
async fn a_container_is_stopped_with_the_stop_signal_of_its_image() {
    let Some(fixture) = fixture().await else {
        return;
    };
    let image = "setpoint-test/usr1:1";
    let build = format!("printf 'FROM {IMAGE}\\nSTOPSIGNAL SIGUSR1' | docker build -t {image} -");
    let built = Command::new("sh").args(["-c", &build]).output().unwrap();
    assert!(built.status.success(), "{built:?}");
    fixture.runtime.run_sandbox(sandbox()).await.unwrap();
    let script = "trap 'exit 9' USR1; trap 'exit 8' TERM; echo up; while :; do sleep 0.1; done";
    let mut config = container(0, &["sh", "-c", script]);
    config.image = image.into();
    fixture.runtime.start(config).await.unwrap();
    fixture.running(0).await;
    fixture.read_lines(0, 1).await;
    fixture
        .runtime
        .stop(&id(0), Duration::from_secs(20))
        .await
        .unwrap();
    assert_eq!(fixture.exited(0).await.code, 9);
}

/// The file is outside of the container's file system, of which nothing is kept below /dev.
#[tokio::test]
async fn a_container_leaves_the_end_of_a_file_as_its_message() {
    let Some(fixture) = fixture().await else {
        return;
    };
    fixture.runtime.run_sandbox(sandbox()).await.unwrap();
    let path = "/dev/termination-log";
    let script = format!("printf '%05000d' 7 > {path}; exit 0");
    let mut config = container(0, &["sh", "-c", &script]);
    config.security.run_as_user = Some(1000);
    config.security.read_only = true;
    config.termination_message = TerminationMessage {
        path: path.into(),
        falls_back_to_logs: true,
    };
    fixture.runtime.start(config).await.unwrap();
    let exit = fixture.exited(0).await;
    assert_eq!((exit.code, exit.message.len()), (0, 4096));
    assert!(exit.message.ends_with("007"));
}

#[tokio::test]
async fn a_client_writes_to_the_terminal_of_a_container_that_has_one() {
    let Some(fixture) = fixture().await else {
        return;
    };
    fixture.runtime.run_sandbox(sandbox()).await.unwrap();
    let mut config = container(0, &["sh", "-c", "read word; echo got $word"]);
    config.console = Console {
        stdin: true,
        stdin_once: true,
        tty: true,
    };
    fixture.runtime.start(config).await.unwrap();
    fixture.running(0).await;
    let streams = Streams {
        stdin: true,
        stdout: true,
        stderr: false,
        tty: true,
    };
    let input = futures::stream::iter([Input::Stdin("hi\n".into())]);
    let input = input.chain(futures::stream::pending()).boxed();
    let output = fixture
        .runtime
        .attach(&id(0), streams, input)
        .await
        .unwrap();
    let pieces = tokio::time::timeout(TIMEOUT, output.collect::<Vec<_>>())
        .await
        .unwrap();
    let pieces = pieces.into_iter().map(|piece| match piece.unwrap() {
        Output::Stdout(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    });
    let said: String = pieces.collect();
    assert!(said.contains("got hi\r\n"), "{said}");
    assert_eq!(fixture.exited(0).await.code, 0);
}

#[tokio::test]
async fn a_container_is_stopped_with_the_signal_that_its_pod_names() {
    let Some(fixture) = fixture().await else {
        return;
    };
    fixture.runtime.run_sandbox(sandbox()).await.unwrap();
    let script = "trap 'exit 7' USR1; echo ready; while :; do sleep 0.05; done";
    let mut config = container(0, &["sh", "-c", script]);
    config.stop_signal = "SIGUSR1".into();
    fixture.runtime.start(config).await.unwrap();
    fixture.running(0).await;
    while !fixture
        .log(0, LogOptions::default())
        .await
        .contains("ready")
    {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    fixture.runtime.stop(&id(0), TIMEOUT).await.unwrap();
    assert_eq!(fixture.exited(0).await.code, 7);
}

/// Checks DG15: with the pause image of these tests, whose user is root.
#[tokio::test]
async fn a_pause_container_has_no_rights_and_opens_itself_to_no_container_of_its_pod() {
    let Some(client) = client().await else { return };
    let Some(fixture) = fixture().await else {
        return;
    };
    let sandbox = sandbox_with([("scratch", VolumeKind::Empty)]);
    fixture.runtime.run_sandbox(sandbox).await.unwrap();
    let script = "grep -E 'Uid|CapBnd|NoNewPrivs' /proc/1/status; ls /proc/1/root/ 2>&1";
    let mut shared = container(0, &["sh", "-c", script]);
    shared.processes = Processes::OfPod;
    fixture.runtime.start(shared).await.unwrap();
    fixture.exited(0).await;
    let log = fixture.log(0, LogOptions::default()).await;
    for expected in [
        "Uid:\t65535\t65535\t65535\t65535\n",
        "CapBnd:\t0000000000000000\n",
        "NoNewPrivs:\t1\n",
        "Permission denied",
    ] {
        assert!(log.contains(expected), "{expected:?} in {log}");
    }
    let pause = format!("k8s_POD_web_default_{}_0", uid());
    let pause = client.inspect_container(&pause, None).await.unwrap();
    assert_eq!(pause.host_config.unwrap().readonly_rootfs, Some(true));
    let mounts = pause.mounts.unwrap();
    assert_eq!(mounts.len(), 2, "the volume, and that of the messages");
    assert!(mounts.iter().all(|mount| mount.rw == Some(false)));
    fixture.clean_up().await;
}

/// Returns the second container of the Pod, which sees other processes than its own.
fn beside(processes: Processes, command: &[&str]) -> ContainerConfig {
    ContainerConfig {
        processes,
        ..container(1, command)
    }
}

#[tokio::test]
async fn a_container_sees_the_processes_of_its_target_or_of_its_pod() {
    let Some(fixture) = fixture().await else {
        return;
    };
    fixture.start(0, &["sleep", "1000"]).await;
    fixture.running(0).await;
    let read = "exec cat /proc/1/cmdline";
    let target = beside(Processes::Of(id(0)), &["sh", "-c", read]);
    fixture.runtime.start(target).await.unwrap();
    fixture.exited(1).await;
    let log = fixture.log(1, LogOptions::default()).await;
    assert_eq!(log, "sleep\x001000\0");
    let mut shared = beside(
        Processes::OfPod,
        &["sh", "-c", "echo $$; cat /proc/1/cmdline"],
    );
    shared.id.attempt = 2;
    fixture.runtime.start(shared).await.unwrap();
    fixture.exited(2).await;
    let log = fixture.log(2, LogOptions::default()).await;
    assert!(
        !log.starts_with("1\n") && log.contains("sleep 1000000"),
        "{log}"
    );
    fixture.runtime.stop(&id(0), Duration::ZERO).await.unwrap();
    fixture.exited(0).await;
    let mut late = beside(Processes::Of(id(0)), &["true"]);
    late.id.attempt = 3;
    assert!(
        fixture.runtime.start(late).await.is_err(),
        "its target has ended"
    );
    fixture.clean_up().await;
}
