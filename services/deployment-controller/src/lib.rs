//! Rolls every Deployment to what it declares.
//!
//! A Deployment has one ReplicaSet for each Pod template that it ever had. Pods move from the old sets to the new one
//! by scaling: up as far as the surge leaves room, down as far as enough stay available.

mod act;
mod annotations;
mod deployment;
mod fleet;
mod plan;
mod progress;
mod recreate;
mod rolling;
mod scaling;
mod set;
mod settings;
mod status;
mod world;

use setpoint_host::Host;
use setpoint_machinery::{
    Controller, Gateway, Journal, Outcome, Plan, Presence, Receipt, Reconciler, Recorder, Subject,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::{ApiError, Resource as _, apps};

pub use deployment::{Deployment, Strategy};
pub use plan::{Action, plan};
pub use set::Set;
pub use settings::Settings;
pub use status::{Report, status};
pub use world::{Deployments, World};

/// Runs the controller until shutdown.
///
/// # Errors
/// When the gateway's address is no URI, or the lease cannot be kept.
pub async fn start(host: Host, Settings(settings): Settings) -> anyhow::Result<()> {
    let gateway = Gateway::connect(&settings.gateway, host.service())?;
    let deployments = gateway.informer::<Deployment>();
    let sets = gateway.informer::<Set>();
    let events = Recorder::new(gateway.clone(), host.service(), host.instance());
    let reconciler = Deployments::new(deployments.reader(), sets.reader(), events.clone());
    let keepers = reconciler.keepers();

    let presence = Presence::announce(
        gateway.clone(),
        host.service(),
        host.instance(),
        host.advertised(),
    );
    let journal = Journal::new(host.service(), host.instance(), apps::Deployment::RESOURCE);
    host.offer(journal.routes().into_axum_router());
    let health = gateway.tasks().health();
    let controller = Controller::new(host.service(), reconciler, gateway)
        .watches(deployments, |deployment| Some(deployment.meta.key.clone()))
        .watches(sets, keepers)
        .settings(settings)
        .journal(&journal);
    let tasks = host.health().check("background-tasks");
    tasks.follow(health);
    let informers = host.health().check("informers");
    informers.pass_when(controller.ready());
    controller.run(host.instance(), host.shutdown()).await?;
    tokio::join!(presence.leave(), events.finish());
    Ok(())
}

impl Reconciler for Deployments {
    type World = World;
    type Action = Action;
    type Status = Report;

    fn observe(&self, key: &Key) -> Option<World> {
        self.look_at(key)
    }

    fn meta(world: &World) -> Option<&Meta> {
        Some(&world.deployment.meta)
    }

    fn plan(world: &World) -> Plan<Action> {
        plan(world)
    }

    fn touches(world: &World, action: &Action) -> Option<Subject> {
        let set = Key::new(&world.deployment.meta.key.namespace, action.set());
        Some(Subject::new(apps::ReplicaSet::RESOURCE, set))
    }

    async fn act(
        &self,
        gateway: &Gateway,
        world: &World,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        let done = self.carry_out(gateway, world, action).await;
        self.tell(world, action, &done);
        done
    }

    fn status(world: &World, outcome: &Outcome) -> Option<Report> {
        status(world, outcome)
    }

    async fn report(
        &self,
        gateway: &Gateway,
        world: &World,
        report: Report,
    ) -> Result<Receipt, ApiError> {
        self.write_status(gateway, world, report).await
    }
}
