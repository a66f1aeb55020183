//! The controller: its informers, and its implementation of [`Reconciler`].

use setpoint_controller::runtime::Settings;
use setpoint_controller::{
    Client, Hosted, Inputs, ObjectRef, Outcome, Plan, Reader, Receipt, Reconciler, Recorder,
    Replica,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::apps::{StatefulSet, StatefulSetStatus};
use setpoint_proto::{ApiError, Resource as _};
use setpoint_workload::{PodView, RevisionView};

use crate::{Action, ClaimView, StatefulSetView, World, act, plan, status};

/// The StatefulSet reconciler.
pub struct StatefulSets {
    /// The cache of StatefulSets.
    pub sets: Reader<StatefulSetView>,
    /// The cache of Pods.
    pub pods: Reader<PodView>,
    /// The cache of ControllerRevisions.
    pub revisions: Reader<RevisionView>,
    /// The cache of PersistentVolumeClaims.
    pub claims: Reader<ClaimView>,
    /// The recorder of Events.
    pub events: Recorder,
}

/// The controller, for processes that host it.
pub const CONTROLLER: Hosted = Hosted {
    name: "statefulset-controller",
    resource: StatefulSet::RESOURCE,
    run: |replica, settings, ()| Box::pin(run(replica, settings)),
};

async fn run(replica: Replica, settings: Settings) -> anyhow::Result<()> {
    let reconciler = StatefulSets {
        sets: replica.reader(),
        pods: replica.reader(),
        revisions: replica.reader(),
        claims: replica.reader(),
        events: replica.events.clone(),
    };
    let sets = replica.informer::<StatefulSetView>();
    let (of_pods, of_revisions) = (sets.reader(), sets.reader());
    let controller = replica
        .controller(reconciler)
        .for_(sets)
        .owns(replica.informer::<PodView>(), of_pods)
        .owns(replica.informer::<RevisionView>(), of_revisions)
        .watches(replica.informer(), replica.with_reader(users));
    replica.run(controller, settings).await
}

/// Returns the keys of the sets to whose Pods a claim belongs by its name.
fn users(sets: &Reader<StatefulSetView>, claim: &ClaimView) -> Vec<Key> {
    let Key { namespace, name } = &claim.meta.key;
    let mut sets = sets.in_namespace(namespace);
    sets.retain(|set| set.names_claim(name));
    sets.iter().map(|set| set.meta.key.clone()).collect()
}

impl Reconciler for StatefulSets {
    type Object = StatefulSet;
    type World = World;
    type Action = Action;

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
        Some(action.object(&world.set))
    }

    async fn act(
        &self,
        client: &Client,
        world: &World,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        act::act(client, world, action).await
    }

    fn record(&self, world: &World, action: &Action, result: &Result<Receipt, ApiError>) {
        act::record(&self.events, world, action, result);
    }

    fn status(world: &World, outcome: &Outcome<Action>) -> Option<StatefulSetStatus> {
        status(world, outcome)
    }
}
