//! An address that one Pod has had, and another one gets.

use std::time::Duration;

use setpoint_runtime::contract::{container, id, uid};
use setpoint_runtime::{Runtime as _, SandboxConfig};

use super::{Bridge, SERVER, answer, state};

/// The machine remembers for up to a minute where an address was, unless the bridge has no other Pod.
#[test]
fn a_pod_is_reached_at_once_at_the_address_of_one_that_has_gone() {
    let Some(bridge) = Bridge::new() else { return };
    let state = state();
    bridge.with_agent(&state, async |fixture| {
        let runtime = &fixture.runtime;
        let stays = SandboxConfig {
            uid: format!("{}-1", uid()),
            ..bridge.sandbox(3)
        };
        runtime.run_sandbox(stays).await.unwrap();
        runtime.run_sandbox(bridge.sandbox(2)).await.unwrap();
        runtime.start(container(0, &SERVER)).await.unwrap();
        assert_eq!(answer((bridge.pod(2), 80)).await, "web\n");
        runtime.stop(&id(0), Duration::ZERO).await.unwrap();
        fixture.exited(0).await;
        runtime.remove_sandbox(&uid()).await.unwrap();
        let next = SandboxConfig {
            name: "next".into(),
            uid: format!("{}-2", uid()),
            ..bridge.sandbox(2)
        };
        runtime.run_sandbox(next.clone()).await.unwrap();
        let mut server = container(0, &SERVER);
        server.id.uid.clone_from(&next.uid);
        runtime.start(server).await.unwrap();
        assert_eq!(answer((bridge.pod(2), 80)).await, "next\n");
    });
    bridge.sweep(&state);
}
