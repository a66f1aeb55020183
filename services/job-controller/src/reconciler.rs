//! The controller: its informers, and its implementation of [`Reconciler`].

use setpoint_controller::runtime::Settings;
use setpoint_controller::{
    Client, Hosted, Inputs, ObjectRef, Outcome, Plan, Reader, Receipt, Reconciler, Recorder,
    Replica,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::batch::{Job, JobStatus};
use setpoint_proto::{ApiError, Resource as _, core};

use crate::{Action, JobPodView, JobView, World, act, events, keys_of, plan, status};

/// The Job reconciler.
pub struct Jobs {
    /// The cache of Jobs.
    pub jobs: Reader<JobView>,
    /// The cache of Pods.
    pub pods: Reader<JobPodView>,
    /// The recorder of Events.
    pub events: Recorder,
}

/// The controller, for processes that host it.
pub const CONTROLLER: Hosted = Hosted {
    name: "job-controller",
    resource: Job::RESOURCE,
    run: |replica, settings, ()| Box::pin(run(replica, settings)),
};

async fn run(replica: Replica, settings: Settings) -> anyhow::Result<()> {
    let reconciler = Jobs {
        jobs: replica.reader(),
        pods: replica.reader(),
        events: replica.events.clone(),
    };
    let controller = replica
        .controller(reconciler)
        .for_(replica.informer::<JobView>())
        .watches(replica.informer(), replica.with_reader(keys_of));
    replica.run(controller, settings).await
}

impl Reconciler for Jobs {
    type Object = Job;
    type World = World;
    type Action = Action;

    fn observe(&self, key: &Key, inputs: Inputs) -> Option<World> {
        World::observe(&self.jobs, &self.pods, key, inputs)
    }

    fn meta(world: &World) -> &Meta {
        &world.job.meta
    }

    fn plan(world: &World) -> Plan<Action> {
        plan(world)
    }

    fn touches(world: &World, action: &Action) -> Option<ObjectRef> {
        let pod = Key::new(&world.job.meta.key.namespace, action.pod()?);
        Some(pod.in_resource(core::Pod::RESOURCE))
    }

    async fn act(
        &self,
        client: &Client,
        world: &World,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        act::act(client, &world.job, action).await
    }

    fn record(&self, world: &World, action: &Action, result: &Result<Receipt, ApiError>) {
        events::record(&self.events, &world.job, action, result);
    }

    fn status(world: &World, outcome: &Outcome<Action>) -> Option<JobStatus> {
        status(world, outcome)
    }

    async fn update_status(
        &self,
        client: &Client,
        world: &World,
        status: JobStatus,
    ) -> Result<Receipt, ApiError> {
        let written = client.update_status_of::<Job>(&world.job.meta, status.clone());
        let receipt = written.await?;
        events::record_status(&self.events, &world.job, &status);
        Ok(receipt)
    }
}
