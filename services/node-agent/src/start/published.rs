//! The task that publishes ports of Services on the engine's machine, if the settings ask for it.

use std::sync::Arc;

use setpoint_controller::{Client, Recorder};
use setpoint_runtime::docker::Docker;
use tokio_util::sync::CancellationToken;

use crate::node::published::{self, PublishedService, Publisher};
use crate::settings::Settings;

/// Publishes the ports of Services until dropped; never ends.
pub async fn keep(docker: Docker, settings: Settings, gateway: Client, node: String) {
    // The settings were checked at start.
    let Ok(Some(at)) = settings.docker.published() else {
        return std::future::pending().await;
    };
    let events = match settings.writes_events() {
        true => Recorder::on_node(gateway.clone(), "kubelet", &node),
        false => Recorder::silent(),
    };
    let changed = Arc::default();
    let services = published::informer(gateway.informer::<PublishedService>(), &changed);
    let publisher = Publisher {
        docker,
        published: at,
        services: services.reader(),
        changed,
        events,
    };
    let tasks = gateway.tasks().clone();
    // Dropped with this future.
    let stop = CancellationToken::new();
    tokio::join!(
        services.run(stop),
        tasks.supervise("published-ports", "", || publisher.run()),
    );
}
