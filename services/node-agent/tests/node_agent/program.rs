//! The agent's program in its other roles.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use setpoint_model::Key;
use setpoint_runtime::process::Processes;
use setpoint_runtime::{ContainerConfig, ContainerId, Runtime as _, SandboxConfig, State};
use tokio::sync::Notify;
use tokio::time::timeout;

const PROGRAM: &str = env!("CARGO_BIN_EXE_node-agent");
/// Upper bound on every wait.
const TIMEOUT: Duration = Duration::from_secs(60);

fn id() -> ContainerId {
    ContainerId {
        uid: "uid-1".into(),
        name: "main".into(),
        attempt: 0,
    }
}

fn sandbox() -> SandboxConfig {
    SandboxConfig {
        namespace: "default".into(),
        name: "web".into(),
        uid: id().uid,
        ip: Ipv4Addr::new(127, 9, 9, 2),
        ..SandboxConfig::default()
    }
}

/// Runs `work` with the runtime of an agent. Its tasks end with the closure, its containers do not.
fn with_agent(state: &Path, work: impl AsyncFnOnce(&Processes, &Notify)) {
    let machine = tokio::runtime::Runtime::new().unwrap();
    machine.block_on(async {
        let woken = Arc::new(Notify::new());
        let notify = Arc::clone(&woken);
        let wake = Arc::new(move |_: &Key| notify.notify_one());
        let runtime = Processes::open(state, PROGRAM, None, wake).unwrap();
        let worked = timeout(TIMEOUT, work(&runtime, &woken)).await;
        worked.expect("the container gets there in time");
    });
}

/// Waits until the state of the container satisfies `wanted`.
async fn wait_for(runtime: &Processes, woken: &Notify, wanted: impl Fn(&State) -> bool) {
    while !runtime.state(&id()).as_ref().is_some_and(&wanted) {
        woken.notified().await;
    }
}

#[test]
fn the_program_is_the_shim_of_a_container_and_stops_it_in_a_sweep() {
    let state = tempfile::tempdir().unwrap();
    with_agent(state.path(), async |runtime, woken| {
        runtime.run_sandbox(sandbox()).await.unwrap();
        let config = ContainerConfig {
            id: id(),
            command: ["sleep", "1000"].map(Into::into).into(),
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            ..ContainerConfig::default()
        };
        runtime.start(config).await.unwrap();
        wait_for(runtime, woken, |state| {
            matches!(state, State::Running { .. })
        })
        .await;
    });
    let swept = Command::new(PROGRAM)
        .arg("sweep")
        .arg(state.path())
        .output();
    let said = String::from_utf8(swept.unwrap().stdout).unwrap();
    assert_eq!(said, "stopped 1 containers\n");
    with_agent(state.path(), async |runtime, woken| {
        let ended = |state: &State| matches!(state, State::Exited(exit) if exit.code == 143);
        wait_for(runtime, woken, ended).await;
    });
}

/// As containerd before 1.6, which serves another version.
#[tokio::test]
async fn the_agent_of_a_runtime_without_version_v1_of_the_cri_ends_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("old.sock");
    let listener = tokio::net::UnixListener::bind(&socket).unwrap();
    let incoming = futures::stream::unfold(listener, |listener| async {
        let accepted = listener.accept().await.map(|(stream, _)| stream);
        Some((accepted, listener))
    });
    let server = tonic::transport::Server::builder().add_routes(tonic::service::Routes::default());
    let serving = tokio::spawn(server.serve_with_incoming(incoming));
    let endpoint = format!("unix://{}", socket.display());
    let agent = tokio::process::Command::new(PROGRAM)
        .args(["--tls-plaintext", "--runtime", "cri", "--cri-endpoint"])
        .arg(&endpoint)
        .arg("--state-dir")
        .arg(folder.path())
        .kill_on_drop(true)
        .output();
    let ended = timeout(TIMEOUT, agent).await.expect("it ends").unwrap();
    serving.abort();
    let said = [ended.stdout, ended.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    let why = "validate CRI v1 runtime API for endpoint ";
    let says_why = said.contains(why) && said.contains(&endpoint);
    assert!(!ended.status.success() && says_why, "{said}");
}
