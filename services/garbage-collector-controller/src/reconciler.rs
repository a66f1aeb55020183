//! The controller: the graph, the live reads, and its implementation of [`Reconciler`].

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use setpoint_controller::{
    Client, Hosted, Inputs, ObjectRef, Plan, QueueHandle, Receipt, Reconciler, Recorder, Replica,
    runtime,
};
use setpoint_model::owner::Reference;
use setpoint_model::{Key, Meta};
use setpoint_proto::meta::{OwnerReference, PartialObjectMetadata};
use setpoint_proto::{ApiError, Reason};
use tracing::warn;

use crate::follow::follow;
use crate::graph::Graph;
use crate::item::ORPHAN;
use crate::{Action, Item, Live, Owner, OwnerState, Standing, World, act, plan};

/// The largest number of reported references that are remembered; then all are forgotten, and reported again if they
/// are looked at.
const MAX_REPORTED: usize = 10_000;

/// The reconciler of objects with owners or dependants, of all kinds. A key has the uid of the object as its name.
pub struct Collector {
    graph: Arc<Mutex<Graph>>,
    events: Recorder,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    /// The objects as they were read for reconciles that run.
    reads: HashMap<Key, Live>,
    /// The uids of objects and owners in other namespaces that were reported.
    reported: HashSet<(String, String)>,
}

/// The controller, for processes that host it.
pub const CONTROLLER: Hosted = Hosted {
    name: "garbage-collector-controller",
    resource: "",
    run: |replica, settings, ()| Box::pin(run(replica, settings)),
};

/// Runs the controller until the process shuts down.
///
/// # Errors
/// If the election's settings cannot work.
pub async fn run(replica: Replica, settings: runtime::Settings) -> anyhow::Result<()> {
    let (client, queue) = (replica.client.clone(), QueueHandle::default());
    let collector = Collector::new(replica.events.clone());
    let controller = replica.controller(collector).queue(&queue);
    let collector = controller.reconciler();
    tokio::select! {
        ended = replica.run(controller, settings) => ended,
        () = collector.follow(&client, &queue) => Ok(()),
    }
}

impl Collector {
    /// Returns a reconciler that records these Events.
    pub fn new(events: Recorder) -> Self {
        Self {
            graph: Arc::default(),
            events,
            memory: Mutex::default(),
        }
    }

    /// Follows all objects in each term of the queue, and adds those to look at.
    pub async fn follow(&self, client: &Client, queue: &QueueHandle) {
        let graph = &self.graph;
        let supervised = || async {
            let tasks = client.tasks().clone();
            let start = || follow(client, graph, queue);
            tasks.supervise("owner-graph", "", start).await;
        };
        queue.in_each_term(supervised).await;
    }

    /// Returns the number of objects in the graph.
    pub fn objects(&self) -> usize {
        self.graph.lock().len()
    }

    /// Reads an object with its owners, and its dependants if they matter.
    async fn read(&self, client: &Client, object: &ObjectRef, uid: &str) -> Result<Live, ApiError> {
        let found = match client.with_owners(object).await {
            Err(error) if error.reason == Reason::NotFound => return Ok(Live::Gone),
            found => found?,
        };
        let item = Item::of(found.object);
        if item.uid != uid {
            return Ok(Live::Gone);
        }
        let owners = item.owners.iter().zip(found.owners);
        let owners = owners.map(|(reference, read)| Owner::of(reference, read));
        let owners = owners.collect();
        let is_blocked = || self.graph.lock().standing(uid).is_blocked;
        let is_held = item.deleting && item.has_finalizer(ORPHAN);
        let dependants = match is_held || (item.waits_for_dependants() && !is_blocked()) {
            true => Some(client.dependants_of(&item.key.namespace, uid).await?),
            false => None,
        };
        let dependants = dependants.map(|all| all.into_iter().map(Item::of).collect());
        Ok(Live::Present {
            item: Arc::new(item),
            owners,
            dependants,
        })
    }

    /// Returns the references of an object to owners in another namespace that were not reported.
    fn foreign(&self, graph: &Graph, live: &Live) -> Vec<OwnerReference> {
        let Live::Present { item, owners, .. } = live else {
            return Vec::new();
        };
        let reported = &self.memory.lock().reported;
        let is_foreign = |owner: &Owner| {
            owner.state == OwnerState::OutOfScope || graph.is_foreign(&item.uid, &owner.uid)
        };
        let is_new = |owner: &Owner| !reported.contains(&(item.uid.clone(), owner.uid.clone()));
        let all = item.owners.iter().zip(owners);
        let new = all.filter(|(_, owner)| is_foreign(owner) && is_new(owner));
        new.map(|(reference, _)| reference.clone()).collect()
    }
}

impl Reconciler for Collector {
    type Object = PartialObjectMetadata;
    type World = World;
    type Action = Action;

    fn begin(&self) {
        *self.memory.lock() = Memory::default();
    }

    /// Reads the object and those around it.
    async fn fetch(&self, client: &Client, key: &Key, _: jiff::Timestamp) {
        let Some(object) = self.graph.lock().reference(&key.name) else {
            return;
        };
        let live = self.read(client, &object, &key.name).await;
        let live = live.unwrap_or_else(|error| {
            warn!(kind = object.resource, name = object.name, %error, "an object could not be read");
            Live::Unread
        });
        self.memory.lock().reads.insert(key.clone(), live);
    }

    /// Takes what was read, which is of no use for a later reconcile.
    fn observe(&self, key: &Key, _: Inputs) -> Option<World> {
        let live = self.memory.lock().reads.remove(key)?;
        let graph = self.graph.lock();
        let (meta, kind) = graph.identity(&key.name)?;
        let meta = match &live {
            Live::Present { item, .. } => Meta::of(&item.metadata()),
            Live::Unread | Live::Gone => meta,
        };
        let standing = match &live {
            Live::Present { .. } => graph.standing(&key.name),
            Live::Unread | Live::Gone => Standing::default(),
        };
        let foreign = self.foreign(&graph, &live);
        Some(World {
            meta,
            kind,
            live,
            standing,
            foreign,
        })
    }

    fn meta(world: &World) -> &Meta {
        &world.meta
    }

    fn kind(world: &World) -> Option<(&str, &str)> {
        Some((&world.kind.0, &world.kind.1))
    }

    fn plan(world: &World) -> Plan<Action> {
        plan(world)
    }

    fn touches(_: &World, action: &Action) -> Option<ObjectRef> {
        Some(action.item().reference())
    }

    async fn act(&self, client: &Client, _: &World, action: &Action) -> Result<Receipt, ApiError> {
        act::act(client, &self.events, action).await
    }

    /// Notes what was reported.
    fn record(&self, _: &World, action: &Action, _: &Result<Receipt, ApiError>) {
        if let Action::Report(item, Reference(reference)) = action {
            let pair = (item.uid.clone(), reference.uid.clone());
            let reported = &mut self.memory.lock().reported;
            if reported.len() >= MAX_REPORTED {
                reported.clear();
            }
            reported.insert(pair);
        }
    }
}
