//! Starts the scheduler.

use setpoint_controller::{QueueHandle, Replica};
use setpoint_host::Host;
use setpoint_proto::Resource as _;
use setpoint_proto::core::Pod;

use crate::assumed::Assumed;
use crate::cycle::Scheduler;
use crate::metrics;
use crate::node::NodeView;
use crate::pod::PodView;
use crate::settings::Settings;
use crate::unschedulable::Unschedulable;

/// Runs the scheduler until shutdown.
///
/// # Errors
/// If the gateway's address is not a URI, or if the election's settings are invalid.
pub async fn start(host: Host, settings: Settings) -> anyhow::Result<()> {
    let name = settings.scheduler_name.clone();
    let replica = Replica::join(host, &settings.gateway, &name, Pod::RESOURCE)?;
    let (pods, nodes) = (
        replica.informer::<PodView>(),
        replica.informer::<NodeView>(),
    );
    let (cached, queue) = (pods.reader(), QueueHandle::default());
    let scheduler = Scheduler {
        name,
        pods: pods.reader(),
        nodes: nodes.reader(),
        events: replica.events.clone(),
        unschedulable: Unschedulable::default(),
        assumed: Assumed::default(),
        queue: queue.clone(),
    };
    let controller = replica.controller(scheduler);
    let scheduler = controller.reconciler();
    metrics::watch(&scheduler);
    let (on_pod, on_node) = (scheduler.clone(), scheduler.clone());
    let (ours, matters) = (scheduler.clone(), scheduler);
    let controller = controller
        .queue(&queue)
        .for_those(
            pods.on_event(move |change| on_pod.pod_changed(change)),
            move |pod| ours.is_ours(pod),
            move |change| matters.needs_decision(change),
        )
        .watches(
            nodes.on_event(move |change| on_node.node_changed(change)),
            |_| None,
        )
        .batches(settings.batch, move |key| {
            cached.get(key).map(|pod| pod.queue_order())
        });
    replica.run(controller, settings.controller()).await
}
