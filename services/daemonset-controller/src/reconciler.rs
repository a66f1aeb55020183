//! The controller: its informers, and its implementation of [`Reconciler`].

use std::sync::Arc;

use setpoint_controller::runtime::Settings;
use setpoint_controller::{
    Client, Controller, Delta, Hosted, Informer, Inputs, ObjectRef, Outcome, Plan, Reader, Receipt,
    Reconciler, Recorder, Replica,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::apps::{DaemonSet, DaemonSetStatus};
use setpoint_proto::{ApiError, Resource as _, core};
use setpoint_workload::{PodView, RevisionView};

use crate::backoff::Backoffs;
use crate::plan::Found;
use crate::{Action, DaemonSetView, NodeView, World, act, plan, status};

/// The DaemonSet reconciler.
pub struct DaemonSets {
    pub(crate) sets: Reader<DaemonSetView>,
    pub(crate) nodes: Reader<NodeView>,
    pub(crate) pods: Reader<PodView>,
    pub(crate) revisions: Reader<RevisionView>,
    pub(crate) backoffs: Backoffs,
    events: Recorder,
}

/// The controller, for processes that host it.
pub const CONTROLLER: Hosted = Hosted {
    name: "daemonset-controller",
    resource: DaemonSet::RESOURCE,
    run: |replica, settings, ()| Box::pin(run(replica, settings)),
};

async fn run(replica: Replica, settings: Settings) -> anyhow::Result<()> {
    let informers = Informers {
        sets: replica.informer(),
        nodes: replica.informer(),
        pods: replica.informer(),
        revisions: replica.informer(),
    };
    let reconciler = DaemonSets::new(&informers, replica.events.clone());
    let controller = informers.trigger(replica.controller(reconciler));
    replica.run(controller, settings).await
}

/// The informers of the controller.
pub struct Informers {
    /// DaemonSets.
    pub sets: Informer<DaemonSetView>,
    /// Nodes.
    pub nodes: Informer<NodeView>,
    /// Pods.
    pub pods: Informer<PodView>,
    /// Revisions.
    pub revisions: Informer<RevisionView>,
}

impl Informers {
    /// Makes them the triggers of a controller.
    #[must_use]
    pub fn trigger(self, controller: Controller<DaemonSets>) -> Controller<DaemonSets> {
        let owners = || self.sets.reader();
        let (of_pods, of_revisions, of_nodes) = (owners(), owners(), owners());
        controller
            .for_(self.sets)
            .owns(self.pods, of_pods)
            .owns(self.revisions, of_revisions)
            .depends_on(self.nodes, move |delta| concerned(&of_nodes, delta))
    }
}

/// Returns the DaemonSets that treat a node otherwise than before its change; none for a heartbeat.
fn concerned(sets: &Reader<DaemonSetView>, delta: &Delta<NodeView>) -> Vec<Key> {
    let mut keys = Vec::new();
    sets.for_each(|set, _| {
        let placement = |node: &Option<Arc<_>>| node.as_deref().map(|node| set.placement(node));
        if placement(&delta.old) != placement(&delta.new) {
            keys.push(set.meta.key.clone());
        }
    });
    keys
}

impl DaemonSets {
    /// Returns the reconciler of these caches.
    pub fn new(informers: &Informers, events: Recorder) -> Self {
        Self {
            sets: informers.sets.reader(),
            nodes: informers.nodes.reader(),
            pods: informers.pods.reader(),
            revisions: informers.revisions.reader(),
            backoffs: Backoffs::default(),
            events,
        }
    }
}

impl Reconciler for DaemonSets {
    type Object = DaemonSet;
    type World = World;
    type Action = Action;

    fn begin(&self) {
        self.backoffs.clear();
    }

    fn observe(&self, key: &Key, inputs: Inputs) -> Option<World> {
        World::observe(self, key, inputs)
    }

    fn meta(world: &World) -> &Meta {
        &world.set.meta
    }

    fn plan(world: &World) -> Plan<Action> {
        plan(world)
    }

    fn touches(world: &World, action: &Action) -> Option<ObjectRef> {
        let pod = Key::new(&world.set.meta.key.namespace, action.pod()?);
        Some(pod.in_resource(core::Pod::RESOURCE))
    }

    async fn act(
        &self,
        client: &Client,
        world: &World,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        act::act(client, &world.set, action).await
    }

    fn record(&self, world: &World, action: &Action, result: &Result<Receipt, ApiError>) {
        if let (Action::Delete { node, found, .. }, Ok(_)) = (action, result)
            && *found == Found::Failed
        {
            self.backoffs.deleted(&world.set, node, world.now);
        }
        act::record(&self.events, &world.set, action, result);
    }

    fn status(world: &World, outcome: &Outcome<Action>) -> Option<DaemonSetStatus> {
        status(world, outcome)
    }
}
