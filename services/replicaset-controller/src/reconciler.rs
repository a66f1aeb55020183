//! The controller: its informers, and its implementation of [`Reconciler`].

use setpoint_controller::runtime::Settings;
use setpoint_controller::{
    Client, Hosted, Inputs, ObjectRef, Outcome, Plan, Reader, Receipt, Reconciler, Recorder,
    Replica,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::apps::{ReplicaSet, ReplicaSetStatus};
use setpoint_proto::{ApiError, Resource as _, core};

use crate::{Action, PodView, ReplicaSetView, World, act, plan, status};

/// The ReplicaSet reconciler.
pub struct ReplicaSets {
    /// The cache of ReplicaSets.
    pub sets: Reader<ReplicaSetView>,
    /// The cache of Pods.
    pub pods: Reader<PodView>,
    /// The recorder of Events.
    pub events: Recorder,
}

/// The controller, for processes that host it.
pub const CONTROLLER: Hosted = Hosted {
    name: "replicaset-controller",
    resource: ReplicaSet::RESOURCE,
    run: |replica, settings| Box::pin(run(replica, settings)),
};

async fn run(replica: Replica, settings: Settings) -> anyhow::Result<()> {
    let (sets, pods) = (
        replica.informer::<ReplicaSetView>(),
        replica.informer::<PodView>(),
    );
    let reconciler = ReplicaSets {
        sets: sets.reader(),
        pods: pods.reader(),
        events: replica.events.clone(),
    };
    let owners = sets.reader();
    let controller = replica.controller(reconciler).for_(sets).owns(pods, owners);
    replica.run(controller, settings).await
}

impl Reconciler for ReplicaSets {
    type World = World;
    type Action = Action;
    type Status = ReplicaSetStatus;

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
        act::record(&self.events, &world.set, action, result);
    }

    fn status(world: &World, outcome: &Outcome<Action>) -> Option<ReplicaSetStatus> {
        status(world, outcome)
    }

    async fn update_status(
        &self,
        client: &Client,
        world: &World,
        status: ReplicaSetStatus,
    ) -> Result<Receipt, ApiError> {
        let set = ReplicaSet {
            metadata: world.set.meta.precondition(),
            status,
            ..Default::default()
        };
        Ok(client.update_status(&set).await?.receipt())
    }
}
