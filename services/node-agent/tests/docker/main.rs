//! What only an engine can show: kills from outside, memory, and agents that die and come back.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod allowed;
mod images;
mod sight;
#[path = "../support/mod.rs"]
mod support;
mod volumes;

use std::time::Duration;

use bollard::query_parameters::{KillContainerOptions, ListContainersOptionsBuilder};
use futures::TryStreamExt as _;
use setpoint_controller::Tasks;
use setpoint_node_agent::runtime::docker::{Docker, Engine, Settings, Unusable, sweep};
use setpoint_node_agent::runtime::{Limits, Runtime, Sandbox, State, VolumeKind};
use support::docker::{bench, bench_with, client, cluster, settings};
use support::{Bench, PATIENCE, container, id, pod, sandbox, sandbox_with, uid};

/// An engine and a runtime on it, or the end of the test.
macro_rules! engine_or_skip {
    () => {
        match (client().await, bench().await) {
            (Some(client), Some(bench)) => (client, bench),
            _ => return,
        }
    };
}

fn the_sandbox(bench: &Bench<Docker>) -> Sandbox {
    bench.runtime.sandboxes(&pod()).remove(0)
}

async fn kill(client: &bollard::Docker, name: &str) {
    client
        .kill_container(name, None::<KillContainerOptions>)
        .await
        .unwrap();
}

