//! Wires the agent together and runs it.

mod api_server;
pub mod certificate;
mod controller;
pub mod engine;
mod network;
mod nodes;
mod published;
mod registration;
mod relief;
mod static_pods;

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use futures::FutureExt as _;
use setpoint_controller::{Client, Controller, QueueHandle, Recorder, Replica, reachable};
use setpoint_host::Host;
use setpoint_model::Key;
use setpoint_proto::Resource as _;
use setpoint_proto::core::Pod;
use setpoint_runtime::cri::{self, Cri};
use setpoint_runtime::docker::Docker;
use setpoint_runtime::process::{Network, Processes};
use setpoint_runtime::simulated::Simulated;
use setpoint_runtime::{Kind, Runtime, Wake};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::controller::Builder;
use self::registration::Registration;
use self::static_pods::Manifests;
use crate::agent::Agent;
use crate::bootstrap::Keeper;
use crate::node::heartbeat::{Images, report_shutdown};
use crate::node::shutdown::end_pods;
use crate::node::static_pods::mirror::Mirrors;
use crate::node::usage::Meter;
use crate::node::watch::Wakes;
use crate::node::{self, Machine, Node, Pods};
use crate::pod::api_server::ApiServer;
use crate::pod::clients::NodeClients;
use crate::pod::cluster_dns::Resolver;
use crate::serve::service::NodeService;
use crate::serve::stats::Stats;
use crate::settings::Settings;

/// Runs the agent until shutdown.
///
/// # Errors
/// If the gateway's address is invalid, no container engine answers, or the state of existing containers cannot be
/// read.
pub async fn start(host: Host, mut settings: Settings) -> anyhow::Result<()> {
    let (engine, fallback) = engine::connect(&mut settings).await?;
    let service = engine::connect_cri(&settings, &host).await?;
    if settings.runtime == Kind::Cri && service.is_none() {
        return Ok(());
    }
    let images = service.as_ref().and_then(|service| service.root.clone());
    let machine = Machine::read(match (&engine, &images) {
        (Some(engine), _) => &engine.root,
        (None, Some(images)) => images,
        (None, None) => &settings.state_dir,
    });
    let (instance, known) = (host.instance(), engine.as_ref());
    let nodes = nodes::nodes(&settings, instance, &machine, known, &fallback);
    let mut nodes = nodes.map_err(anyhow::Error::msg)?;
    if let Some(service) = &service {
        nodes::describe(&mut nodes, service);
    }
    let gateway = Client::connect_with(
        &settings.gateway,
        host.credentials().cloned(),
        host.instance(),
    )?;
    let api = api_server::of(&settings, engine.as_ref())?;
    let dns = api_server::resolver(&settings, engine.as_ref());
    let process = Process {
        host,
        api,
        dns,
        gateway,
        queue: QueueHandle::default(),
        settings,
        machine,
        nodes,
    };
    let (wake, name) = (wake(&process.queue), &process.nodes[0].name);
    if let Some(engine) = engine {
        let tasks = process.gateway.tasks().clone();
        let report = move |health| tasks.report("engine", "", health);
        let runtime = Docker::open(engine, &process.settings.docker, name, wake, report).await?;
        let gateway = process.gateway.clone();
        let (settings, name) = (process.settings.clone(), name.clone());
        let published = published::keep(runtime.clone(), settings, gateway, name);
        return tokio::select! {
            ended = process.run(runtime) => ended,
            () = published => Ok(()),
        };
    }
    if let Some(service) = service {
        return process.run_cri(service, wake).await;
    }
    match process.settings.runtime {
        Kind::Process | Kind::Docker | Kind::Cri => {
            let state = nodes::state_dir(&process.settings, name);
            let network = pod_network(&process.settings, &state);
            let runtime = Processes::open(&state, "/proc/self/exe", network, wake);
            let runtime =
                runtime.with_context(|| format!("state directory {}", state.display()))?;
            process.run(runtime).await
        }
        Kind::Simulated => {
            let runtime = Simulated::new(process.settings.start_delay, wake);
            process.run(runtime).await
        }
    }
}

/// Returns the network of Pods of the process runtime, if they are to have one.
fn pod_network(settings: &Settings, state: &Path) -> Option<Network> {
    let bridge = settings.process.bridge.as_str();
    let node = settings.node_ip().filter(|_| !bridge.is_empty())?;
    Some(Network::new(bridge, node, state))
}

/// Returns a function that adds Pods to the queue.
fn wake(queue: &QueueHandle) -> Wake {
    let queue = queue.clone();
    Arc::new(move |pod: &Key| queue.add(pod.clone(), None))
}

