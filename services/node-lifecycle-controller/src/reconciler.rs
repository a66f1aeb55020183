//! The controller of the health of nodes: its informers, its clock, and its implementation of [`Reconciler`].

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_controller::client::ListOptions;
use setpoint_controller::{
    Client, Delta, Hosted, Inputs, ObjectRef, Plan, QueueHandle, Reader, Receipt, Reconciler,
    Recorder, Replica, runtime,
};
use setpoint_model::replicas::NODE_LEASES;
use setpoint_model::{Key, Meta, Target};
use setpoint_proto::core::{Node, Pod};
use setpoint_proto::{ApiError, Resource as _};
use tokio::time::{MissedTickBehavior, interval};

use crate::registered::Registered;
use crate::taints::is_executed;
use crate::world::Snapshot;
use crate::{
    Action, AwakeClock, EvictionLimits, Health, LeaseView, Lifecycle, NodeView, PodView, Ready,
    World, Zones, act, plan,
};

/// The number of nodes that are decided on in one snapshot.
const BATCH: usize = 256;

/// The component of its Events, as upstream.
const COMPONENT: &str = "node-controller";

/// The reconciler of nodes.
pub struct Nodes {
    nodes: Reader<NodeView>,
    leases: Reader<LeaseView>,
    pods: Reader<PodView>,
    settings: Arc<Lifecycle>,
    events: Recorder,
    clock: AwakeClock,
    memory: Mutex<Memory>,
}

/// Observations of one term.
#[derive(Default)]
struct Memory {
    health: Health,
    limits: EvictionLimits,
    /// Whether no node was ready when the nodes were judged last.
    outage: bool,
    /// The Pods that were marked as not ready, by the node whose agent does not answer. Each is marked once, so that
    /// there is no contest with an agent that answers again.
    marked: HashMap<String, HashSet<String>>,
    registered: Registered,
}

/// The controller, for processes that host it.
pub const CONTROLLER: Hosted<Lifecycle> = Hosted {
    name: "node-lifecycle-controller",
    resource: Node::RESOURCE,
    run: |replica, settings, own| Box::pin(run(replica, settings, own)),
};

async fn run(
    replica: Replica,
    settings: runtime::Settings,
    lifecycle: Lifecycle,
) -> anyhow::Result<()> {
    let leases = replica.client.informer::<LeaseView>().only(ListOptions {
        namespace: NODE_LEASES.to_owned(),
        ..ListOptions::default()
    });
    let (period, queue) = (lifecycle.monitor_period, QueueHandle::default());
    let readers = (replica.reader(), leases.reader(), replica.reader());
    let events = replica.events.of_component(COMPONENT);
    let controller = replica
        .controller(Nodes::new(readers, lifecycle, events))
        .for_those(replica.informer(), |_| true, matters)
        .watches(replica.informer(), replica.with_reader(unheard))
        .watches(leases, |_| None)
        .batches(BATCH, Key::clone)
        .queue(&queue);
    let nodes = controller.reconciler();
    tokio::select! {
        ended = replica.run(controller, settings) => ended,
        () = monitor_forever(&nodes, &queue, period) => Ok(()),
    }
}

fn matters(delta: &Delta<NodeView>) -> bool {
    match (&delta.old, &delta.new) {
        (Some(old), Some(new)) => old.differs(new),
        _ => true,
    }
}

/// Returns the node of a Pod that is ready although the agent does not answer.
fn unheard(nodes: &Reader<NodeView>, pod: &PodView) -> Option<Key> {
    let node = pod.node.as_deref().filter(|_| pod.ready)?;
    let key = Key::new("", node);
    let unknown = |node: Arc<NodeView>| node.ready() == Ready::Unknown;
    nodes.get(&key).is_some_and(unknown).then_some(key)
}

/// Judges all nodes once in a period, and adds those that need a decision, without a cause: each is the root of a trace
/// of its own.
async fn monitor_forever(nodes: &Nodes, queue: &QueueHandle, period: Duration) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let now = ticks.tick().await.into_std();
        let needed = nodes.monitor(now);
        needed.into_iter().for_each(|key| queue.add(key, None));
    }
}

impl Nodes {
    /// Returns a reconciler over these caches.
    pub fn new(
        (nodes, leases, pods): (Reader<NodeView>, Reader<LeaseView>, Reader<PodView>),
        settings: Lifecycle,
        events: Recorder,
    ) -> Self {
        // A period without a look at the nodes counts twice at most.
        let clock = AwakeClock::new(settings.monitor_period.saturating_mul(2));
        Self {
            nodes,
            leases,
            pods,
            settings: Arc::new(settings),
            events,
            clock,
            memory: Mutex::default(),
        }
    }

