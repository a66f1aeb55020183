//! The tasks that free resources of the node: eviction, and the collection of images and volumes.

use std::sync::Arc;

use setpoint_controller::{Replica, runtime};
use setpoint_runtime::Runtime;

use crate::node::eviction::Manager;
use crate::node::usage::Meter;
use crate::node::{Node, Pods, eviction, image_gc, reclaim};
use crate::settings::Settings;

/// Removes images and evicts Pods when the node is short of resources, until dropped. A simulated node never is.
pub async fn relieve<R: Runtime>(
    replica: &Replica,
    settings: &Settings,
    node: Node,
    pods: Arc<Pods<R>>,
    meter: Arc<Meter<R>>,
) {
    let Some(disks) = node.disks.clone() else {
        return std::future::pending().await;
    };
    let (runtime, events) = (pods.runtime.clone(), &replica.events);
    let (about, policy, images) = (node.subject(), settings.image_gc(), disks.images.clone());
    let manager = Manager {
        pods,
        meter,
        events: events.clone(),
        about: about.clone(),
        settings: settings.eviction.clone(),
        thresholds: settings.eviction.thresholds().unwrap_or_default(),
        observe: Arc::new(move || disks.observe()),
        image_age: policy.min_age,
    };
    let space = || images.as_deref().and_then(eviction::disk);
    let tasks = replica.client.tasks();
    tokio::join!(
        tasks.supervise("eviction", &node.name, || manager.run()),
        tasks.supervise("storage-limits", &node.name, || manager.enforce_limits()),
        tasks.supervise("image-gc", &node.name, || {
            image_gc::run(&runtime, policy, space, events, &about)
        }),
    );
}

/// Removes the directories of persistent volumes that are being deleted, until shutdown.
///
/// # Errors
/// If the controller ends with one.
pub async fn reclaim<R: Runtime>(
    replica: &Replica,
    pods: Arc<Pods<R>>,
    node: &Node,
    settings: runtime::Settings,
) -> anyhow::Result<()> {
    if let Some(folder) = node.local_path.clone() {
        let controller = reclaim::controller(replica, &pods, &node.name, folder);
        let controller = controller.settings(settings);
        let shutdown = replica.host.shutdown();
        controller.run(replica.host.instance(), shutdown).await?;
    }
    // At a shutdown, the agent ends when its Pods are at rest.
    std::future::pending().await
}
