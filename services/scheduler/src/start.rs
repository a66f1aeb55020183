//! Starts the scheduler.

use setpoint_controller::{QueueHandle, Replica};
use setpoint_host::Host;
use setpoint_proto::Resource as _;
use setpoint_proto::core::Pod;

use crate::assumed::Assumed;
use crate::budget::BudgetView;
use crate::cycle::Scheduler;
use crate::metrics;
use crate::namespace::NamespaceView;
use crate::node::NodeView;
use crate::pod::PodView;
use crate::profile::Profiles;
use crate::service::ServiceView;
use crate::settings::Settings;
use crate::snapshot::Caches;
use crate::storage::{ClaimView, ClassView, CsiNodeView, StorageCaches, VolumeView};
use crate::unschedulable::Unschedulable;

/// Runs the scheduler until shutdown.
///
/// # Errors
/// If the gateway's address is not a URI, or if the election's settings are invalid.
pub async fn start(host: Host, settings: Settings) -> anyhow::Result<()> {
    let service = host.service();
    let replica = Replica::join(host, &settings.gateway, service, Pod::RESOURCE)?;
    run(replica, settings).await
}

/// Runs a scheduler that has joined until shutdown.
///
/// # Errors
/// If a profile or the election's settings are invalid.
pub async fn run(replica: Replica, settings: Settings) -> anyhow::Result<()> {
    let profiles = Profiles::of(&settings.profiles).map_err(anyhow::Error::msg)?;
    let (pods, nodes) = (
        replica.informer::<PodView>(),
        replica.informer::<NodeView>(),
    );
    let (namespaces, services, budgets) = (
        replica.informer::<NamespaceView>(),
        replica.informer::<ServiceView>(),
        replica.informer::<BudgetView>(),
    );
    let (claims, volumes, classes) = (
        replica.informer::<ClaimView>(),
        replica.informer::<VolumeView>(),
        replica.informer::<ClassView>(),
    );
    let csi_nodes = replica.informer::<CsiNodeView>();
    let (cached, queue) = (pods.reader(), QueueHandle::default());
    let caches = Caches {
        pods: pods.reader(),
        nodes: nodes.reader(),
        namespaces: namespaces.reader(),
        services: services.reader(),
        budgets: budgets.reader(),
        storage: StorageCaches {
            claims: claims.reader(),
            volumes: volumes.reader(),
            classes: classes.reader(),
            csi_nodes: csi_nodes.reader(),
        },
    };
    let scheduler = Scheduler {
        profiles,
        caches,
        events: replica.events.clone(),
        unschedulable: Unschedulable::default(),
        assumed: Assumed::default(),
        queue: queue.clone(),
    };
    let controller = replica.controller(scheduler);
    let scheduler = controller.reconciler();
    metrics::watch(&scheduler);
    let (on_pod, on_node) = (scheduler.clone(), scheduler.clone());
    let (on_namespace, on_claim) = (scheduler.clone(), scheduler.clone());
    let (on_volume, on_class) = (scheduler.clone(), scheduler.clone());
    let on_csi_node = scheduler.clone();
    let (ours, matters) = (scheduler.clone(), scheduler);
    let controller = controller
        .queue(&queue)
        .for_those(
            pods.on_event(move |change| on_pod.pod_changed(change)),
            move |pod| ours.takes(pod),
            move |change| matters.needs_decision(change),
        )
        .watches(
            nodes.on_event(move |change| on_node.node_changed(change)),
            |_| None,
        )
        .watches(
            namespaces.on_event(move |change| on_namespace.namespace_changed(change)),
            |_| None,
        )
        .watches(
            claims.on_event(move |change| on_claim.claim_changed(change)),
            |_| None,
        )
        .watches(
            volumes.on_event(move |change| on_volume.volume_changed(change)),
            |_| None,
        )
        .watches(
            classes.on_event(move |change| on_class.class_changed(change)),
            |_| None,
        )
        .watches(
            csi_nodes.on_event(move |change| on_csi_node.csi_node_changed(change)),
            |_| None,
        )
        .watches(services, |_| None)
        .watches(budgets, |_| None)
        .batches(settings.batch, move |key| {
            cached.get(key).map(|pod| pod.queue_order())
        });
    replica.run(controller, settings.controller()).await
}
