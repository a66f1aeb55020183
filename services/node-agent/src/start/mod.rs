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
mod tasks;

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use setpoint_controller::{Client, QueueHandle, Recorder, Replica, reachable};
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

use self::controller::Builder;
use self::registration::Registration;
use self::static_pods::Manifests;
use self::tasks::{Controllers, work};
use crate::node::heartbeat::{Images, report_shutdown};
use crate::node::watch::Wakes;
use crate::node::{self, Machine, Node};
use crate::pod::api_server::ApiServer;
use crate::pod::clients::NodeClients;
use crate::pod::cluster_dns::Resolver;
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
    fn run<R: Runtime>(self, runtime: R) -> LocalBoxFuture<'static, anyhow::Result<()>> {
        // Boxed where it is made: it has all tasks of the agent in it, and so would the stack of each caller.
        self.run_tasks(runtime).boxed_local()
    }

    async fn run_tasks<R: Runtime>(self, runtime: R) -> anyhow::Result<()> {
        let recorder = match self.settings.writes_events() {
            true => Recorder::on_node(self.gateway.clone(), "kubelet", &self.nodes[0].name),
            false => Recorder::silent(),
        };
        // Before a check that passes: the process is not ready until its nodes are registered.
        self.host.health().check(registration::CHECK);
        self.host.health().check(network::CHECK);
        let mut replica = Replica::announce(self.host, self.gateway, recorder, Pod::RESOURCE);
        replica.decision_log = replica.decision_log.keeping(self.settings.explained_pods());
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
