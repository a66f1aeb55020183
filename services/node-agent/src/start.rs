//! Wires the agent together and runs it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};

use anyhow::Context as _;
use futures::FutureExt as _;
use futures::future::join_all;
use setpoint_controller::client::ListOptions;
use setpoint_controller::{
    Client, Controller, Informer, QueueHandle, Recorder, Replica, View as _, reachable, runtime,
};
use setpoint_host::Host;
use setpoint_host::agent_auth::{Guard, Key as AgentKey};
use setpoint_model::Key;
use setpoint_proto::Resource as _;
use setpoint_proto::core::Pod;
use setpoint_runtime::docker::{Docker, Engine, Fallback};
use setpoint_runtime::process::Processes;
use setpoint_runtime::simulated::Simulated;
use setpoint_runtime::{Runtime, Wake};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::act::Executor;
use crate::admission::Admission;
use crate::agent::Agent;
use crate::ending::Endings;
use crate::events::Events;
use crate::eviction::{self, FileSystems};
use crate::image_gc;
use crate::node::heartbeat::{Heartbeat, Images, report_shutdown};
use crate::node::watch::Wakes;
use crate::node::{self, Machine, Node, NodeState};
use crate::pod::PodView;
use crate::reclaim;
use crate::service::NodeService;
use crate::settings::{Kind, Settings};
use crate::shutdown::end_pods;
use crate::stats::Stats;
use crate::usage::Meter;
use crate::volumes::{Tokens, Updates};

/// The readiness check of the registration of nodes.
const NODES: &str = "nodes";

/// Runs the agent until shutdown.
///
/// # Errors
/// If the gateway's address is invalid, no container engine answers, or the state of existing containers cannot be
/// read.
pub async fn start(host: Host, mut settings: Settings) -> anyhow::Result<()> {
    let (engine, fallback) = engine(&mut settings).await?;
    let machine = Machine::read(match &engine {
        Some(engine) => &engine.root,
        None => &settings.state_dir,
    });
    let nodes = Node::all(&settings, host.instance(), &machine);
    let mut nodes = nodes.map_err(anyhow::Error::msg)?;
    for node in &mut nodes {
        node.fallback.clone_from(&fallback);
        if let Some(engine) = &engine {
            node.runtime_version.clone_from(&engine.version);
        }
        let contained = engine.as_ref().is_some_and(|engine| engine.contained);
        node.local_path = local_path(&settings, &node.name, contained);
        node.disks = disks(&settings, &node.name, engine.as_ref());
    }
    let queue = QueueHandle::default();
    let wake = wake(&queue);
    let gateway = Client::connect(&settings.gateway, host.instance())?;
    if let Some(engine) = engine {
        let tasks = gateway.tasks().clone();
        let report = move |health| tasks.report("engine", "", health);
        let runtime = Docker::open(engine, &settings.docker, &nodes[0].name, wake, report).await?;
        return serve(host, settings, machine, nodes, queue, gateway, runtime).await;
    }
    match settings.runtime {
        Kind::Process | Kind::Docker => {
            let state = state_dir(&settings, &nodes[0].name);
            let runtime = Processes::open(&state, "/proc/self/exe", wake);
            let runtime =
                runtime.with_context(|| format!("state directory {}", state.display()))?;
            serve(host, settings, machine, nodes, queue, gateway, runtime).await
        }
        Kind::Simulated => {
            let runtime = Simulated::new(settings.start_delay, wake);
            serve(host, settings, machine, nodes, queue, gateway, runtime).await
        }
    }
}

/// Returns a function that adds Pods to the queue.
fn wake(queue: &QueueHandle) -> Wake {
    let queue = queue.clone();
    Arc::new(move |pod: &Key| queue.add(pod.clone(), None))
}

