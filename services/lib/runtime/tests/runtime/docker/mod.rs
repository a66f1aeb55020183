//! The docker runtime: external kills, memory limits, networks, and restarts of the agent.

pub mod answers;
mod config;
pub mod fixture;
mod hosts;
mod image_volumes;
mod images;
mod pod_resources;
mod reconnect;
mod restart;
mod volumes;
mod within;

use std::time::Duration;

use bollard::query_parameters::{KillContainerOptions, ListContainersOptionsBuilder};
use futures::TryStreamExt as _;
use setpoint_runtime::contract::{
    Fixture, TIMEOUT, container, id, pod, resources, sandbox, sandbox_with, uid,
};
use setpoint_runtime::docker::{ConnectError, Docker, Engine, Settings, sweep};
use setpoint_runtime::{Runtime, Sandbox, State, VolumeKind};

use self::fixture::{client, cluster, fixture, fixture_with, settings};

/// Returns a client and a fixture, or ends the test if there is no engine.
macro_rules! engine_or_skip {
    () => {
        match (client().await, fixture().await) {
            (Some(client), Some(fixture)) => (client, fixture),
            _ => return,
        }
    };
}

fn first_sandbox(fixture: &Fixture<Docker>) -> Sandbox {
    fixture.runtime.sandboxes(&pod()).remove(0)
}

async fn kill(client: &bollard::Docker, name: &str) {
    client
        .kill_container(name, None::<KillContainerOptions>)
        .await
        .unwrap();
}

/// Returns the names of all containers of this test.
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
async fn containers_are_named_after_their_pods() {
    let (client, fixture) = engine_or_skip!();
    fixture.start(0, &[]).await;
    fixture.running(0).await;
    let uid = uid();
    let expected = [
        format!("/k8s_POD_web_default_{uid}_0"),
        format!("/k8s_files_{uid}"),
        format!("/k8s_main_web_default_{uid}_0"),
    ];
    assert_eq!(names(&client).await, expected);
    assert!(!first_sandbox(&fixture).config.ip.is_unspecified());
}

#[tokio::test]
async fn a_container_that_is_killed_externally_is_observed_by_its_event() {
    let (client, fixture) = engine_or_skip!();
    fixture.start(0, &[]).await;
    fixture.running(0).await;
    kill(&client, &fixture.container(0).unwrap().runtime_id).await;
    assert_eq!(fixture.exited(0).await.code, 137);
}

