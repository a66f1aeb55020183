//! Wires the proxy together and runs it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use setpoint_controller::queue::Limiter;
use setpoint_controller::{Informer, Queue, Reader, Replica, View as _};
use setpoint_host::Host;
use setpoint_model::Key;
use setpoint_proto::Resource as _;
use setpoint_proto::core::Service;
use tokio::sync::{Mutex, Notify, watch};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use crate::health::Servers;
use crate::metrics::Metrics;
use crate::network_policy::{self, Enforcer, Table};
use crate::nftables::{Nftables, Socket, Tools, is_cut_off};
use crate::node::{are_all, is_among};
use crate::routes::Keeper;
use crate::sync::Syncer;
use crate::userspace::{Userspace, supervisor};
use crate::{Backend, BackendName, NodeView, Place, ServiceView, Settings, SliceView, report};

/// The component of Events, as in upstream.
const COMPONENT: &str = "kube-proxy";
/// The check that passes while everything is programmed.
const CHECK: &str = "services";
/// The check that passes while NetworkPolicies are programmed.
const POLICIES: &str = "network-policies";
/// The check that passes while all other nodes have routes.
const ROUTES: &str = "routes";

/// Runs the proxy until shutdown. What it has programmed in nftables stays.
///
/// # Errors
/// If the gateway's address is invalid, the kernel has no nftables, the link to the parent is broken, or the network
/// namespace has lost its networks.
pub async fn start(host: Host, settings: Settings) -> anyhow::Result<()> {
    let replica = Replica::join(host, &settings.gateway, COMPONENT, Service::RESOURCE);
    let replica = replica.context("the setting gateway.address")?;
    match settings.backend {
        BackendName::Nftables => {
            let socket = Socket::open().context("the kernel has no nftables")?;
            let tools = settings.tools(socket);
            let backend = Nftables::new(settings.base(), tools.clone());
            let backend = backend.answering(settings.answered());
            let policies = settings.network_policies.then_some(tools);
            let lost = cut_off(settings.answer_service_ranges, settings.sync_period);
            tokio::select! {
                () = run(replica, settings, |_| backend, policies) => {}
                () = lost => bail!("the network namespace has lost its networks"),
            }
        }
        BackendName::Userspace => {
            let sockets = supervisor::sockets().context("stdin is not the link to the parent")?;
            let (limits, events) = (settings.userspace.clone(), replica.events.clone());
            let backend =
                |services| Userspace::new(sockets, limits, report::ports(services, events));
            run(replica, settings, backend, None).await;
        }
    }
    Ok(())
}

/// Waits until the network namespace has no network any more, if that can happen: whatever held it has ended, and a new
/// process joins the namespace of its successor.
async fn cut_off(can_be: bool, period: Duration) {
    while !can_be || !is_cut_off() {
        sleep(period).await;
    }
}

async fn run<B: Backend>(
    replica: Replica,
    settings: Settings,
    backend: impl FnOnce(Reader<ServiceView>) -> B,
    policies: Option<Tools>,
) {
    let check = replica.host.health().check(CHECK);
    let (queue, metrics) = (Queue::new("proxy", Limiter::FastSlow), Metrics::new());
    let services = services(&replica, &queue, &metrics);
    let slices = slices(&replica, &queue, &metrics);
    let nodes = replica.informer::<NodeView>();
    let place = watch::Sender::new(Arc::new(Place::default()));
    let (changed, moved) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let wakes = (Arc::clone(&changed), Arc::clone(&moved));
    let nodes = follow(nodes, place.clone(), settings.clone(), wakes);
    let _routes = route(&replica, nodes.reader(), &settings, moved);
    let _policies =
        policies.map(|tools| enforce(&replica, nodes.reader(), &settings, changed, tools));
    let readers = (services.reader(), slices.reader(), nodes.reader());
    let events = replica.events.clone();
    let checks = report::checks(readers.0.clone(), readers.2.clone(), events);
    let mut syncer = Syncer {
        backend: backend(readers.0.clone()),
        services: readers.0.clone(),
        slices: readers.1.clone(),
        nodes: readers.2.clone(),
        decision_log: replica.decision_log.clone(),
        queue: queue.clone(),
        place: place.subscribe(),
        external_ips: settings.external_ips,
        period: settings.sync_period,
        check,
        health: Servers::new(checks),
        metrics,
    };
    let synced = watch::Sender::new(false);
    replica.ready_when(synced.subscribe());
    let program = async {
        tokio::join!(readers.0.synced(), readers.1.synced(), readers.2.synced());
        set_place(&readers.2, &place, &settings);
        synced.send_replace(true);
        syncer.run().await;
    };
    let shutdown = replica.host.shutdown();
    let informers = async {
        let stop = || shutdown.clone();
        tokio::join!(services.run(stop()), slices.run(stop()), nodes.run(stop()));
    };
    // A transaction that has begun is the kernel's to finish: it is one call to it.
    tokio::select! {
        () = program => {}
        () = informers => {}
    }
    queue.close();
    tokio::join!(syncer.backend.end(), replica.leave());
}