/// Connects to the container engine if the settings ask for one. If there is none and the settings allow the fallback,
/// switches `settings` to processes and returns the reason.
///
/// # Errors
/// If no engine answers and no fallback is allowed.
async fn engine(settings: &mut Settings) -> anyhow::Result<(Option<Engine>, String)> {
    if settings.runtime != Kind::Docker {
        return Ok((None, String::new()));
    }
    match Engine::connect(&settings.docker).await {
        Ok(engine) => {
            info!(cluster = engine.cluster, address = %engine.address, "connected to the container engine");
            if let (true, Some(name)) = (settings.node_name.is_empty(), &engine.node_name) {
                settings.node_name.clone_from(name);
            }
            Ok((Some(engine), String::new()))
        }
        Err(error) if settings.docker.fallback == Fallback::Process => {
            warn!(%error, "no container engine; running containers as processes");
            settings.runtime = Kind::Process;
            Ok((None, format!("{error}: containers run as processes")))
        }
        Err(error) => {
            Err(error).context("no container engine answers; see the setting docker.fallback")
        }
    }
}

fn state_dir(settings: &Settings, node: &str) -> PathBuf {
    match settings.state_dir.as_os_str().is_empty() {
        true => Path::new(".setpoint/node").join(node),
        false => settings.state_dir.clone(),
    }
}

/// Returns the directory of a node's persistent volumes; `None` if it keeps none.
fn local_path(settings: &Settings, node: &str, contained: bool) -> Option<PathBuf> {
    match (settings.runtime, settings.local_path.as_os_str().is_empty()) {
        (Kind::Simulated, _) => None,
        (_, false) => Some(settings.local_path.clone()),
        (_, true) if contained => None,
        (_, true) => {
            let state = std::path::absolute(state_dir(settings, node)).ok()?;
            Some(state.join("local-path"))
        }
    }
}

/// Returns the file systems of a node; `None` if it is simulated.
fn disks(settings: &Settings, node: &str, engine: Option<&Engine>) -> Option<FileSystems> {
    match (engine, settings.runtime) {
        (Some(engine), _) => Some(FileSystems {
            node: ".".into(),
            images: Some(engine.root.clone()),
        }),
        (None, Kind::Simulated) => None,
        (None, _) => Some(FileSystems {
            node: state_dir(settings, node),
            images: None,
        }),
    }
}

/// Runs the agent on a runtime until shutdown.
async fn serve<R: Runtime>(
    host: Host,
    settings: Settings,
    machine: Machine,
    mut nodes: Vec<Node>,
    queue: QueueHandle,
    gateway: Client,
    runtime: R,
) -> anyhow::Result<()> {
    let key = agent_key(&settings.agent_secret_file)?;
    let recorder = match settings.writes_events() {
        true => Recorder::on_node(gateway.clone(), "kubelet", &nodes[0].name),
        false => Recorder::silent(),
    };
    // Before a check that passes: the process is not ready until its nodes are registered.
    host.health().check(NODES);
    let replica = Replica::announce(host, gateway, recorder, Pod::RESOURCE);
    let (host, gateway) = (&replica.host, &replica.client);
    let address = reachable(gateway, host.advertised()).await;
    if let Some(ip) = node::internal_ip(&address) {
        nodes.iter_mut().for_each(|node| node.ip = ip);
    }
    let (wake, lister) = (wake(&queue), runtime.clone());
    let images: Images = Arc::new(move || {
        let lister = lister.clone();
        async move { lister.images().await }.boxed()
    });
    let wakes = nodes.iter().map(|node| (node.name.clone(), Arc::default()));
    let wakes: Arc<Wakes> = Arc::new(wakes.collect());
    let controller = controller(&replica, &settings, &nodes, runtime, wake, &wakes).queue(&queue);
    replica.ready_when(controller.ready());
    let (agent, shutdown) = (controller.reconciler(), host.shutdown());
    let first = nodes[0].clone();
    let folder = first.local_path.clone();
    let reclaimed = reclaim(&replica, Arc::clone(&agent), folder, settings.controller());
    let stop = CancellationToken::new();
    let stopping = stop_after(
        shutdown.clone(),
        stop.clone(),
        Arc::clone(&agent),
        &settings,
    );
    let names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
    let guard = Guard::new(key.clone(), &address, names.clone());
    let state = agent.state.subscribe();
    let signals = (state, wakes);
    let identity = (address, key);
    let heartbeats = heartbeats(
        &replica, &settings, &machine, nodes, identity, images, signals,
    );
    let decision_log = replica.decision_log.routes().into_axum_router();
    let meter = Arc::new(Meter::new(Arc::clone(&agent)));
    let relieved = relieve(
        &replica,
        &settings,
        first,
        Arc::clone(&agent),
        Arc::clone(&meter),
    );
    let idle = settings.streaming_connection_idle_timeout;
    let identity = guard.router();
    let stats = Stats::router(Arc::clone(&agent), Arc::clone(&meter), guard.clone());
    let service = NodeService::router(agent, Arc::clone(&meter), guard, idle, shutdown.clone());
    host.offer(decision_log.merge(identity).merge(service).merge(stats));
    let tasks = gateway.tasks().clone();
    let measured = tasks.supervise("usage", "", || meter.run());
    tokio::select! {
        ended = controller.run(host.instance(), stop) => ended?,
        () = heartbeats => {}
        () = stopping => {}
        () = relieved => {}
        () = measured => {}
        ended = reclaimed => ended?,
    }
    let gateway = gateway.clone();
    let reported = async {
        // A node that shuts down has reported that already.
        if settings.shutdown().total.is_zero() {
            report_shutdown(&gateway, names).await;
        }
    };
    tokio::join!(reported, replica.leave());
    Ok(())
}

