//! Keeps every ReplicaSet at its number of Pods.
//!
//! Pods belong to a set by their owner reference. Orphans that the selector matches are adopted, Pods that it matches
//! no more are released; then Pods are created or deleted until there are as many as wanted.

mod act;
mod backoff;
mod plan;
mod pod;
mod ranking;
mod set;
mod settings;
mod status;
mod world;

use setpoint_host::Host;
use setpoint_machinery::{
    Controller, Gateway, Journal, Outcome, Plan, Presence, Receipt, Reconciler, Recorder, Subject,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::apps::{self, ReplicaSetStatus};
use setpoint_proto::core;
use setpoint_proto::{ApiError, Resource as _};

pub use backoff::KEPT;
pub use plan::{Action, BURST, plan};
pub use pod::{Admission, Phase, Pod};
pub use set::Set;
pub use settings::Settings;
pub use status::status;
pub use world::{ReplicaSets, World};

/// Runs the controller until shutdown.
///
/// # Errors
/// When the gateway's address is no URI, or the lease cannot be kept.
pub async fn start(host: Host, Settings(settings): Settings) -> anyhow::Result<()> {
    let gateway = Gateway::connect(&settings.gateway, host.service())?;
    let (sets, pods) = (gateway.informer::<Set>(), gateway.informer::<Pod>());
    let events = Recorder::new(gateway.clone(), host.service(), host.instance());
    let reconciler = ReplicaSets::new(sets.reader(), pods.reader(), events.clone());
    let keepers = reconciler.keepers();

    let presence = Presence::announce(
        gateway.clone(),
        host.service(),
        host.instance(),
        host.advertised(),
    );
    let journal = Journal::new(host.service(), host.instance(), apps::ReplicaSet::RESOURCE);
    host.offer(journal.routes().into_axum_router());
    let health = gateway.tasks().health();
    let controller = Controller::new(host.service(), reconciler, gateway)
        .watches(sets, |set| Some(set.meta.key.clone()))
        .watches(pods, keepers)
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

impl Reconciler for ReplicaSets {
    type World = World;
    type Action = Action;
    type Status = ReplicaSetStatus;

    fn observe(&self, key: &Key) -> Option<World> {
        self.look_at(key)
    }

    fn meta(world: &World) -> Option<&Meta> {
        Some(&world.set.meta)
    }

    fn plan(world: &World) -> Plan<Action> {
        plan(world)
    }

    fn touches(world: &World, action: &Action) -> Option<Subject> {
        let pod = Key::new(&world.set.meta.key.namespace, action.pod());
        Some(Subject::new(core::Pod::RESOURCE, pod))
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

    fn status(world: &World, outcome: &Outcome) -> Option<ReplicaSetStatus> {
        status(world, outcome)
    }

    async fn report(
        &self,
        gateway: &Gateway,
        world: &World,
        status: ReplicaSetStatus,
    ) -> Result<Receipt, ApiError> {
        self.write_status(gateway, world, status).await
    }
}
