//! The controllers: their informers, and their implementation of [`Reconciler`].

use setpoint_controller::runtime::Settings;
use setpoint_controller::{
    Client, Hosted, Inputs, ObjectRef, Outcome, Plan, Reader, Receipt, Reconciler, Recorder,
    Replica, StatusOf,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::apps::ReplicaSet;
use setpoint_proto::core::{Pod, ReplicationController};
use setpoint_proto::{ApiError, Resource as _};
use setpoint_workload::PodView;

use crate::{
    Action, ReplicaSetView, Replicated, ReplicationControllerView, World, act, plan, status,
};

/// The reconciler of a kind whose objects each keep a number of Pods.
pub struct Replicas<S> {
    /// The cache of the kind.
    pub sets: Reader<S>,
    /// The cache of Pods.
    pub pods: Reader<PodView>,
    /// The recorder of Events.
    pub events: Recorder,
}

/// The ReplicaSet reconciler.
pub type ReplicaSets = Replicas<ReplicaSetView>;
/// The ReplicationController reconciler.
pub type ReplicationControllers = Replicas<ReplicationControllerView>;

/// The ReplicaSet controller, for processes that host it.
pub const CONTROLLER: Hosted = Hosted {
    name: "replicaset-controller",
    resource: ReplicaSet::RESOURCE,
    run: |replica, settings, ()| Box::pin(run::<ReplicaSetView>(replica, settings)),
};

/// The controller of ReplicationControllers, for processes that host it.
pub const REPLICATION_CONTROLLER: Hosted = Hosted {
    name: "replication-controller",
    resource: ReplicationController::RESOURCE,
    run: |replica, settings, ()| Box::pin(run::<ReplicationControllerView>(replica, settings)),
};

async fn run<S: Replicated>(replica: Replica, settings: Settings) -> anyhow::Result<()> {
    let (sets, pods) = (replica.informer::<S>(), replica.informer::<PodView>());
    let reconciler = Replicas {
        sets: sets.reader(),
        pods: pods.reader(),
        events: replica.events.clone(),
    };
    let owners = sets.reader();
    let controller = replica.controller(reconciler).for_(sets).owns(pods, owners);
    replica.run(controller, settings).await
}

impl<S: Replicated> Reconciler for Replicas<S> {
    type Object = S::Object;
    type World = World;
    type Action = Action;

    fn observe(&self, key: &Key, inputs: Inputs) -> Option<World> {
        World::observe(&self.sets, &self.pods, key, inputs)
    }

    fn meta(world: &World) -> &Meta {
        &world.set.meta
    }

    fn plan(world: &World) -> Plan<Action> {
        plan(world)
    }

    fn touches(world: &World, action: &Action) -> Option<ObjectRef> {
        let pod = Key::new(&world.set.meta.key.namespace, action.pod());
        Some(pod.in_resource(Pod::RESOURCE))
    }

    async fn act(
        &self,
        client: &Client,
        world: &World,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        act::act::<S::Object>(client, &world.set, action).await
    }

    fn record(&self, world: &World, action: &Action, result: &Result<Receipt, ApiError>) {
        act::record::<S::Object>(&self.events, &world.set, action, result);
    }

    fn status(world: &World, outcome: &Outcome<Action>) -> Option<StatusOf<Self>> {
        status(world, outcome).map(S::status)
    }
}
