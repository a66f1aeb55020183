//! The controller: its informers, and its implementation of [`Reconciler`].

use setpoint_controller::runtime::Settings;
use setpoint_controller::{
    Client, Hosted, Inputs, ObjectRef, Outcome, Plan, Reader, Receipt, Reconciler, Recorder,
    Replica,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::{ApiError, Resource as _, apps};

use crate::annotations::REVISION;
use crate::{Action, DeploymentView, ReplicaSetView, World, act, plan, revision, status};

/// The Deployment reconciler.
pub struct Deployments {
    /// The cache of Deployments.
    pub deployments: Reader<DeploymentView>,
    /// The cache of ReplicaSets.
    pub sets: Reader<ReplicaSetView>,
    /// The recorder of Events.
    pub events: Recorder,
}

/// The controller, for processes that host it.
pub const CONTROLLER: Hosted = Hosted {
    name: "deployment-controller",
    resource: apps::Deployment::RESOURCE,
    run: |replica, settings, ()| Box::pin(run(replica, settings)),
};

async fn run(replica: Replica, settings: Settings) -> anyhow::Result<()> {
    let (deployments, sets) = (
        replica.informer::<DeploymentView>(),
        replica.informer::<ReplicaSetView>(),
    );
    let reconciler = Deployments {
        deployments: deployments.reader(),
        sets: sets.reader(),
        events: replica.events.clone(),
    };
    let owners = deployments.reader();
    let controller = replica
        .controller(reconciler)
        .for_(deployments)
        .owns(sets, owners);
    replica.run(controller, settings).await
}

impl Reconciler for Deployments {
    type Object = apps::Deployment;
    type World = World;
    type Action = Action;

    fn observe(&self, key: &Key, inputs: Inputs) -> Option<World> {
        World::observe(&self.deployments, &self.sets, key, inputs)
    }

    fn meta(world: &World) -> &Meta {
        &world.deployment.meta
    }

    fn plan(world: &World) -> Plan<Action> {
        plan(world)
    }

    fn touches(world: &World, action: &Action) -> Option<ObjectRef> {
        let set = Key::new(&world.deployment.meta.key.namespace, action.set());
        Some(set.in_resource(apps::ReplicaSet::RESOURCE))
    }

    async fn act(
        &self,
        client: &Client,
        world: &World,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        act::act(client, &world.deployment, action).await
    }

    fn record(&self, world: &World, action: &Action, result: &Result<Receipt, ApiError>) {
        act::record(&self.events, &world.deployment, action, result);
    }

    fn status(world: &World, outcome: &Outcome<Action>) -> Option<apps::DeploymentStatus> {
        status(world, outcome)
    }

    /// Writes the status and the revision annotation in one request: an annotation does not increment the generation.
    async fn update_status(
        &self,
        client: &Client,
        world: &World,
        status: apps::DeploymentStatus,
    ) -> Result<Receipt, ApiError> {
        let meta = &world.deployment.meta;
        let mut metadata = meta.precondition();
        metadata.annotations = meta.annotations.clone();
        let revision = revision(world).map(|revision| (REVISION.to_owned(), revision.to_string()));
        metadata.annotations.extend(revision);
        let deployment = apps::Deployment {
            metadata,
            status,
            ..Default::default()
        };
        Ok(client.update_status(&deployment).await?.receipt())
    }
}
