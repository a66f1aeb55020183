//! An engine that is out of sight for a while.

use bollard::query_parameters::RemoveContainerOptionsBuilder;
use setpoint_node_agent::runtime::Runtime as _;
use setpoint_node_agent::runtime::docker::{Docker, Settings};

use crate::kill;
use crate::support::docker::{SOCKET, bench_with, client, settings};
use crate::support::line::Line;
use crate::support::{Bench, container, uid};

/// An agent whose connection to the engine can be cut.
async fn bench_on_a_line(folder: &tempfile::TempDir) -> (Bench<Docker>, Line) {
    let socket = folder.path().join("engine.sock");
    let line = Line::new(&socket, SOCKET);
    let settings = Settings {
        socket,
        ..settings()
    };
    (bench_with(settings).await, line)
}

/// What happens while the connection to the engine is broken is seen once it is back.
#[tokio::test]
async fn an_engine_out_of_sight_is_found_again() {
    let Some(client) = client().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let (bench, mut line) = bench_on_a_line(&folder).await;
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
async fn what_is_removed_out_of_sight_is_lost() {
    let Some(client) = client().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let (bench, mut line) = bench_on_a_line(&folder).await;
    bench.start(0, &[]).await;
    bench.running(0).await;
    line.cut().await;
    for name in ["POD", "main"] {
        let name = format!("k8s_{name}_web_default_{}_0", uid());
        let force = RemoveContainerOptionsBuilder::default().force(true).build();
        client.remove_container(&name, Some(force)).await.unwrap();
    }
    line.mend();
    assert_eq!(bench.exited(0).await.reason(), "ContainerStatusUnknown");
    bench.sandbox_is(|sandbox| !sandbox.ready).await;
}
