//! The controller of evictions: its informers, its clock, and its implementation of [`Reconciler`].

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_controller::{
    Client, Delta, Hosted, Inputs, Plan, Reader, Receipt, Reconciler, Recorder, Replica, runtime,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::core::{Pod, Taint};
use setpoint_proto::{ApiError, Resource as _};
use tokio::time::{Instant, interval};

use super::act;
use super::plan::{Action, World, plan};
use super::stay::{Stay, executing, taints_differ};
use crate::{AwakeClock, NodeView, PodView};

/// The interval at which the clock is read at least.
const TICK: Duration = Duration::from_secs(1);
/// The longest time between two readings that counts.
const STEP: Duration = Duration::from_secs(5);

/// The reconciler of Pods on tainted nodes.
pub struct Evictions {
    pods: Reader<PodView>,
    nodes: Reader<NodeView>,
    events: Recorder,
    clock: AwakeClock,
    /// The uids of the Pods that wait, and since when.
    waiting: Mutex<HashMap<Key, (String, Duration)>>,
}

/// The controller, for processes that host it.
pub const CONTROLLER: Hosted = Hosted {
    name: "taint-eviction-controller",
    resource: Pod::RESOURCE,
    run: |replica, settings, ()| Box::pin(run(replica, settings)),
};

async fn run(replica: Replica, settings: runtime::Settings) -> anyhow::Result<()> {
    let events = replica.events.clone();
    let reconciler = Evictions::new(replica.reader(), replica.reader(), events);
    let is_on_tainted = replica.with_reader(is_on_tainted);
    let controller = replica
        .controller(reconciler)
        .for_those(replica.informer(), is_on_tainted, matters)
        .depends_on(replica.informer(), replica.with_reader(affected));
    let evictions = controller.reconciler();
    tokio::select! {
        ended = replica.run(controller, settings) => ended,
        () = tick_forever(&evictions.clock) => Ok(()),
    }
}

/// Returns whether a Pod is on a node with a taint with the effect NoExecute. Others stay: reconciling all Pods of the
/// cluster would find nothing to do.
fn is_on_tainted(nodes: &Reader<NodeView>, pod: &PodView) -> bool {
    let node = pod.node.as_deref().map(|node| Key::new("", node));
    let node = node.and_then(|node| nodes.get(&node));
    node.is_some_and(|node| executing(&node.taints).next().is_some())
}

fn matters(delta: &Delta<PodView>) -> bool {
    let content = |pod: &PodView| {
        (
            pod.meta.uid.clone(),
            pod.meta.deleting,
            pod.node.clone(),
            pod.disrupted,
        )
    };
    match (&delta.old, &delta.new) {
        (Some(old), Some(new)) => {
            content(old) != content(new) || old.tolerations != new.tolerations
        }
        _ => true,
    }
}

/// Returns the Pods of a node whose taints with the effect NoExecute have changed.
fn affected(pods: &Reader<PodView>, delta: &Delta<NodeView>) -> Vec<Key> {
    let (old, new) = (delta.old.as_deref(), delta.new.as_deref());
    let tainted = |node: &NodeView| executing(&node.taints).next().is_some();
    let node = match (old, new) {
        (Some(old), Some(new)) if taints_differ(old, new) => new,
        (None, Some(one)) | (Some(one), None) if tainted(one) => one,
        _ => return Vec::new(),
    };
    let pods = pods.tagged(&node.meta.key.name).into_iter();
    pods.map(|pod| pod.meta.key.clone()).collect()
}

/// Reads the clock, so that it advances.
async fn tick_forever(clock: &AwakeClock) {
    let mut ticks = interval(TICK);
    loop {
        clock.read(ticks.tick().await.into_std());
    }
}

impl Evictions {
    /// Returns a reconciler over these caches.
    pub fn new(pods: Reader<PodView>, nodes: Reader<NodeView>, events: Recorder) -> Self {
        Self {
            pods,
            nodes,
            events,
            clock: AwakeClock::new(STEP),
            waiting: Mutex::default(),
        }
    }

    fn taints(&self, pod: &PodView) -> Vec<Taint> {
        let node = pod.node.as_deref().map(|node| Key::new("", node));
        let node = node.and_then(|node| self.nodes.get(&node));
        node.map_or_else(Vec::new, |node| executing(&node.taints).cloned().collect())
    }
}

impl Reconciler for Evictions {
    type Object = Pod;
    type World = World;
    type Action = Action;

    fn begin(&self) {
        self.waiting.lock().clear();
    }

    /// Notes when a Pod begins to wait.
    async fn fetch(&self, _: &Client, key: &Key, _: Timestamp) {
        let now = self.clock.read(Instant::now().into_std());
        let mut waiting = self.waiting.lock();
        let Some(pod) = self.pods.get(key).filter(|pod| !pod.meta.deleting) else {
            waiting.remove(key);
            return;
        };
        if waiting
            .get(key)
            .is_some_and(|(uid, _)| *uid != pod.meta.uid)
        {
            waiting.remove(key);
        }
        if matches!(Stay::of(&pod.tolerations, &self.taints(&pod)), Stay::For(_)) {
            let begin = || (pod.meta.uid.clone(), now);
            waiting.entry(key.clone()).or_insert_with(begin);
        }
    }

    fn observe(&self, key: &Key, inputs: Inputs) -> Option<World> {
        let pod = self.pods.get(key)?;
        let now = self.clock.read(inputs.instant);
        let since = self.waiting.lock().get(key).map(|(_, since)| *since);
        Some(World {
            taints: self.taints(&pod),
            waited: since.map(|since| now.saturating_sub(since)),
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

    fn record(&self, world: &World, action: &Action, result: &Result<Receipt, ApiError>) {
        if result.is_err() {
            return;
        }
        if *action == Action::Cancel {
            self.waiting.lock().remove(&world.pod.meta.key);
        }
        act::record(&self.events, &world.pod, *action);
    }
}
