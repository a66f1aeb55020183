//! The resources of a Pod as a whole: the cgroup of the Pod, and the limits of its containers.

use std::fs;
use std::path::{Path, PathBuf};

use bollard::Docker as Client;
use bollard::models::HostConfig;
use setpoint_runtime::contract::{Fixture, container, id, resources, sandbox, uid};
use setpoint_runtime::docker::Docker;
use setpoint_runtime::{Limits, PodResources, Runtime as _, SandboxConfig};

use super::fixture::{client, cluster, fixture};

fn of_pod(millicpu: i64, memory: i64) -> PodResources {
    let limits = Limits {
        millicpu_share: 500,
        millicpu,
        memory,
    };
    PodResources {
        all: limits,
        each: limits,
    }
}

/// Returns the contents of a file in the cgroup of the Pod; `None` if there is none, in either version of cgroups.
fn read(controller: &str, files: [&str; 2]) -> Option<String> {
    let folder = format!("setpoint_{}/pod{}", cluster(), uid());
    let root = Path::new("/sys/fs/cgroup");
    let [v1, v2] = files;
    let places: [PathBuf; 2] = [
        root.join(controller).join(&folder).join(v1),
        root.join(&folder).join(v2),
    ];
    let mut found = places
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok());
    found.next().map(|text| text.trim().to_owned())
}

fn memory() -> Option<String> {
    read("memory", ["memory.limit_in_bytes", "memory.max"])
}

async fn host_config(client: &Client, fixture: &Fixture<Docker>, attempt: u32) -> HostConfig {
    let runtime_id = fixture.container(attempt).unwrap().runtime_id;
    let seen = client.inspect_container(&runtime_id, None).await.unwrap();
    seen.host_config.unwrap()
}

/// Starts a Pod with limits of its own; `None` if there is no engine whose cgroups this process manages.
async fn start(millicpu: i64, memory: i64) -> Option<(Client, Fixture<Docker>)> {
    let (client, fixture) = (client().await?, fixture().await?);
    let bounded = SandboxConfig {
        resources: Some(of_pod(millicpu, memory)),
        ..sandbox()
    };
    fixture.runtime.run_sandbox(bounded).await.unwrap();
    if !fixture.runtime.bounds_pods() {
        eprintln!(
            "SKIPPED: the cgroups of the engine are not those of this machine, or named by systemd"
        );
        return None;
    }
    Some((client, fixture))
}

#[tokio::test]
async fn containers_share_the_limits_of_their_pod_and_leave_no_cgroup() {
    let Some((client, fixture)) = start(1500, 64 << 20).await else {
        return;
    };
    assert_eq!(memory().as_deref(), Some("67108864"));
    let quota = read("cpu", ["cpu.cfs_quota_us", "cpu.max"]).unwrap();
    assert!(quota.starts_with("150000"), "{quota}");
    let mut limited = container(0, &[]);
    limited.resources = resources(&[], &[("memory", "32Mi")]);
    limited.pod = Some(of_pod(1500, 64 << 20));
    fixture.runtime.start(limited).await.unwrap();
    fixture.running(0).await;
    let host = host_config(&client, &fixture, 0).await;
    assert_eq!(
        (host.memory, host.nano_cpus),
        (Some(32 << 20), Some(1_500_000_000))
    );
    let runtime_id = fixture.container(0).unwrap().runtime_id;
    let processes = read(
        "memory",
        [
            &format!("{runtime_id}/cgroup.procs"),
            &format!("{runtime_id}/cgroup.procs"),
        ],
    );
    assert!(processes.is_some_and(|processes| !processes.is_empty()));
    fixture
        .runtime
        .stop(&id(0), std::time::Duration::ZERO)
        .await
        .unwrap();
    fixture.exited(0).await;
    fixture.runtime.remove_sandbox(&uid()).await.unwrap();
    assert_eq!(memory(), None);
}

/// Each is within its own limit.
#[tokio::test]
async fn containers_that_exceed_the_limit_of_their_pod_together_are_oom_killed() {
    let Some((_, fixture)) = start(0, 24 << 20).await else {
        return;
    };
    let script = "x=0123456789abcdef; while :; do x=$x$x; done";
    let mut greedy = container(0, &["sh", "-c", script]);
    greedy.resources = resources(&[], &[("memory", "64Mi")]);
    fixture.runtime.start(greedy).await.unwrap();
    assert_eq!(fixture.exited_because(0, "OOMKilled").await.code, 137);
}

#[tokio::test]
async fn a_pod_that_is_resized_gives_its_limits_to_containers_without_their_own() {
    let Some((client, fixture)) = start(500, 64 << 20).await else {
        return;
    };
    let mut unlimited = container(0, &[]);
    unlimited.pod = Some(of_pod(500, 64 << 20));
    fixture.runtime.start(unlimited).await.unwrap();
    fixture.running(0).await;
    for (millicpu, limit) in [(1000, 128 << 20), (250, 32 << 20)] {
        let resized = fixture
            .runtime
            .resize_pod(&uid(), of_pod(millicpu, limit))
            .await;
        assert!(resized.unwrap());
        assert_eq!(memory(), Some(limit.to_string()));
        let host = host_config(&client, &fixture, 0).await;
        let expected = (Some(limit), Some(millicpu * 1_000_000));
        assert_eq!((host.memory, host.nano_cpus), expected);
    }
    let refused = fixture.runtime.resize_pod(&uid(), of_pod(250, 4096)).await;
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.starts_with("attempting to set pod memory limit (4096) below current usage ("),
        "{refused}"
    );
}