fn services(replica: &Replica, queue: &Queue<Key>, metrics: &Metrics) -> Informer<ServiceView> {
    let (queue, changes) = (queue.clone(), metrics.service_changes.clone());
    replica.informer::<ServiceView>().on_event(move |delta| {
        changes.inc();
        if let Some(service) = delta.new.as_ref().or(delta.old.as_ref()) {
            queue.add(service.meta().key.clone(), delta.cause.clone());
        }
    })
}

fn slices(replica: &Replica, queue: &Queue<Key>, metrics: &Metrics) -> Informer<SliceView> {
    let (queue, changes) = (queue.clone(), metrics.endpoint_changes.clone());
    replica.informer::<SliceView>().on_event(move |delta| {
        changes.inc();
        let service = |slice: &Option<Arc<SliceView>>| slice.as_ref()?.service.clone();
        let (old, new) = (service(&delta.old), service(&delta.new));
        let moved = old.filter(|old| Some(old) != new.as_ref());
        for key in moved.into_iter().chain(new) {
            queue.add(key, delta.cause.clone());
        }
    })
}

/// Keeps the place as the nodes of this machine are. Notifies the first of `wakes` when one of them changes, the second
/// when any node does.
fn follow(
    nodes: Informer<NodeView>,
    place: watch::Sender<Arc<Place>>,
    settings: Settings,
    (changed, moved): (Arc<Notify>, Arc<Notify>),
) -> Informer<NodeView> {
    let reader = nodes.reader();
    nodes.on_event(move |delta| {
        let node = delta.new.as_ref().or(delta.old.as_ref());
        let is_ours = node.is_some_and(|node| is_among(&node.meta.key.name, &settings.nodes));
        let differs = match (&delta.old, &delta.new) {
            (Some(old), Some(new)) => new.differs_from(old),
            _ => true,
        };
        if !differs || !reader.has_synced() {
            return;
        }
        moved.notify_one();
        if is_ours {
            set_place(&reader, &place, &settings);
            changed.notify_one();
        }
    })
}

/// Enforces NetworkPolicies until shutdown, or until the handle is dropped. The task is one of its own, because
/// Services must not wait for plans of policies.
fn enforce(
    replica: &Replica,
    nodes: Reader<NodeView>,
    settings: &Settings,
    changed: Arc<Notify>,
    tools: Tools,
) -> AbortOnDropHandle<()> {
    let (caches, informers) = network_policy::caches(replica, nodes, &settings.nodes, &changed);
    let enforcer = Mutex::new(Enforcer {
        caches,
        changed,
        table: Table::new(Settings::policy_table(&settings.table)),
        tools,
        client: replica.client.clone(),
        period: settings.sync_period,
        check: replica.host.health().check(POLICIES),
    });
    let (tasks, shutdown) = (replica.client.tasks().clone(), replica.host.shutdown());
    AbortOnDropHandle::new(tokio::spawn(async move {
        let enforce = || async { enforcer.lock().await.run().await };
        tokio::select! {
            () = tasks.supervise(POLICIES, "", enforce) => {}
            () = informers.run(shutdown) => {}
        }
    }))
}

/// Keeps the routes to the Pods of other nodes, if the settings ask for them, until the handle is dropped.
fn route(
    replica: &Replica,
    nodes: Reader<NodeView>,
    settings: &Settings,
    changed: Arc<Notify>,
) -> Option<AbortOnDropHandle<()>> {
    if settings.routed_pod_ranges.is_empty() {
        return None;
    }
    let keeper = Keeper {
        nodes,
        ours: settings.nodes.clone(),
        within: settings.routed_pod_ranges.clone(),
        kernel: settings.kernel(),
        changed,
        period: settings.sync_period,
        events: replica.events.clone(),
        check: replica.host.health().check(ROUTES),
    };
    let tasks = replica.client.tasks().clone();
    let keep = async move { tasks.supervise(ROUTES, "", || keeper.run()).await };
    Some(AbortOnDropHandle::new(tokio::spawn(keep)))
}

/// Sets the place from the nodes with the names of the settings.
fn set_place(nodes: &Reader<NodeView>, place: &watch::Sender<Arc<Place>>, settings: &Settings) {
    let named = settings.nodes.iter();
    let ours: Vec<_> = match are_all(&settings.nodes) {
        true => nodes.list(),
        false => named
            .filter_map(|name| nodes.get(&Key::new("", name)))
            .collect(),
    };
    let ours = ours.iter().map(AsRef::as_ref);
    let new = Arc::new(Place::of(
        &settings.nodes,
        &settings.node_port_addresses,
        ours,
    ));
    place.send_if_modified(|known| {
        let changed = *known != new;
        *known = Arc::clone(&new);
        changed
    });
}
