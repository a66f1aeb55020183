//! What a container is given, seen from inside it: its command, its place in its Pod, and what it may do.

use std::process::Command;
use std::time::Duration;

use bollard::models::ContainerInspectResponse;
use setpoint_node_agent::runtime::{Limits, LogOptions, Runtime as _, SandboxConfig, Security};

use crate::support::docker::{IMAGE, bench, client};
use crate::support::{container, id, sandbox, uid};

#[tokio::test]
async fn a_container_runs_as_its_pod_describes_it() {
    let Some(bench) = bench().await else { return };
    let named = SandboxConfig {
        hostname: "web-0".into(),
        ..sandbox()
    };
    bench.runtime.run_sandbox(named).await.unwrap();
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
    bench.runtime.start(config).await.unwrap();
    bench.exited(0).await;
    let log = bench.log(0, LogOptions::default()).await;
    for said in [
        "hello\nweb-0\n",
        "hosts\n",
        "4242",
        "Uid:\t1000\t1000\t1000\t1000\n",
        "CapBnd:\t0000000000001000\n",
        "NoNewPrivs:\t1\n",
        "Read-only file system",
    ] {
        assert!(log.contains(said), "{said:?} in {log}");
    }
}

/// Checks F7.
#[tokio::test]
async fn a_container_that_must_not_be_root_does_not_start_as_the_root_of_its_image() {
    let Some(bench) = bench().await else { return };
    bench.runtime.run_sandbox(sandbox()).await.unwrap();
    let mut config = container(0, &["true"]);
    config.security.run_as_non_root = true;
    let refused = bench.runtime.start(config.clone()).await.unwrap_err();
    let uid = uid();
    assert_eq!(
        refused.to_string(),
        format!(
            "container has runAsNonRoot and image will run as root (pod: \"web_default({uid})\", container: main)"
        )
    );
    assert!(bench.container(0).is_none());
    config.security.run_as_user = Some(1000);
    bench.runtime.start(config).await.unwrap();
    assert_eq!(bench.exited(0).await.code, 0);
}

#[tokio::test]
async fn containers_of_a_pod_are_in_one_place() {
    let Some(bench) = bench().await else { return };
    bench.runtime.run_sandbox(sandbox()).await.unwrap();
    // The first stays: a namespace that is gone gives its number away.
    let look = "ls -l /proc/self/ns/net /proc/self/ns/ipc";
    let mut seen = Vec::new();
    for attempt in 0..2 {
        let script = format!("{look}; sleep 1000");
        let config = container(attempt, &["sh", "-c", &script]);
        bench.runtime.start(config).await.unwrap();
        bench.running(attempt).await;
        let log = bench.said(attempt, 2).await;
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
async fn the_engine_is_told_the_limits() {
    let Some(client) = client().await else { return };
    let Some(bench) = bench().await else { return };
    bench.runtime.run_sandbox(sandbox()).await.unwrap();
    let mut config = container(0, &[]);
    config.limits = Limits {
        millicpu_share: 250,
        millicpu: 500,
        memory: 32 << 20,
    };
    bench.runtime.start(config).await.unwrap();
    let handle = bench.container(0).unwrap().handle;
    let seen: ContainerInspectResponse = client.inspect_container(&handle, None).await.unwrap();
    let host = seen.host_config.unwrap();
    let told = (
        host.cpu_shares,
        host.nano_cpus,
        host.memory,
        host.memory_swap,
    );
    let memory = Some(32 << 20);
    assert_eq!(told, (Some(256), Some(500_000_000), memory, memory));
}

/// As the image wants it, and then no longer.
#[tokio::test]
async fn a_container_is_asked_to_stop_with_the_signal_of_its_image() {
    let Some(bench) = bench().await else { return };
    let image = "setpoint-test/usr1:1";
    let build = format!("printf 'FROM {IMAGE}\\nSTOPSIGNAL SIGUSR1' | docker build -t {image} -");
    let built = Command::new("sh").args(["-c", &build]).output().unwrap();
    assert!(built.status.success(), "{built:?}");
    bench.runtime.run_sandbox(sandbox()).await.unwrap();
    let script = "trap 'exit 9' USR1; trap 'exit 8' TERM; echo up; while :; do sleep 0.1; done";
    let mut config = container(0, &["sh", "-c", script]);
    config.image = image.into();
    bench.runtime.start(config).await.unwrap();
    bench.running(0).await;
    bench.said(0, 1).await;
    bench
        .runtime
        .stop(&id(0), Duration::from_secs(20))
        .await
        .unwrap();
    assert_eq!(bench.exited(0).await.code, 9);
}
