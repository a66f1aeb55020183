//! The controller: its informers, and its implementation of [`Reconciler`].

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_controller::{
    Client, Delta, Hosted, Inputs, Plan, QueueHandle, Reader, Receipt, Reconciler, Replica, runtime,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::core::Pod;
use setpoint_proto::{ApiError, Resource as _};
use setpoint_workload::PodView;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::{Action, Collection, NodeState, NodeView, World, act, plan, surplus};

/// The reconciler of Pods that no other component removes.
pub struct Garbage {
    pods: Reader<PodView>,
    nodes: Reader<NodeView>,
    settings: Collection,
    memory: Mutex<Memory>,
}

/// Observations of one term.
#[derive(Default)]
struct Memory {
    /// The nodes of Pods that do not exist, and since when.
    missing: HashMap<String, Instant>,
    /// The uids of ended Pods that are too many.
    surplus: HashSet<String>,
}

/// The controller, for processes that host it.
pub const CONTROLLER: Hosted<Collection> = Hosted {
    name: "podgc-controller",
    resource: Pod::RESOURCE,
    run: |replica, settings, own| Box::pin(run(replica, settings, own)),
};

async fn run(
    replica: Replica,
    settings: runtime::Settings,
    collection: Collection,
) -> anyhow::Result<()> {
    let may_be_left = replica.with_reader(may_be_left);
    let (period, queue) = (collection.check_period, QueueHandle::default());
    let controller = replica
        .controller(Garbage::new(replica.reader(), replica.reader(), collection))
        .for_those(replica.informer(), may_be_left, matters)
        .depends_on(replica.informer(), replica.with_reader(affected))
        .queue(&queue);
    let garbage = controller.reconciler();
    tokio::select! {
        ended = replica.run(controller, settings) => ended,
        () = count_forever(&garbage, &queue, period) => Ok(()),
    }
}

/// Returns whether no agent may be there to remove a Pod. Reconciling all Pods of the cluster would find nothing to do.
fn may_be_left(nodes: &Reader<NodeView>, pod: &PodView) -> bool {
    let Some(node) = pod.node.as_deref() else {
        return pod.meta.deleting;
    };
    let node = nodes.get(&Key::new("", node));
    node.is_none_or(|node| node.out_of_service && pod.meta.deleting)
}

fn matters(delta: &Delta<PodView>) -> bool {
    let content = |pod: &PodView| {
        (
            pod.meta.uid.clone(),
            pod.meta.deleting,
            pod.node.clone(),
            pod.phase,
        )
    };
    match (&delta.old, &delta.new) {
        (Some(old), Some(new)) => content(old) != content(new),
        _ => true,
    }
}

/// Returns the Pods of a node that is gone or out of service now.
fn affected(pods: &Reader<PodView>, delta: &Delta<NodeView>) -> Vec<Key> {
    let is_out = |node: &Arc<NodeView>| node.out_of_service;
    let node = match (&delta.old, &delta.new) {
        (Some(old), None) => old,
        (old, Some(new)) if is_out(new) && !old.as_ref().is_some_and(is_out) => new,
        _ => return Vec::new(),
    };
    let mut pods = pods.list();
    pods.retain(|pod| pod.node.as_deref() == Some(&node.meta.key.name));
    pods.iter().map(|pod| pod.meta.key.clone()).collect()
}

/// Counts ended Pods once in a period, and adds those that are too many, without a cause.
async fn count_forever(garbage: &Garbage, queue: &QueueHandle, period: Duration) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let surplus = garbage.count();
        surplus.into_iter().for_each(|key| queue.add(key, None));
    }
}

impl Garbage {
    /// Returns a reconciler over these caches.
    pub fn new(pods: Reader<PodView>, nodes: Reader<NodeView>, settings: Collection) -> Self {
        Self {
            pods,
            nodes,
            settings,
            memory: Mutex::default(),
        }
    }

    /// Returns the ended Pods that are too many.
    fn count(&self) -> Vec<Key> {
        let pods = self.pods.list();
        let memory = &mut *self.memory.lock();
        if !memory.missing.is_empty() {
            let used: HashSet<_> = pods.iter().filter_map(|pod| pod.node.as_deref()).collect();
            memory
                .missing
                .retain(|node, _| used.contains(node.as_str()));
        }
        let surplus = surplus(pods, self.settings.terminated_pod_threshold);
        memory.surplus = surplus.iter().map(|pod| pod.meta.uid.clone()).collect();
        surplus.iter().map(|pod| pod.meta.key.clone()).collect()
    }

    fn node(&self, pod: &PodView) -> Option<Arc<NodeView>> {
        self.nodes.get(&Key::new("", pod.node.as_deref()?))
    }
}

impl Reconciler for Garbage {
    type Object = Pod;
    type World = World;
    type Action = Action;

    fn begin(&self) {
        *self.memory.lock() = Memory::default();
    }

    /// Notes since when the node of the Pod is missing.
    async fn fetch(&self, _: &Client, key: &Key, _: Timestamp) {
        let Some(pod) = self.pods.get(key) else {
            return;
        };
        let Some(name) = pod.node.as_deref() else {
            return;
        };
        let missing = &mut self.memory.lock().missing;
        match self.node(&pod) {
            Some(_) => _ = missing.remove(name),
            None => _ = missing.entry(name.to_owned()).or_insert_with(Instant::now),
        }
    }

    fn observe(&self, key: &Key, inputs: Inputs) -> Option<World> {
        let pod = self.pods.get(key)?;
        let memory = &*self.memory.lock();
        let node = match (pod.node.as_deref(), self.node(&pod)) {
            (None, _) => NodeState::Unbound,
            (_, Some(node)) if node.out_of_service => NodeState::OutOfService,
            (_, Some(_)) => NodeState::Exists,
            (Some(name), None) => {
                let since = memory.missing.get(name).copied();
                let now = Instant::from_std(inputs.instant);
                let missing = since.map(|since| now.saturating_duration_since(since));
                NodeState::Missing(missing.unwrap_or_default())
            }
        };
        Some(World {
            node,
            surplus: memory.surplus.contains(&pod.meta.uid),
            quarantine: self.settings.quarantine,
            pod,
        })
    }

    fn meta(world: &World) -> &Meta {
        &world.pod.meta
    }

    fn plan(world: &World) -> Plan<Action> {
        plan(world)
    }

    async fn act(
        &self,
        client: &Client,
        world: &World,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        act::act(client, world, *action).await
    }
}
