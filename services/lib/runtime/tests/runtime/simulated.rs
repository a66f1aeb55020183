//! The simulated runtime.

use std::time::Duration;

use futures::StreamExt as _;
use setpoint_runtime::Runtime as _;
use setpoint_runtime::contract::{ALL_OUTPUT, Fixture, Woken, id, uid};
use setpoint_runtime::simulated::Simulated;

pub fn simulated() -> Fixture<Simulated> {
    let woken = Woken::default();
    let runtime = Simulated::new(Duration::from_millis(1), woken.wake());
    Fixture::new(runtime, crate::MACHINE, woken, ())
}

/// Simulated containers have no processes.
#[tokio::test]
async fn a_simulated_node_refuses_commands_and_connections_with_a_reason() {
    let fixture = simulated();
    fixture.start(0, &[]).await;
    fixture.running(0).await;
    let nothing = || futures::stream::empty().boxed();
    let (runtime, command) = (&fixture.runtime, ["true".to_owned()]);
    let refused = [
        runtime
            .exec(&id(0), &command, ALL_OUTPUT, nothing())
            .await
            .err(),
        runtime.attach(&id(0), ALL_OUTPUT, nothing()).await.err(),
        runtime.connect(&uid(), 80).await.err(),
    ];
    for (error, what) in refused.into_iter().zip(["exec", "attach", "port-forward"]) {
        let expected = format!("{what} is not supported on simulated nodes: no process runs there");
        assert_eq!(error.unwrap().to_string(), expected);
    }
    fixture.clean_up().await;
}