/// Returns the key that the agent shares with gateways, made if there is no file; `None` without a path.
///
/// # Errors
/// If the file can neither be read nor made.
fn agent_key(path: &Path) -> anyhow::Result<Option<AgentKey>> {
    if path.as_os_str().is_empty() {
        return Ok(None);
    }
    let key = AgentKey::read_or_create(path);
    key.map(Some)
        .with_context(|| format!("agent_secret_file {}", path.display()))
}

/// Cancels `stop` at a shutdown, once the Pods have ended if the settings ask for that. Does not return.
async fn stop_after<R: Runtime>(
    shutdown: CancellationToken,
    stop: CancellationToken,
    agent: Arc<Agent<R>>,
    settings: &Settings,
) {
    shutdown.cancelled().await;
    let periods = settings.shutdown();
    if !periods.total.is_zero() {
        end_pods(&agent, periods).await;
    }
    stop.cancel();
    std::future::pending().await
}

/// Removes images and evicts Pods when the node is short of resources, until dropped. Simulated nodes never are.
async fn relieve<R: Runtime>(
    replica: &Replica,
    settings: &Settings,
    node: Node,
    agent: Arc<Agent<R>>,
    meter: Arc<Meter<R>>,
) {
    let Some(disks) = node.disks.clone() else {
        return std::future::pending().await;
    };
    let (runtime, events) = (agent.executor.runtime.clone(), &replica.events);
    let (about, policy, images) = (node.subject(), settings.image_gc(), disks.images.clone());
    let manager = eviction::Manager {
        agent,
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
async fn reclaim<R: Runtime>(
    replica: &Replica,
    agent: Arc<Agent<R>>,
    folder: Option<PathBuf>,
    settings: runtime::Settings,
) -> anyhow::Result<()> {
    match folder {
        None => std::future::pending().await,
        Some(folder) => {
            let controller = reclaim::controller(replica, &agent, folder).settings(settings);
            let shutdown = replica.host.shutdown();
            controller.run(replica.host.instance(), shutdown).await?;
            // At a shutdown, the agent ends when its Pods are at rest.
            std::future::pending().await
        }
    }
}

/// Returns the controller that runs the agent: woken by changes of Pods and, through its queue, by the runtime.
fn controller<R: Runtime>(
    replica: &Replica,
    settings: &Settings,
    nodes: &[Node],
    runtime: R,
    wake: Wake,
    wakes: &Arc<Wakes>,
) -> Controller<Agent<R>> {
    let events = settings.writes_events().then(|| replica.events.clone());
    let capacities = nodes
        .iter()
        .map(|node| (node.name.clone(), node.capacity.clone()));
    let admission = Arc::new(Admission::new(capacities));
    let endings = Arc::new(Endings::default());
    let left = (Arc::clone(&admission), Arc::clone(&endings));
    let informer = informer(&replica.client, nodes, left);
    let (known, wakes) = (Arc::clone(&admission), Arc::clone(wakes));
    let added = node::watch::informer(&replica.client, nodes, known, wakes);
    let by_name = nodes.iter().map(|node| (node.name.clone(), node.clone()));
    let agent = Agent {
        executor: Executor {
            runtime,
            gateway: replica.client.clone(),
            events: Events::new(events),
            log: settings.log_limits(),
            probes: Arc::default(),
            hooks: Arc::default(),
            wake,
            tokens: Tokens::default(),
            updates: Updates::default(),
            host_paths: settings.docker.host_paths.clone(),
            local_path: nodes[0].local_path.clone(),
        },
        admission,
        endings,
        state: watch::Sender::new(NodeState::default()),
        nodes: by_name.collect(),
        pods: informer.reader(),
    };
    let controller = replica.controller(agent);
    let agent = controller.reconciler();
    let ours = Arc::clone(&agent);
    controller
        .for_those(
            informer,
            move |pod| ours.nodes.contains_key(&pod.node),
            |_| true,
        )
        // Pods are admitted once it is known what others have added to their nodes.
        .watches(added, |_| None)
        // A sandbox may belong to a Pod that no longer exists.
        .sweeps(move || agent.executor.runtime.pods())
        .unelected()
        .settings(settings.controller())
}

/// Returns an informer over the Pods of these nodes: a single node watches only its own Pods, several share one watch
/// over all Pods that are bound. Pods that end or go are released.
fn informer(
    gateway: &Client,
    nodes: &[Node],
    (admission, endings): (Arc<Admission>, Arc<Endings>),
) -> Informer<PodView> {
    let fields = match nodes {
        [node] => format!("spec.nodeName={}", node.name),
        _ => "spec.nodeName!=".to_owned(),
    };
    let only = ListOptions {
        fields,
        ..ListOptions::default()
    };
    let informer = gateway.informer::<PodView>().only(only);
    informer.on_event(move |delta| {
        let left = delta.new.as_ref().is_none_or(|new| new.ended);
        if let Some(old) = delta.old.as_ref().filter(|_| left) {
            admission.release(&old.meta().key, &old.meta().uid);
            endings.forget(&old.meta().uid);
        }
    })
}

/// Keeps every node registered and its Lease renewed until dropped. The check [`NODES`] passes once all are registered.
async fn heartbeats(
    replica: &Replica,
    settings: &Settings,
    machine: &Machine,
    nodes: Vec<Node>,
    (address, key): (String, Option<AgentKey>),
    images: Images,
    (state, wakes): (watch::Receiver<NodeState>, Arc<Wakes>),
) {
    let check = replica.host.health().check(NODES);
    let count = nodes.len();
    let missing = Arc::new(AtomicUsize::new(count));
    let beats = nodes.into_iter().enumerate().map(|(index, node)| {
        let heartbeat = Heartbeat {
            outdated: wakes.get(&node.name).cloned().unwrap_or_default(),
            node,
            address: address.clone(),
            key: key.clone(),
            machine: machine.clone(),
            images: Arc::clone(&images),
            state: state.clone(),
            gateway: replica.client.clone(),
            interval: settings.heartbeat,
            status_interval: settings.status_refresh,
        };
        let (check, missing) = (check.clone(), Arc::clone(&missing));
        let registered = Once::new();
        let registered = move || {
            let one_less = || {
                if missing.fetch_sub(1, Ordering::Relaxed) == 1 {
                    check.pass();
                }
            };
            registered.call_once(one_less);
        };
        async move {
            let start = || heartbeat.run(index as f64 / count as f64, &registered);
            let name = &heartbeat.node.name;
            heartbeat
                .gateway
                .tasks()
                .supervise("heartbeat", name, start)
                .await;
        }
    });
    join_all(beats).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks F21.
    #[tokio::test]
    async fn without_an_engine_processes_are_used_only_if_the_fallback_allows_it() {
        let mut settings = Settings {
            runtime: Kind::Docker,
            ..Settings::default()
        };
        settings.docker.socket = "/nowhere/docker.sock".into();
        assert!(engine(&mut settings).await.is_err());
        assert_eq!(settings.runtime, Kind::Docker);
        settings.docker.fallback = Fallback::Process;
        let (engine, why) = engine(&mut settings).await.unwrap();
        assert!(
            engine.is_none() && why.contains("/nowhere/docker.sock"),
            "{why}"
        );
        assert_eq!(settings.runtime, Kind::Process);
    }
}
