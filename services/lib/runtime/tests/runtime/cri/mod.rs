//! Tests of the cri runtime beyond the contract.

mod broken;
mod disk_full;
mod fields;
pub mod fixture;
mod images;
mod mounts;
mod registries;
mod usage;
mod users;

use std::time::Duration;

use setpoint_runtime::contract::{
    ALL_OUTPUT, POLL_INTERVAL, TIMEOUT, Woken, container, id, pod, sandbox, uid,
};
use setpoint_runtime::cri::{ConnectError, Service, Settings};
use setpoint_runtime::{Dns, LogOptions, Obstacle, Runtime as _, SandboxConfig, State};
use tokio::time::{sleep, timeout};

use self::fixture::{Containerd, fixture, open};

#[tokio::test]
async fn without_a_socket_or_with_an_old_runtime_the_agent_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.sock");
    let settings = Settings {
        endpoint: format!("unix://{}", path.display()),
        ..Settings::default()
    };
    let none = Service::connect(&settings).await.unwrap_err();
    let expected = format!("no container runtime listens at unix://{}", path.display());
    assert_eq!(none.to_string(), expected);
    // A server without the service: containerd before 1.6 has only v1alpha2.
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let incoming = futures::stream::unfold(listener, |listener| async {
        let accepted = listener.accept().await.map(|(stream, _)| stream);
        Some((accepted, listener))
    });
    let server = tonic::transport::Server::builder().add_routes(tonic::service::Routes::default());
    let serving = tokio::spawn(server.serve_with_incoming(incoming));
    let old = Service::connect(&settings).await.unwrap_err();
    assert!(matches!(old, ConnectError::NoV1 { .. }), "{old}");
    let message = old.to_string();
    assert!(
        message.starts_with("validate CRI v1 runtime API for endpoint \"unix://"),
        "{message}"
    );
    serving.abort();
}

#[tokio::test]
async fn a_pod_has_the_address_that_cni_gave_and_its_own_host_name_and_resolver() {
    let Some(fixture) = fixture().await else {
        return;
    };
    let config = SandboxConfig {
        hostname: "box".into(),
        ..sandbox()
    };
    fixture.runtime.run_sandbox(config).await.unwrap();
    let mut main = container(0, &["sh", "-c", "exec sleep 1000"]);
    main.dns = Some(Dns {
        replaces: true,
        nameservers: vec!["10.96.0.10".into()],
        searches: vec!["shop.svc.cluster.local".into()],
        ..Dns::default()
    });
    fixture.runtime.start(main).await.unwrap();
    fixture.running(0).await;
    let ip = fixture.runtime.sandboxes(&pod())[0].config.ip;
    assert!(ip.octets()[0] == 10 && ip != sandbox().ip, "{ip}");
    let script = "hostname; cat /etc/hosts /etc/resolv.conf";
    let (seen, _, code) = fixture.run(&["sh", "-c", script], ALL_OUTPUT, &[]).await;
    assert!(code == 0 && seen.starts_with("box\n"), "{seen}");
    assert!(seen.contains(&format!("{ip}\tbox\n")), "{seen}");
    assert!(
        seen.ends_with("search shop.svc.cluster.local\nnameserver 10.96.0.10\n"),
        "{seen}"
    );
    fixture.clean_up().await;
}

#[tokio::test]
async fn an_agent_that_starts_again_takes_over_what_runs() {
    let Some(containerd) = Containerd::start() else {
        return;
    };
    let woken = Woken::default();
    let first = open(&containerd, &woken).await;
    first.run_sandbox(sandbox()).await.unwrap();
    first.start(container(0, &["sleep", "1000"])).await.unwrap();
    let before = first.sandboxes(&pod());
    assert!(matches!(
        before[0].containers[0].state,
        State::Running { .. }
    ));
    drop(first);
    let second = open(&containerd, &woken).await;
    assert_eq!(second.sandboxes(&pod()), before);
    second.run_sandbox(sandbox()).await.unwrap();
    second
        .start(container(0, &["sleep", "1000"]))
        .await
        .unwrap();
    assert_eq!(second.sandboxes(&pod()), before, "nothing is doubled");
    let tasks = containerd.ctr(&["tasks", "list", "-q"]);
    assert_eq!(String::from_utf8_lossy(&tasks.stdout).lines().count(), 2);
    second.stop(&id(0), Duration::ZERO).await.unwrap();
    drop(second);
}

#[tokio::test]
async fn a_sandbox_that_died_is_made_anew_and_the_old_one_goes_with_its_containers() {
    let Some(containerd) = Containerd::start() else {
        return;
    };
    let woken = Woken::default();
    let runtime = open(&containerd, &woken).await;
    runtime.run_sandbox(sandbox()).await.unwrap();
    runtime
        .start(container(0, &["sleep", "1000"]))
        .await
        .unwrap();
    let dead = runtime.sandboxes(&pod())[0].id.clone();
    let killed = containerd.ctr(&["tasks", "kill", "--signal", "SIGKILL", &dead]);
    assert!(killed.status.success(), "{killed:?}");
    until(|| !runtime.sandboxes(&pod())[0].ready).await;
    runtime.run_sandbox(sandbox()).await.unwrap();
    let renewed = runtime.sandboxes(&pod());
    assert!(renewed.len() == 1 && renewed[0].ready && renewed[0].id != dead);
    until(|| matches!(runtime.state(&id(0)), Some(State::Exited(_)))).await;
    runtime
        .start(container(1, &["sleep", "1000"]))
        .await
        .unwrap();
    assert_eq!(
        runtime.sandboxes(&pod())[0].containers[1].sandbox,
        renewed[0].id
    );
    runtime.remove(&id(0)).await.unwrap();
    let left = || {
        let listed = containerd.ctr(&["containers", "list", "-q"]);
        String::from_utf8_lossy(&listed.stdout).contains(&dead)
    };
    until(|| !left()).await;
    runtime.stop(&id(1), Duration::ZERO).await.unwrap();
    until(|| matches!(runtime.state(&id(1)), Some(State::Exited(_)))).await;
}

