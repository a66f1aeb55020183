//! The tasks of an agent, and the routes that it serves.

use std::sync::Arc;

use axum::Router;
use setpoint_controller::{Controller, Replica};
use setpoint_runtime::{Kind, Runtime};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::registration::Registration;
use super::static_pods::Manifests;
use super::{network, relief};
use crate::agent::Agent;
use crate::bootstrap::Keeper;
use crate::node::shutdown::end_pods;
use crate::node::static_pods::mirror::Mirrors;
use crate::node::usage::Meter;
use crate::node::{Node, Pods};
use crate::serve::service::NodeService;
use crate::serve::stats::Stats;
use crate::settings::Settings;

/// The controllers of Pods.
pub struct Controllers<R: Runtime> {
    /// That of the Pods of the nodes.
    pub pods: Controller<Agent<R>>,
    /// That of mirror Pods.
    pub mirrors: Controller<Mirrors<R>>,
    /// The manifests of static Pods.
    pub manifests: Manifests,
}

/// Runs all tasks of the agent until the controller has stopped, and serves its routes.
pub async fn work<R: Runtime>(
    registration: Registration<'_>,
    nodes: Vec<Node>,
    controllers: Controllers<R>,
    pods: &Arc<Pods<R>>,
    range: watch::Receiver<String>,
) -> anyhow::Result<()> {
    let (replica, settings) = (registration.replica, registration.settings);
    let check = replica.host.health().check(network::CHECK);
    let keeper = keeper(replica, settings);
    let (first, shutdown) = (nodes[0].clone(), replica.host.shutdown());
    let own = first.clone();
    let meter = Arc::new(Meter::new(Arc::clone(pods)));
    let routes = routes(replica, settings, pods, &meter);
    replica.host.offer(routes);
    let stop = CancellationToken::new();
    let stopping = stop_after(shutdown, stop.clone(), pods, settings);
    let relieved = relief::relieve(
        replica,
        settings,
        first,
        Arc::clone(pods),
        Arc::clone(&meter),
    );
    let reclaimed = relief::reclaim(replica, Arc::clone(pods), &own, settings.controller());
    let (tasks, instance) = (replica.client.tasks(), replica.host.instance());
    // Boxed, so that the stack has one of them at a time.
    tokio::select! {
        ended = Box::pin(controllers.pods.run(instance, stop.clone())) => ended?,
        ended = Box::pin(mirrored(controllers.mirrors, instance, stop)) => ended?,
        () = controllers.manifests.keep(replica, pods) => {}
        () = Box::pin(registration.keep(nodes)) => {}
        () = keep_network(settings, pods, range, check) => {}
        () = stopping => {}
        () = Box::pin(relieved) => {}
        () = tasks.supervise("usage", "", || meter.run()) => {}
        ended = Box::pin(reclaimed) => ended?,
        ended = Box::pin(keep(keeper)) => ended?,
    }
    Ok(())
}

/// Keeps mirror Pods. Does not return unless with an error: at a shutdown, the agent ends when its Pods are at rest.
async fn mirrored<R: Runtime>(
    mirrors: Controller<Mirrors<R>>,
    instance: &str,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    mirrors.run(instance, stop).await?;
    std::future::pending().await
}

/// Keeps the network of Pods: of the range of the node, or as the runtime has it. Does not return.
async fn keep_network<R: Runtime>(
    settings: &Settings,
    pods: &Arc<Pods<R>>,
    range: watch::Receiver<String>,
    check: setpoint_host::Check,
) {
    match settings.runtime {
        Kind::Cri => {
            let configured = network::configure(Arc::clone(pods), range);
            tokio::join!(network::follow(Arc::clone(pods), check), configured);
        }
        _ => network::keep(Arc::clone(pods), range, check).await,
    }
}

/// Returns the keeper of the certificates of an agent that requests them.
fn keeper(replica: &Replica, settings: &Settings) -> Option<Keeper> {
    let credentials = replica.host.credentials().cloned();
    let credentials = credentials.filter(|_| settings.bootstrap.is_on())?;
    let (node, client) = (&settings.node_name, replica.client.clone());
    Some(Keeper::new(
        node,
        client,
        &settings.bootstrap.directory,
        credentials,
    ))
}

/// Keeps certificates until dropped.
///
/// # Errors
/// If they are refused for good.
async fn keep(keeper: Option<Keeper>) -> anyhow::Result<()> {
    match keeper {
        Some(keeper) => keeper.run().await,
        None => std::future::pending().await,
    }
}

/// Returns the routes of the agent, for the process's listener.
fn routes<R: Runtime>(
    replica: &Replica,
    settings: &Settings,
    pods: &Arc<Pods<R>>,
    meter: &Arc<Meter<R>>,
) -> Router {
    let idle = settings.streaming_connection_idle_timeout;
    let (pods, meter, shutdown) = (Arc::clone(pods), Arc::clone(meter), replica.host.shutdown());
    let stats = Stats::router(Arc::clone(&pods), Arc::clone(&meter));
    let service = NodeService::router(pods, meter, idle, shutdown);
    let decision_log = replica.decision_log.routes().into_axum_router();
    decision_log.merge(service).merge(stats)
}

/// Cancels `stop` at a shutdown, once the Pods have ended if the settings ask for that. Does not return.
async fn stop_after<R: Runtime>(
    shutdown: CancellationToken,
    stop: CancellationToken,
    pods: &Pods<R>,
    settings: &Settings,
) {
    shutdown.cancelled().await;
    let periods = settings.shutdown();
    if !periods.total.is_zero() {
        end_pods(pods, periods).await;
    }
    stop.cancel();
    std::future::pending().await
}