/// The process of an agent, before its runtime is known.
struct Process {
    host: Host,
    gateway: Client,
    /// The Pods to reconcile.
    queue: QueueHandle,
    settings: Settings,
    /// The API as Pods reach it.
    api: ApiServer,
    /// The cluster's DNS as Pods reach it.
    dns: Resolver,
    machine: Machine,
    nodes: Vec<Node>,
}

impl Process {
    /// Runs the agent on a runtime that serves the CRI until shutdown.
    async fn run_cri(self, service: cri::Service, wake: Wake) -> anyhow::Result<()> {
        let (settings, name) = (&self.settings, &self.nodes[0].name);
        let state = nodes::state_dir(settings, name);
        let tasks = self.gateway.tasks().clone();
        let report = move |health| tasks.report("runtime", "", health);
        let runtime = Cri::open(service, &settings.cri, name, &state, wake, report).await?;
        self.run(runtime).await
    }

    /// Runs the agent on a runtime until shutdown.
    async fn run<R: Runtime>(self, runtime: R) -> anyhow::Result<()> {
        let recorder = match self.settings.writes_events() {
            true => Recorder::on_node(self.gateway.clone(), "kubelet", &self.nodes[0].name),
            false => Recorder::silent(),
        };
        // Before a check that passes: the process is not ready until its nodes are registered.
        self.host.health().check(registration::CHECK);
        self.host.health().check(network::CHECK);
        let replica = Replica::announce(self.host, self.gateway, recorder, Pod::RESOURCE);
        let address = reachable(&replica.client, replica.host.advertised()).await;
        let address = self.settings.at_node_ip(address);
        let mut nodes = self.nodes;
        if let Some(ip) = node::internal_ip(&address) {
            nodes.iter_mut().for_each(|node| node.ip = ip);
        }
        let wakes = nodes.iter().map(|node| (node.name.clone(), Arc::default()));
        let wakes: Arc<Wakes> = Arc::new(wakes.collect());
        let range = watch::Sender::default();
        let queue = wake(&self.queue);
        let manifests = Manifests::open(&replica, &self.settings, &nodes[0], queue).await;
        let builder = Builder {
            replica: &replica,
            range: range.clone(),
            settings: &self.settings,
            nodes: &nodes,
            runtime: runtime.clone(),
            api: self.api,
            dns: self.dns,
            wake: wake(&self.queue),
            wakes: Arc::clone(&wakes),
            static_pods: Arc::clone(&manifests.pods),
        };
        let (controller, mirrors) = builder.controllers();
        let controllers = Controllers {
            mirrors: mirrors.queue(&manifests.mirrors),
            pods: controller.queue(&self.queue),
            manifests,
        };
        let controller = &controllers.pods;
        replica.ready_when(controller.ready());
        let pods = Arc::clone(&controller.reconciler().pods);
        let names: Vec<_> = nodes.iter().map(|node| node.name.clone()).collect();
        let clients = NodeClients::new(replica.client.clone(), nodes.len());
        let registration = Registration {
            replica: &replica,
            clients: clients.clone(),
            settings: &self.settings,
            machine: &self.machine,
            address,
            images: images(runtime),
            state: pods.state.subscribe(),
            wakes,
        };
        work(registration, nodes, controllers, &pods, range.subscribe()).await?;
        leave(replica, &clients, &self.settings, names).await;
        Ok(())
    }
}

/// The controllers of Pods.
struct Controllers<R: Runtime> {
    pods: Controller<Agent<R>>,
    mirrors: Controller<Mirrors<R>>,
    manifests: Manifests,
}

/// Runs all tasks of the agent until the controller has stopped, and serves its routes.
async fn work<R: Runtime>(
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
    tokio::select! {
        ended = controllers.pods.run(instance, stop.clone()) => ended?,
        ended = mirrored(controllers.mirrors, instance, stop) => ended?,
        () = controllers.manifests.keep(replica, pods) => {}
        () = registration.keep(nodes) => {}
        () = keep_network(settings, pods, range, check) => {}
        () = stopping => {}
        () = relieved => {}
        () = tasks.supervise("usage", "", || meter.run()) => {}
        ended = reclaimed => ended?,
        ended = keep(keeper) => ended?,
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

/// Reports the end of the agent, and leaves the other replicas.
async fn leave(replica: Replica, clients: &NodeClients, settings: &Settings, nodes: Vec<String>) {
    let reported = async {
        // A node that shuts down has reported that already.
        if settings.shutdown().total.is_zero() {
            report_shutdown(clients, nodes).await;
        }
    };
    tokio::join!(reported, replica.leave());
}

/// Returns a function that lists the images of a runtime.
fn images<R: Runtime>(runtime: R) -> Images {
    Arc::new(move || {
        let runtime = runtime.clone();
        async move { runtime.images().await }.boxed()
    })
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
