//! What only an engine can show: kills from outside, memory, volumes, images, and agents that die and come back.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod support;

use std::time::Duration;

use bollard::query_parameters::{KillContainerOptions, ListContainersOptionsBuilder};
use futures::TryStreamExt as _;
use setpoint_node_agent::runtime::docker::{Docker, Engine, Settings, Unusable, sweep};
use setpoint_node_agent::runtime::{
    Error, File, Limits, LogOptions, Mount, Origin, Pull, Runtime, Sandbox, Volume, VolumeKind,
};
use support::docker::{bench, bench_with, client, cluster, settings};
use support::registry::Registry;
use support::{Bench, container, id, pod, sandbox, uid};

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
        .start(0, &["sh", "-c", "trap '' TERM; while :; do sleep 1; done"])
        .await;
    bench.running(0).await;
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
    let before = first.runtime.sandboxes(&pod());
    let second = bench_with(settings()).await;
    assert_eq!(second.runtime.pods(), [pod()]);
    let mut after = second.runtime.sandboxes(&pod());
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

/// Checks N2.
#[tokio::test]
async fn a_container_that_was_made_and_not_started_is_made_anew() {
    let (client, bench) = engine_or_skip!();
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
    let left = client
        .create_container(Some(options), body)
        .await
        .unwrap()
        .id;
    bench.start(1, &["sh", "-c", "exit 7"]).await;
    assert_eq!(bench.exited(1).await.code, 7);
    assert_ne!(bench.container(1).unwrap().handle, left);
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
    let ended = tokio::time::timeout(Duration::from_secs(20), end.try_next()).await;
    assert!(ended.is_ok(), "it still runs");
}