    /// Notes the signs of life of all nodes, and returns those that are or may be not healthy.
    fn monitor(&self, now: Instant) -> Vec<Key> {
        let (now, nodes) = (self.clock.read(now), self.nodes.list());
        let memory = &mut *self.memory.lock();
        for node in &nodes {
            let lease = self.lease(&node.meta.key.name);
            memory.health.observe(node, lease.as_deref(), now);
        }
        memory.health.keep(&nodes);
        let outage = zones(&nodes).are_all_down();
        // What was not heard during the outage says nothing about a single node.
        if memory.outage && !outage {
            memory.health.renew(now);
        }
        memory.outage = outage;
        let is_healthy = |node: &NodeView| {
            let (_, silent) = memory.health.last(&node.meta.key.name, now);
            let silent = silent >= self.settings.monitor_grace_period;
            node.ready() == Ready::Yes && !silent && !is_executed(node)
        };
        let needed = nodes.iter().filter(|node| !is_healthy(node));
        needed.map(|node| node.meta.key.clone()).collect()
    }

    fn lease(&self, node: &str) -> Option<Arc<LeaseView>> {
        self.leases.get(&Key::new(NODE_LEASES, node))
    }

    /// Returns the Pods of a node that are ready although its agent does not answer, without those that were marked
    /// already.
    fn ready_pods(&self, node: &NodeView, memory: &Memory) -> Vec<Target> {
        if node.ready() != Ready::Unknown {
            return Vec::new();
        }
        let marked = memory.marked.get(&node.meta.key.name);
        let is_marked = |pod: &PodView| marked.is_some_and(|marked| marked.contains(&pod.meta.uid));
        let pods = self.pods.tagged(&node.meta.key.name).into_iter();
        let ready = pods.filter(|pod| pod.ready && !is_marked(pod));
        ready.map(|pod| Target::of(&pod.meta)).collect()
    }
}

fn zones(nodes: &[Arc<NodeView>]) -> Zones {
    Zones::of(nodes.iter().map(|node| &**node))
}

impl Reconciler for Nodes {
    type Object = Node;
    type World = World;
    type Action = Action;

    fn begin(&self) {
        *self.memory.lock() = Memory::default();
    }

    async fn fetch(&self, _: &Client, key: &Key, _: Timestamp) {
        let now = self.clock.read(tokio::time::Instant::now().into_std());
        let memory = &mut *self.memory.lock();
        let node = self.nodes.get(key);
        if let Some(change) = memory.registered.observe(key, node.as_deref()) {
            change.record(&self.events);
        }
        if let Some(node) = &node {
            let lease = self.lease(&key.name);
            memory.health.observe(node, lease.as_deref(), now);
        }
        if node.is_none_or(|node| node.ready() != Ready::Unknown) {
            memory.marked.remove(&key.name);
        }
    }

    fn observe(&self, key: &Key, inputs: Inputs) -> Option<World> {
        self.observe_all(&[(key.clone(), inputs)]).pop().flatten()
    }

    fn observe_all(&self, batch: &[(Key, Inputs)]) -> Vec<Option<World>> {
        let Some((_, first)) = batch.first() else {
            return Vec::new();
        };
        let memory = &*self.memory.lock();
        let snapshot = Snapshot {
            zones: zones(&self.nodes.list()),
            health: &memory.health,
            limits: &memory.limits,
            settings: &self.settings,
            clock: self.clock.read(first.instant),
        };
        let nodes: Vec<_> = batch.iter().map(|(key, _)| self.nodes.get(key)).collect();
        let found = nodes.iter().zip(batch).filter_map(|(node, (_, inputs))| {
            let node = node.clone()?;
            let pods = self.ready_pods(&node, memory);
            Some((node, pods, inputs.now))
        });
        let mut worlds = snapshot.worlds(found).into_iter();
        let observed = nodes
            .iter()
            .map(|node| node.as_ref().and_then(|_| worlds.next()));
        observed.collect()
    }

    fn meta(world: &World) -> &Meta {
        &world.node.meta
    }

    fn plan(world: &World) -> Plan<Action> {
        plan(world)
    }

    fn touches(_: &World, action: &Action) -> Option<ObjectRef> {
        match action {
            Action::MarkPodNotReady(pod) => Some(pod.key.clone().in_resource(Pod::RESOURCE)),
            _ => None,
        }
    }

    async fn act(
        &self,
        client: &Client,
        world: &World,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        act::act(client, world, action).await
    }

    fn record(&self, world: &World, action: &Action, result: &Result<Receipt, ApiError>) {
        if result.is_err() {
            return;
        }
        let memory = &mut *self.memory.lock();
        let name = &world.node.meta.key.name;
        match action {
            Action::Taint(_) if crate::plan::wants_turn(world) => {
                let now = self.clock.read(tokio::time::Instant::now().into_std());
                if world.turn == Some(Duration::ZERO) {
                    memory.limits.tainted(&world.node.zone, now);
                }
            }
            Action::MarkPodNotReady(pod) => {
                let marked = memory.marked.entry(name.clone()).or_default();
                marked.insert(pod.uid.clone());
            }
            _ => {}
        }
        act::record(&self.events, world, action);
    }
}