/// The names of all containers of this test, as `docker ps -a` shows them.
async fn names(client: &bollard::Docker) -> Vec<String> {
    let label = format!("setpoint.dev/cluster={}", cluster());
    let filters = std::collections::HashMap::from([("label", vec![label])]);
    let options = ListContainersOptionsBuilder::default()
        .all(true)
        .filters(&filters)
        .build();
    let found = client.list_containers(Some(options)).await.unwrap();
    let mut names: Vec<_> = found
        .into_iter()
        .flat_map(|found| found.names.unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn containers_have_names_that_say_whose_they_are() {
    let (client, bench) = engine_or_skip!();
    bench.start(0, &[]).await;
    bench.running(0).await;
    let uid = uid();
    let expected = [
        format!("/k8s_POD_web_default_{uid}_0"),
        format!("/k8s_main_web_default_{uid}_0"),
    ];
    assert_eq!(names(&client).await, expected);
    assert!(!the_sandbox(&bench).config.ip.is_unspecified());
}

#[tokio::test]
async fn a_container_that_is_killed_from_outside_is_noticed_by_its_event() {
    let (client, bench) = engine_or_skip!();
    bench.start(0, &[]).await;
    bench.running(0).await;
    kill(&client, &bench.container(0).unwrap().handle).await;
    assert_eq!(bench.exited(0).await.code, 137);
}

#[tokio::test]
async fn a_container_that_takes_too_much_memory_is_killed_for_it() {
    let (_, bench) = engine_or_skip!();
    bench.runtime.run_sandbox(sandbox()).await.unwrap();
    let mut greedy = container(
        0,
        &["sh", "-c", "x=0123456789abcdef; while :; do x=$x$x; done"],
    );
    greedy.limits = Limits {
        memory: 16 << 20,
        millicpu: 500,
        ..Limits::default()
    };
    bench.runtime.start(greedy).await.unwrap();
    let exit = bench.exited(0).await;
    assert_eq!((exit.code, exit.reason()), (137, "OOMKilled"));
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_a_start_error() {
    let (_, bench) = engine_or_skip!();
    bench.start(0, &["no-such-program"]).await;
    let exit = bench.exited(0).await;
    assert_eq!((exit.code, exit.reason()), (128, "StartError"));
    assert!(exit.message.contains("no-such-program"), "{}", exit.message);
}

/// Checks N4.
#[tokio::test]
async fn a_container_that_ignores_the_request_to_stop_is_killed_after_its_grace() {
    let (_, bench) = engine_or_skip!();
    bench
        .start(
            0,
            &[
                "sh",
                "-c",
                "trap '' TERM; echo up; while :; do sleep 1; done",
            ],
        )
        .await;
    bench.running(0).await;
    bench.said(0, 1).await;
    let asked = std::time::Instant::now();
    bench
        .runtime
        .stop(&id(0), Duration::from_millis(300))
        .await
        .unwrap();
    assert_eq!(bench.exited(0).await.code, 137);
    assert!(asked.elapsed() >= Duration::from_millis(300));
}

/// Checks N2.
#[tokio::test]
async fn an_agent_that_comes_back_adopts_what_runs_and_starts_nothing_twice() {
    let (client, first) = engine_or_skip!();
    first.start(0, &["true"]).await;
    first.exited(0).await;
    first.start(1, &[]).await;
    first.running(1).await;
    let before = unnoticed(first.runtime.sandboxes(&pod()));
    let second = bench_with(settings()).await;
    assert_eq!(second.runtime.pods(), [pod()]);
    let mut after = unnoticed(second.runtime.sandboxes(&pod()));
    after[0]
        .config
        .hostname
        .clone_from(&before[0].config.hostname);
    assert_eq!(after, before);
    let there = names(&client).await;
    second.start(1, &[]).await;
    assert_eq!(names(&client).await, there);
    second.clean_up().await;
}

/// Sandboxes without when their agent noticed what.
fn unnoticed(mut sandboxes: Vec<Sandbox>) -> Vec<Sandbox> {
    let containers = sandboxes.iter_mut().flat_map(|known| &mut known.containers);
    for container in containers {
        if let State::Exited(exit) = &mut container.state {
            exit.noticed = None;
        }
    }
    sandboxes
}

/// Makes the second attempt at a container behind the back of the agent, as one would that did not hear the answer.
async fn made_before(client: &bollard::Docker, bench: &Bench<Docker>) -> String {
    bench.start(0, &["true"]).await;
    bench.exited(0).await;
    let made = client
        .inspect_container(&bench.container(0).unwrap().handle, None)
        .await
        .unwrap();
    let (labels, image) = made
        .config
        .map(|config| (config.labels, config.image))
        .unwrap();
    let labels = labels.map(|mut labels| {
        labels.insert("setpoint.dev/attempt".into(), "1".into());
        // Whatever becomes of it, no event says so.
        labels.remove("setpoint.dev/node");
        labels
    });
    let body = bollard::models::ContainerCreateBody {
        labels,
        image,
        ..Default::default()
    };
    let name = format!("k8s_main_web_default_{}_1", uid());
    let options = bollard::query_parameters::CreateContainerOptionsBuilder::default()
        .name(&name)
        .build();
    let made = client.create_container(Some(options), body).await;
    made.unwrap().id
}

/// Checks N2.
#[tokio::test]
async fn a_container_that_was_made_and_not_started_is_made_anew() {
    let (client, bench) = engine_or_skip!();
    let left = made_before(&client, &bench).await;
    bench.start(1, &["sh", "-c", "exit 7"]).await;
    assert_eq!(bench.exited(1).await.code, 7);
    assert_ne!(bench.container(1).unwrap().handle, left);
}

/// Checks N2.
#[tokio::test]
async fn a_container_that_was_started_before_is_not_started_again() {
    let (client, bench) = engine_or_skip!();
    let left = made_before(&client, &bench).await;
    client.start_container(&left, None).await.unwrap();
    bench.start(1, &[]).await;
    bench.running(1).await;
    assert_eq!(bench.container(1).unwrap().handle, left);
}

/// Checks N2.
#[tokio::test]
async fn what_runs_for_another_node_is_none_of_this_one() {
    let (_, bench) = engine_or_skip!();
    bench.start(0, &[]).await;
    bench.running(0).await;
    let engine = Engine::connect(&settings()).await.unwrap();
    let wake = std::sync::Arc::new(|_: &setpoint_model::Key| {});
    let other = Docker::open(engine, &settings(), "another", wake, &Tasks::default()).await;
    assert_eq!(other.unwrap().pods(), []);
}

/// Checks N2.
#[tokio::test]
async fn an_attempt_that_has_ended_is_not_started_again() {
    let (client, bench) = engine_or_skip!();
    bench.start(0, &["true"]).await;
    bench.exited(0).await;
    let handle = bench.container(0).unwrap().handle;
    let began = async || {
        let seen = client.inspect_container(&handle, None).await.unwrap();
        seen.state.unwrap().started_at
    };
    let before = began().await;
    bench.start(0, &["true"]).await;
    assert_eq!(began().await, before);
}

/// Nothing of a Pod outlives it in the engine: no container, no volume.
#[tokio::test]
async fn a_removed_sandbox_leaves_nothing_in_the_engine() {
    let (client, bench) = engine_or_skip!();
    let sandbox = sandbox_with([("scratch", VolumeKind::Empty)]);
    bench.runtime.run_sandbox(sandbox).await.unwrap();
    bench.start(0, &[]).await;
    bench.running(0).await;
    assert!(bench.runtime.remove_sandbox(&uid()).await.is_err());
    bench.runtime.stop(&id(0), Duration::ZERO).await.unwrap();
    bench.exited(0).await;
    bench.start(1, &["true"]).await;
    bench.exited(1).await;
    bench.runtime.remove(&id(0)).await.unwrap();
    assert_eq!(
        names(&client).await.len(),
        2,
        "a pause and the last attempt"
    );
    bench.runtime.remove_sandbox(&uid()).await.unwrap();
    assert_eq!(names(&client).await, Vec::<String>::new());
    let volume = format!("k8s_{}_scratch", uid());
    assert!(client.inspect_volume(&volume).await.is_err());
}

#[tokio::test]
async fn a_sandbox_whose_pause_is_killed_is_lost_and_made_anew() {
    let (client, bench) = engine_or_skip!();
    bench.start(0, &[]).await;
    bench.running(0).await;
    kill(&client, &format!("k8s_POD_web_default_{}_0", uid())).await;
    bench.sandbox_is(|sandbox| !sandbox.ready).await;
    bench.runtime.stop(&id(0), Duration::ZERO).await.unwrap();
    bench.exited(0).await;
    bench.start(1, &[]).await;
    bench.running(1).await;
    bench.sandbox_is(|sandbox| sandbox.ready).await;
    let anew = the_sandbox(&bench).id;
    let in_it = [0, 1].map(|attempt| bench.container(attempt).unwrap().sandbox == anew);
    assert_eq!(in_it, [false, true]);
    let names = names(&client).await;
    let pauses = names.iter().filter(|name| name.contains("POD"));
    assert_eq!(
        pauses.collect::<Vec<_>>(),
        [&format!("/k8s_POD_web_default_{}_1", uid())]
    );
}

#[tokio::test]
async fn a_container_that_somebody_starts_again_is_killed_because_its_time_is_over() {
    let (client, bench) = engine_or_skip!();
    bench.start(0, &[]).await;
    bench.running(0).await;
    let handle = bench.container(0).unwrap().handle;
    kill(&client, &handle).await;
    bench.exited(0).await;
    client.start_container(&handle, None).await.unwrap();
    let mut end = std::pin::pin!(client.wait_container(&handle, None));
    let ended = tokio::time::timeout(PATIENCE, end.try_next()).await;
    assert!(ended.is_ok(), "it still runs");
}

#[tokio::test]
async fn a_sweep_leaves_nothing_of_a_cluster() {
    let (client, bench) = engine_or_skip!();
    let sandbox = sandbox_with([("scratch", VolumeKind::Empty)]);
    bench.runtime.run_sandbox(sandbox).await.unwrap();
    bench.runtime.start(container(0, &[])).await.unwrap();
    let volume = format!("k8s_{}_scratch", uid());
    assert!(client.inspect_volume(&volume).await.is_ok());
    assert_eq!(sweep(&settings(), "another").await.unwrap(), 0);
    assert_eq!(sweep(&settings(), &cluster()).await.unwrap(), 2);
    assert_eq!(names(&client).await, Vec::<String>::new());
    assert!(client.inspect_volume(&volume).await.is_err());
}

/// Two agents that start at once make two, where the engine lets them.
#[tokio::test]
async fn two_networks_of_one_name_are_no_trouble() {
    let Some(client) = client().await else { return };
    let name = format!("setpoint-test-{}", uid());
    let mut made = Vec::new();
    for _ in 0..2 {
        let request = bollard::models::NetworkCreateRequest {
            name: name.clone(),
            ..Default::default()
        };
        made.extend(client.create_network(request).await.ok());
    }
    let network = name.clone();
    let bench = bench_with(Settings {
        network,
        ..settings()
    })
    .await;
    let held = bench.runtime.run_sandbox(sandbox()).await;
    drop(bench);
    for network in made {
        // An engine may count a container there that has just been removed, and keep the network.
        if let Err(error) = client.remove_network(&network.id).await {
            eprintln!("the engine keeps a network: {error}");
        }
    }
    held.unwrap();
}

#[tokio::test]
async fn without_a_socket_there_is_no_engine() {
    let settings = Settings {
        socket: "/nowhere/docker.sock".into(),
        ..Settings::default()
    };
    let refused = Engine::connect(&settings).await.unwrap_err();
    assert!(matches!(refused, Unusable::Silent { .. }));
}