#[tokio::test]
async fn volumes_are_shared_filled_and_kept_from_the_disk_where_they_are_secret() {
    let (_, bench) = engine_or_skip!();
    let file = |path: &str, content: &str| File {
        path: path.into(),
        content: content.into(),
        mode: 0o440,
    };
    let files = |file, secret| VolumeKind::Files {
        files: vec![file],
        secret,
    };
    let mut sandbox = sandbox();
    sandbox.volumes = [
        ("config", files(file("conf.d/a", "from a map\n"), false)),
        ("secret", files(file("key", "hush\n"), true)),
        ("scratch", VolumeKind::Empty),
        ("memory", VolumeKind::Memory(1 << 20)),
    ]
    .map(|(name, kind)| Volume {
        name: name.into(),
        kind,
    })
    .into();
    bench.runtime.run_sandbox(sandbox).await.unwrap();
    let mount = |volume: &str, copies| Mount {
        volume: volume.into(),
        path: format!("/{volume}"),
        read_only: false,
        copies,
    };
    let script = "cat /config/conf.d/a /secret/key /etc/one; touch /scratch/left /memory/left; \
                  grep -c 'tmpfs /memory' /proc/mounts; grep -c 'tmpfs /secret' /proc/mounts; stat -c %a /scratch /secret/key";
    let mut writer = container(0, &["sh", "-c", script]);
    writer.security.user = "1000".into();
    writer.security.groups = vec!["0".into()];
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

async fn reason(bench: &Bench<Docker>, pull: Pull) -> &'static str {
    let mut config = container(0, &[]);
    (config.image, config.pull) = ("127.0.0.1:9/setpoint-test/none:1".into(), pull);
    match bench.runtime.start(config).await {
        Err(Error::Image { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

/// Where the image of an attempt comes from, once it is there; or why it is not. Also how many pulls began.
async fn origin(
    bench: &Bench<Docker>,
    attempt: u32,
    image: &str,
    pull: Pull,
) -> (Result<Origin, &'static str>, usize) {
    let mut begun = 0;
    loop {
        let mut config = container(attempt, &["true"]);
        (config.image, config.pull) = (image.to_owned(), pull);
        match bench.runtime.start(config).await {
            Ok(origin) => return (Ok(origin), begun),
            Err(Error::Image {
                reason, pulling, ..
            }) => {
                begun += usize::from(pulling);
                if reason != "ContainerCreating" {
                    return (Err(reason), begun);
                }
                bench.changed().await;
            }
            Err(other) => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn an_image_is_pulled_when_its_policy_says_so() {
    let Some(registry) = Registry::start().await else {
        return;
    };
    let (client, bench) = engine_or_skip!();
    let image = registry.image(&client).await;
    bench.runtime.run_sandbox(sandbox()).await.unwrap();
    let never = origin(&bench, 0, &image, Pull::Never).await;
    assert_eq!(never, (Err("ErrImageNeverPull"), 0));
    let (found, begun) = origin(&bench, 0, &image, Pull::IfNotPresent).await;
    let Ok(Origin::Registry(pulled)) = found else {
        panic!("{found:?}");
    };
    assert!(pulled.bytes > 1 << 20 && pulled.took <= pulled.waited && !pulled.took.is_zero());
    assert_eq!((begun, bench.exited(0).await.code), (1, 0));
    let there = (Ok(Origin::Machine), 0);
    assert_eq!(origin(&bench, 1, &image, Pull::IfNotPresent).await, there);
    assert_eq!(origin(&bench, 2, &image, Pull::Never).await, there);
    let (again, begun) = origin(&bench, 3, &image, Pull::Always).await;
    assert!(matches!((again, begun), (Ok(Origin::Registry(_)), 1)));
    let missing = image.trim_end_matches(":1").to_owned() + ":2";
    let failed = origin(&bench, 4, &missing, Pull::IfNotPresent).await;
    assert_eq!(failed, (Err("ErrImagePull"), 1));
    let rests = origin(&bench, 4, &missing, Pull::IfNotPresent).await;
    assert_eq!(rests, (Err("ImagePullBackOff"), 0));
    let wrong = origin(&bench, 4, "Not/A/Name", Pull::Always).await;
    assert_eq!(wrong, (Err("InvalidImageName"), 0));
}

#[tokio::test]
async fn an_image_that_cannot_be_had_is_told_in_the_words_of_the_kubelet() {
    let (_, bench) = engine_or_skip!();
    bench.runtime.run_sandbox(sandbox()).await.unwrap();
    assert_eq!(reason(&bench, Pull::Never).await, "ErrImageNeverPull");
    assert_eq!(
        reason(&bench, Pull::IfNotPresent).await,
        "ContainerCreating"
    );
    let failed = async {
        loop {
            bench.changed().await;
            match reason(&bench, Pull::IfNotPresent).await {
                "ContainerCreating" => {}
                other => return other,
            }
        }
    };
    let failed = tokio::time::timeout(Duration::from_secs(60), failed)
        .await
        .unwrap();
    assert_eq!(failed, "ErrImagePull");
    assert_eq!(reason(&bench, Pull::IfNotPresent).await, "ImagePullBackOff");
    assert!(bench.container(0).is_none());
}

/// What happens while the connection to the engine is broken is seen once it is back.
#[tokio::test]
async fn an_engine_out_of_sight_is_found_again() {
    let Some(client) = client().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("engine.sock");
    let mut line = support::line::Line::new(&socket, support::docker::SOCKET);
    let bench = bench_with(Settings {
        socket,
        ..settings()
    })
    .await;
    bench.start(0, &[]).await;
    bench.running(0).await;
    line.cut().await;
    kill(&client, &bench.container(0).unwrap().handle).await;
    assert!(bench.runtime.start(container(1, &[])).await.is_err());
    line.mend();
    assert_eq!(bench.exited(0).await.code, 137);
    bench.start(1, &[]).await;
    bench.running(1).await;
}

#[tokio::test]
async fn a_sweep_leaves_nothing_of_a_cluster() {
    let (client, bench) = engine_or_skip!();
    let mut sandbox = sandbox();
    let scratch = Volume {
        name: "scratch".into(),
        kind: VolumeKind::Empty,
    };
    sandbox.volumes = vec![scratch];
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
        client.remove_network(&network.id).await.unwrap();
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