/// Waits until something of the runtime is as wanted.
async fn until(mut wanted: impl FnMut() -> bool) {
    let seen = async {
        while !wanted() {
            sleep(POLL_INTERVAL).await;
        }
    };
    timeout(TIMEOUT, seen).await.expect("it comes about");
}

#[tokio::test]
async fn a_runtime_that_is_killed_is_followed_again_and_its_containers_run_on() {
    let Some(mut containerd) = Containerd::start() else {
        return;
    };
    let woken = Woken::default();
    let runtime = open(&containerd, &woken).await;
    runtime.run_sandbox(sandbox()).await.unwrap();
    let script = "until [ -e /tmp/go ]; do sleep 0.01; done; exit 3";
    runtime
        .start(container(0, &["sh", "-c", script]))
        .await
        .unwrap();
    containerd.kill();
    until(|| runtime.network_ready().is_err()).await;
    assert!(runtime.start(container(1, &["true"])).await.is_err());
    assert!(matches!(runtime.state(&id(0)), Some(State::Running { .. })));
    containerd.restart();
    until(|| runtime.network_ready().is_ok()).await;
    let streams = setpoint_runtime::Streams {
        stdout: true,
        ..Default::default()
    };
    let nothing = Box::pin(futures::stream::empty());
    let command = ["touch".to_owned(), "/tmp/go".to_owned()];
    let ran = runtime
        .exec(&id(0), &command, streams, nothing)
        .await
        .unwrap();
    drop(futures::StreamExt::collect::<Vec<_>>(ran).await);
    until(|| matches!(runtime.state(&id(0)), Some(State::Exited(exit)) if exit.code == 3)).await;
}

#[tokio::test]
async fn without_a_configuration_of_cni_the_network_is_not_ready() {
    let Some(containerd) = Containerd::start() else {
        return;
    };
    containerd.remove_network();
    let woken = Woken::default();
    let settings = containerd.settings();
    let service = Service::connect(&settings).await.unwrap();
    let (state, node) = (containerd.state(), uid());
    let runtime =
        setpoint_runtime::cri::Cri::open(service, &settings, &node, &state, woken.wake(), |_| {});
    let runtime = runtime.await.unwrap();
    until(|| runtime.network_ready().is_err()).await;
    let why = runtime.network_ready().unwrap_err();
    assert!(
        matches!(&why, Obstacle::Network(why) if why.contains("cni")),
        "{why}"
    );
}

#[tokio::test]
async fn a_port_of_the_loopback_of_a_pod_is_forwarded_and_a_refusal_is_told() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let Some(fixture) = fixture().await else {
        return;
    };
    let server = ["busybox", "nc", "-ll", "-p", "7000", "-e", "cat"];
    fixture.start(0, &server).await;
    fixture.running(0).await;
    let data = vec![7; 300_000];
    let echoed = async {
        loop {
            let connection = fixture
                .runtime
                .connect_loopback(&uid(), 7000)
                .await
                .unwrap();
            let (mut read, mut write) = tokio::io::split(connection);
            let upload = async {
                let _ = write.write_all(&data).await;
                let _ = write.shutdown().await;
            };
            let mut answer = Vec::new();
            // It may not listen yet.
            if tokio::join!(upload, read.read_to_end(&mut answer))
                .1
                .is_ok()
            {
                return answer;
            }
        }
    };
    assert!(timeout(TIMEOUT, echoed).await.unwrap() == data);
    let mut refused = fixture
        .runtime
        .connect_loopback(&uid(), 7001)
        .await
        .unwrap();
    let told = timeout(TIMEOUT, refused.read_to_end(&mut Vec::new()))
        .await
        .unwrap();
    let told = told.unwrap_err().to_string();
    assert!(told.contains("connection refused"), "{told}");
    fixture.clean_up().await;
}

#[tokio::test]
async fn a_log_has_the_timestamps_of_the_runtime_and_long_lines_whole() {
    let Some(fixture) = fixture().await else {
        return;
    };
    let script =
        "i=0; while [ $i -lt 5000 ]; do echo -n 0123456789; i=$((i+1)); done; echo; echo last";
    fixture.start(0, &["sh", "-c", script]).await;
    fixture.exited(0).await;
    let log = fixture.log(0, LogOptions::default()).await;
    let mut lines = log.lines();
    assert_eq!(lines.next().map(str::len), Some(50_000));
    assert_eq!(lines.next(), Some("last"));
    let stamped = LogOptions {
        timestamps: true,
        tail: Some(1),
        ..LogOptions::default()
    };
    let stamped = fixture.log(0, stamped).await;
    let (time, text) = stamped.split_once(' ').unwrap();
    assert_eq!(text, "last\n");
    time.parse::<jiff::Timestamp>().unwrap();
    fixture.clean_up().await;
}
