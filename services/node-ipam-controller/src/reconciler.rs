//! The controller: its informer, and its implementation of [`Reconciler`].

use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_controller::{
    Client, Controller, Delta, Hosted, Informer, Inputs, ObjectRef, Plan, Reader, Receipt,
    Reconciler, Recorder, Replica, runtime,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::core::Node;
use setpoint_proto::{ApiError, Resource as _};

use crate::memory::Memory;
use crate::{Action, NodeIpam, NodeView, Pool, World, act, metrics, plan};

/// The component of its Events, as upstream.
const COMPONENT: &str = "cidrAllocator";

/// The reconciler of the ranges of all Nodes.
pub struct Ranges {
    nodes: Reader<NodeView>,
    pool: Arc<Pool>,
    events: Recorder,
    memory: Mutex<Memory>,
}

/// The controller, for processes that host it.
pub const CONTROLLER: Hosted<NodeIpam> = Hosted {
    name: "node-ipam-controller",
    resource: Node::RESOURCE,
    run: |replica, settings, own| Box::pin(run(replica, settings, own)),
};

async fn run(replica: Replica, settings: runtime::Settings, own: NodeIpam) -> anyhow::Result<()> {
    let events = replica.events.of_component(COMPONENT);
    let new = |ranges| replica.controller(ranges);
    let controller = controller(replica.informer(), &own, events, new);
    replica.run(controller, settings).await
}

/// Returns the controller over this informer; `new` makes it of the reconciler.
pub fn controller(
    nodes: Informer<NodeView>,
    settings: &NodeIpam,
    events: Recorder,
    new: impl FnOnce(Ranges) -> Controller<Ranges>,
) -> Controller<Ranges> {
    new(Ranges::new(nodes.reader(), settings, events))
        .depends_on(nodes, |delta| {
            matters(delta).then(key).into_iter().collect()
        })
        .sweeps(|| vec![key()])
}

/// Returns the key that stands for all Nodes; no Node has this name.
fn key() -> Key {
    Key::new("", "*")
}

/// Returns whether a Node has appeared, gone, or got a range: heartbeats are nothing.
fn matters(delta: &Delta<NodeView>) -> bool {
    let content = |node: &Arc<NodeView>| {
        let ranges = node.ranges.clone();
        (
            node.meta.uid.clone(),
            node.meta.deleting,
            node.assigned,
            ranges,
        )
    };
    delta.old.as_ref().map(content) != delta.new.as_ref().map(content)
}

impl Ranges {
    /// Returns a reconciler over this cache.
    pub fn new(nodes: Reader<NodeView>, settings: &NodeIpam, events: Recorder) -> Self {
        Self {
            nodes,
            pool: Arc::new(Pool::new(settings)),
            events,
            memory: Mutex::default(),
        }
    }
}

impl Reconciler for Ranges {
    type Object = Node;
    type World = World;
    type Action = Action;

    fn begin(&self) {
        self.memory.lock().begin();
    }

    /// Compares what was done in this term with the cache.
    async fn fetch(&self, _: &Client, _: &Key, _: Timestamp) {
        let nodes = self.nodes.list();
        self.memory.lock().observe(&self.pool, &nodes);
    }

    fn observe(&self, key: &Key, _: Inputs) -> Option<World> {
        let nodes = self.nodes.list().into_iter();
        let memory = &*self.memory.lock();
        Some(World {
            meta: Meta {
                key: key.clone(),
                ..Meta::default()
            },
            pool: self.pool.clone(),
            nodes: nodes.map(|node| memory.candidate(node)).collect(),
        })
    }

    fn meta(world: &World) -> &Meta {
        &world.meta
    }

    fn plan(world: &World) -> Plan<Action> {
        plan(world)
    }

    fn touches(_: &World, action: &Action) -> Option<ObjectRef> {
        let (Action::Assign { node, .. } | Action::Report { node }) = action;
        Some(node.key.clone().in_resource(Node::RESOURCE))
    }

    async fn act(&self, client: &Client, _: &World, action: &Action) -> Result<Receipt, ApiError> {
        match action {
            Action::Assign { node, range, .. } => {
                self.memory.lock().reserve(&node.uid, *range);
                act::assign(client, node, *range).await
            }
            Action::Report { node } => {
                self.memory.lock().told(&node.uid);
                Ok(Receipt::none())
            }
        }
    }

    fn record(&self, world: &World, action: &Action, result: &Result<Receipt, ApiError>) {
        if let (Action::Assign { range, tries, .. }, Ok(receipt)) = (action, result)
            && *receipt != Receipt::none()
        {
            metrics::assigned(&world.pool, *range, *tries);
        }
        act::record(&self.events, action, result);
    }
}