#[tokio::test]
async fn a_container_that_exceeds_its_memory_limit_is_oom_killed() {
    let (_, fixture) = engine_or_skip!();
    fixture.runtime.run_sandbox(sandbox()).await.unwrap();
    let mut greedy = container(
        0,
        &["sh", "-c", "x=0123456789abcdef; while :; do x=$x$x; done"],
    );
    greedy.resources = resources(&[], &[("cpu", "500m"), ("memory", "16Mi")]);
    fixture.runtime.start(greedy).await.unwrap();
    assert_eq!(fixture.exited_because(0, "OOMKilled").await.code, 137);
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_a_start_error() {
    let (_, fixture) = engine_or_skip!();
    fixture.start(0, &["no-such-program"]).await;
    let exit = fixture.exited(0).await;
    assert_eq!((exit.code, exit.reason()), (128, "StartError"));
    assert!(exit.message.contains("no-such-program"), "{}", exit.message);
}

/// Checks N4.
#[tokio::test]
async fn a_container_that_ignores_the_request_to_stop_is_killed_after_its_grace() {
    let (_, fixture) = engine_or_skip!();
    fixture
        .start(
            0,
            &[
                "sh",
                "-c",
                "trap '' TERM; echo up; while :; do sleep 1; done",
            ],
        )
        .await;
    fixture.running(0).await;
    fixture.read_lines(0, 1).await;
    let asked = std::time::Instant::now();
    fixture
        .runtime
        .stop(&id(0), Duration::from_millis(300))
        .await
        .unwrap();
    assert_eq!(fixture.exited(0).await.code, 137);
    assert!(asked.elapsed() >= Duration::from_millis(300));
}

/// Checks N2.
#[tokio::test]
async fn a_restarted_agent_adopts_running_containers_and_starts_nothing_twice() {
    let (client, first) = engine_or_skip!();
    first.start(0, &["true"]).await;
    first.exited(0).await;
    first.start(1, &[]).await;
    first.running(1).await;
    let before = without_observed(first.runtime.sandboxes(&pod()));
    let second = fixture_with(settings()).await;
    assert_eq!(second.runtime.pods(), [pod()]);
    let mut after = without_observed(second.runtime.sandboxes(&pod()));
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

/// Returns the sandboxes without the observation times, which differ between agents.
fn without_observed(mut sandboxes: Vec<Sandbox>) -> Vec<Sandbox> {
    let containers = sandboxes.iter_mut().flat_map(|known| &mut known.containers);
    for container in containers {
        if let State::Exited(exit) = &mut container.state {
            exit.observed = None;
        }
    }
    sandboxes
}

/// Creates the second attempt at a container directly, as an agent that lost the engine's answer would have.
async fn create_out_of_band(client: &bollard::Docker, fixture: &Fixture<Docker>) -> String {
    fixture.start(0, &["true"]).await;
    fixture.exited(0).await;
    let made = client
        .inspect_container(&fixture.container(0).unwrap().runtime_id, None)
        .await
        .unwrap();
    let (labels, image) = made
        .config
        .map(|config| (config.labels, config.image))
        .unwrap();
    let labels = labels.map(|mut labels| {
        labels.insert("setpoint.dev/attempt".into(), "1".into());
        // Without the label no event announces the container.
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
async fn a_container_that_was_created_and_not_started_is_recreated() {
    let (client, fixture) = engine_or_skip!();
    let left = create_out_of_band(&client, &fixture).await;
    fixture.start(1, &["sh", "-c", "exit 7"]).await;
    assert_eq!(fixture.exited(1).await.code, 7);
    assert_ne!(fixture.container(1).unwrap().runtime_id, left);
}

/// Checks N2.
#[tokio::test]
async fn a_container_that_was_started_already_is_used() {
    let (client, fixture) = engine_or_skip!();
    let left = create_out_of_band(&client, &fixture).await;
    client.start_container(&left, None).await.unwrap();
    fixture.start(1, &[]).await;
    fixture.running(1).await;
    assert_eq!(fixture.container(1).unwrap().runtime_id, left);
}

/// Checks N2.
#[tokio::test]
async fn containers_of_another_node_are_ignored() {
    let (_, fixture) = engine_or_skip!();
    fixture.start(0, &[]).await;
    fixture.running(0).await;
    let engine = Engine::connect(&settings()).await.unwrap();
    let wake = std::sync::Arc::new(|_: &setpoint_model::Key| {});
    let other = Docker::open(engine, &settings(), "another", wake, |_| {}).await;
    assert_eq!(other.unwrap().pods(), []);
}

/// Checks N2.
#[tokio::test]
async fn an_attempt_that_has_ended_is_not_started_again() {
    let (client, fixture) = engine_or_skip!();
    fixture.start(0, &["true"]).await;
    fixture.exited(0).await;
    let runtime_id = fixture.container(0).unwrap().runtime_id;
    let began = async || {
        let seen = client.inspect_container(&runtime_id, None).await.unwrap();
        seen.state.unwrap().started_at
    };
    let before = began().await;
    fixture.start(0, &["true"]).await;
    assert_eq!(began().await, before);
}

/// Neither containers nor volumes of a Pod are left in the engine.
#[tokio::test]
async fn a_removed_sandbox_leaves_nothing_in_the_engine() {
    let (client, fixture) = engine_or_skip!();
    let sandbox = sandbox_with([("scratch", VolumeKind::Empty)]);
    fixture.runtime.run_sandbox(sandbox).await.unwrap();
    fixture.start(0, &[]).await;
    fixture.running(0).await;
    assert!(fixture.runtime.remove_sandbox(&uid()).await.is_err());
    fixture.runtime.stop(&id(0), Duration::ZERO).await.unwrap();
    fixture.exited(0).await;
    fixture.start(1, &["true"]).await;
    fixture.exited(1).await;
    fixture.runtime.remove(&id(0)).await.unwrap();
    assert_eq!(
        names(&client).await.len(),
        3,
        "a pause container, that of its files, and the last attempt"
    );
    fixture.runtime.remove_sandbox(&uid()).await.unwrap();
    assert_eq!(names(&client).await, Vec::<String>::new());
    let volume = format!("k8s_{}_scratch", uid());
    assert!(client.inspect_volume(&volume).await.is_err());
}

#[tokio::test]
async fn a_sandbox_whose_pause_container_is_killed_is_lost_and_recreated() {
    let (client, fixture) = engine_or_skip!();
    fixture.start(0, &[]).await;
    fixture.running(0).await;
    kill(&client, &format!("k8s_POD_web_default_{}_0", uid())).await;
    fixture.sandbox_is(|sandbox| !sandbox.ready).await;
    fixture.runtime.stop(&id(0), Duration::ZERO).await.unwrap();
    fixture.exited(0).await;
    fixture.start(1, &[]).await;
    fixture.running(1).await;
    fixture.sandbox_is(|sandbox| sandbox.ready).await;
    let recreated = first_sandbox(&fixture).id;
    let in_recreated =
        [0, 1].map(|attempt| fixture.container(attempt).unwrap().sandbox == recreated);
    assert_eq!(in_recreated, [false, true]);
    let names = names(&client).await;
    let pauses = names.iter().filter(|name| name.contains("POD"));
    assert_eq!(
        pauses.collect::<Vec<_>>(),
        [&format!("/k8s_POD_web_default_{}_1", uid())]
    );
}

#[tokio::test]
async fn an_exited_container_that_is_started_externally_is_killed() {
    let (client, fixture) = engine_or_skip!();
    fixture.start(0, &[]).await;
    fixture.running(0).await;
    let runtime_id = fixture.container(0).unwrap().runtime_id;
    kill(&client, &runtime_id).await;
    fixture.exited(0).await;
    client.start_container(&runtime_id, None).await.unwrap();
    let mut end = std::pin::pin!(client.wait_container(&runtime_id, None));
    let ended = tokio::time::timeout(TIMEOUT, end.try_next()).await;
    assert!(ended.is_ok(), "it still runs");
}

#[tokio::test]
async fn a_sweep_removes_everything_of_a_cluster() {
    let (client, fixture) = engine_or_skip!();
    let sandbox = sandbox_with([("scratch", VolumeKind::Empty)]);
    fixture.runtime.run_sandbox(sandbox).await.unwrap();
    fixture.runtime.start(container(0, &[])).await.unwrap();
    let volume = format!("k8s_{}_scratch", uid());
    assert!(client.inspect_volume(&volume).await.is_ok());
    assert_eq!(sweep(&settings(), "another").await.unwrap(), 0);
    assert_eq!(sweep(&settings(), &cluster()).await.unwrap(), 2);
    assert_eq!(names(&client).await, Vec::<String>::new());
    assert!(client.inspect_volume(&volume).await.is_err());
}

/// Two agents that start concurrently create two networks, if the engine allows it.
#[tokio::test]
async fn two_networks_of_the_same_name_are_tolerated() {
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
    let fixture = fixture_with(Settings {
        network,
        ..settings()
    })
    .await;
    let held = fixture.runtime.run_sandbox(sandbox()).await;
    drop(fixture);
    for network in made {
        // An engine may still count a container that was just removed, and keep the network.
        if let Err(error) = client.remove_network(&network.id).await {
            eprintln!("the engine keeps a network: {error}");
        }
    }
    held.unwrap();
}

#[tokio::test]
async fn connecting_without_a_socket_fails_as_unreachable() {
    let settings = Settings {
        socket: "/nowhere/docker.sock".into(),
        ..Settings::default()
    };
    let refused = Engine::connect(&settings).await.unwrap_err();
    assert!(matches!(refused, ConnectError::Unreachable { .. }));
}
