//! The configuration of containers, seen from inside: command, namespaces, limits and privileges.

use std::process::Command;
use std::time::Duration;

use bollard::models::ContainerInspectResponse;
use setpoint_node_agent::runtime::{Limits, LogOptions, Runtime as _, SandboxConfig, Security};

use crate::support::docker::{IMAGE, client, fixture};
use crate::support::{container, id, sandbox, uid};

#[tokio::test]
async fn a_container_runs_as_its_pod_describes_it() {
    let Some(fixture) = fixture().await else {
        return;
    };
    let named = SandboxConfig {
        hostname: "web-0".into(),
        ..sandbox()
    };
    fixture.runtime.run_sandbox(named).await.unwrap();
    let mut config = container(0, &["sh", "-c"]);
    let script = "echo $GREETING; hostname; ls hosts; grep -E 'CapPrm|CapBnd|NoNewPrivs|Uid|Groups' /proc/self/status; touch /x";
    config.args = vec![script.into()];
    config.working_dir = "/etc".into();
    config.security = Security {
        run_as_user: Some(1000),
        run_as_group: Some(1000),
        run_as_non_root: true,
        supplemental_groups: vec![4242],
        read_only: true,
        no_new_privileges: true,
        seccomp: true,
        app_armor: false,
        add: vec!["NET_ADMIN".into()],
        drop: vec!["ALL".into()],
    };
    fixture.runtime.start(config).await.unwrap();
    fixture.exited(0).await;
    let log = fixture.log(0, LogOptions::default()).await;
    for expected in [
        "hello\nweb-0\n",
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
    config.limits = Limits {
        millicpu_share: 250,
        millicpu: 500,
        memory: 32 << 20,
    };
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
