//! Runtimes that lack plug-ins, or have lost the state of a container.

use setpoint_runtime::contract::{Woken, container, id, pod, sandbox};
use setpoint_runtime::{Error, Runtime as _, State};

use super::fixture::{Containerd, open};
use super::until;

#[tokio::test]
async fn without_the_plug_ins_of_cni_a_sandbox_is_refused_and_made_once_they_are_there() {
    let Some(containerd) = Containerd::start() else {
        return;
    };
    let runtime = open(&containerd, &Woken::default()).await;
    containerd.remove_plugins();
    for _ in 0..2 {
        let why = match runtime.run_sandbox(sandbox()).await {
            Err(Error::Refused { why, .. }) => why,
            other => panic!("{other:?}"),
        };
        // That of the loopback, at the removal of what was left of the first attempt.
        let missing = |name| why.contains(&format!("failed to find plugin {name:?} in path"));
        assert!(missing("bridge") || missing("loopback"), "{why}");
    }
    containerd.add_plugins();
    runtime.run_sandbox(sandbox()).await.unwrap();
    assert!(runtime.sandboxes(&pod())[0].ready);
    until(|| containerd.shims() == 1).await;
    runtime.remove_sandbox(&sandbox().uid).await.unwrap();
    let left = containerd.ctr(&["containers", "list", "-q"]);
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
}

/// A runtime that is killed, and has lost the state of a container, reports it as unknown.
#[tokio::test]
async fn a_running_container_whose_state_the_runtime_does_not_know_any_more_has_ended() {
    let Some(mut containerd) = Containerd::start() else {
        return;
    };
    let runtime = open(&containerd, &Woken::default()).await;
    runtime.run_sandbox(sandbox()).await.unwrap();
    let sleep = container(0, &["sleep", "1000"]);
    runtime.start(sleep).await.unwrap();
    let known = runtime.sandboxes(&pod());
    let running = known[0].containers[0].runtime_id.clone();
    containerd.kill();
    containerd.kill_shims();
    containerd.forget_state(&running);
    containerd.restart();
    until(|| matches!(runtime.state(&id(0)), Some(State::Exited(_)))).await;
    runtime.remove_sandbox(&sandbox().uid).await.unwrap();
}
