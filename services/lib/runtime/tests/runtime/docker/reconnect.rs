//! Reconnection to an engine that is unreachable for a while.

use std::path::{Path, PathBuf};

use bollard::query_parameters::RemoveContainerOptionsBuilder;
use setpoint_runtime::Runtime as _;
use setpoint_runtime::contract::{Fixture, container, uid};
use setpoint_runtime::docker::{Docker, Settings};
use tokio::io::copy_bidirectional;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};

use super::fixture::{SOCKET, client, fixture_with, settings};
use super::kill;

/// Forwards connections from one socket to another until it is cut.
struct Proxy {
    from: PathBuf,
    to: PathBuf,
    task: Option<JoinHandle<()>>,
}

impl Proxy {
    fn new(from: &Path, to: &str) -> Self {
        let (from, to) = (from.to_owned(), to.into());
        let mut proxy = Self {
            from,
            to,
            task: None,
        };
        proxy.listen();
        proxy
    }

    /// Closes all connections and stops listening.
    async fn cut(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
            let _ = task.await;
        }
        std::fs::remove_file(&self.from).unwrap();
    }

    /// Starts to listen.
    fn listen(&mut self) {
        let listener = UnixListener::bind(&self.from).unwrap();
        let to = self.to.clone();
        self.task = Some(tokio::spawn(async move {
            let mut calls = JoinSet::new();
            while let Ok((mut caller, _)) = listener.accept().await {
                let to = to.clone();
                calls.spawn(async move {
                    let mut callee = UnixStream::connect(to).await.unwrap();
                    let _ = copy_bidirectional(&mut caller, &mut callee).await;
                });
            }
        }));
    }
}

/// Returns a runtime whose connection to the engine can be cut.
async fn fixture_behind_proxy(folder: &tempfile::TempDir) -> (Fixture<Docker>, Proxy) {
    let socket = folder.path().join("engine.sock");
    let proxy = Proxy::new(&socket, SOCKET);
    let settings = Settings {
        socket,
        ..settings()
    };
    (fixture_with(settings).await, proxy)
}

/// State changes during a broken connection are found after the reconnect.
#[tokio::test]
async fn the_runtime_reconnects_to_the_engine() {
    let Some(client) = client().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let (fixture, mut proxy) = fixture_behind_proxy(&folder).await;
    fixture.start(0, &[]).await;
    fixture.running(0).await;
    proxy.cut().await;
    kill(&client, &fixture.container(0).unwrap().runtime_id).await;
    assert!(fixture.runtime.start(container(1, &[])).await.is_err());
    proxy.listen();
    assert_eq!(fixture.exited(0).await.code, 137);
    fixture.start(1, &[]).await;
    fixture.running(1).await;
}

#[tokio::test]
async fn a_container_removed_during_a_lost_connection_is_lost() {
    let Some(client) = client().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let (fixture, mut proxy) = fixture_behind_proxy(&folder).await;
    fixture.start(0, &[]).await;
    fixture.running(0).await;
    proxy.cut().await;
    for name in ["POD", "main"] {
        let name = format!("k8s_{name}_web_default_{}_0", uid());
        let force = RemoveContainerOptionsBuilder::default().force(true).build();
        client.remove_container(&name, Some(force)).await.unwrap();
    }
    proxy.listen();
    assert_eq!(fixture.exited(0).await.reason(), "ContainerStatusUnknown");
    fixture.sandbox_is(|sandbox| !sandbox.ready).await;
}
