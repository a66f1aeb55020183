//! The controller: its informers, and its implementation of [`Reconciler`].

use setpoint_controller::events::reference;
use setpoint_controller::{
    Client, Delta, Hosted, Inputs, Outcome, Plan, Reader, Receipt, Reconciler, Recorder, Replica,
    View as _, runtime,
};
use setpoint_model::volume::{LOCAL_PATH, NODE, reserved_for};
use setpoint_model::{Key, Meta};
use setpoint_proto::core::{PersistentVolume, PersistentVolumeStatus};
use setpoint_proto::{ApiError, Resource as _};

use super::{Action, ClaimState, VolumeView, World, act, notice, plan, status};
use crate::NodeView;
use crate::claim::ClaimView;

/// The reconciler of PersistentVolumes.
pub struct Volumes {
    /// The volumes.
    pub volumes: Reader<VolumeView>,
    /// The claims.
    pub claims: Reader<ClaimView>,
    /// The nodes.
    pub nodes: Reader<NodeView>,
    /// The recorder of Events.
    pub events: Recorder,
}

/// The controller, for processes that host it.
pub const CONTROLLER: Hosted = Hosted {
    name: "persistentvolume-controller",
    resource: PersistentVolume::RESOURCE,
    run: |replica, settings, ()| Box::pin(run(replica, settings)),
};

async fn run(replica: Replica, settings: runtime::Settings) -> anyhow::Result<()> {
    let reconciler = Volumes {
        volumes: replica.reader(),
        claims: replica.reader(),
        nodes: replica.reader(),
        events: replica.events.clone(),
    };
    let controller = replica
        .controller(reconciler)
        .for_(replica.informer::<VolumeView>())
        .depends_on(replica.informer(), replica.with_reader(concerned))
        .depends_on(replica.informer(), replica.with_reader(abandoned));
    replica.run(controller, settings).await
}

/// Returns the volumes that a changed claim names, and those that are reserved for it.
fn concerned(volumes: &Reader<VolumeView>, delta: &Delta<ClaimView>) -> Vec<Key> {
    let (old, new) = (delta.old.as_deref(), delta.new.as_deref());
    let content = |claim: &ClaimView| (claim.meta().uid.clone(), claim.claim.volume.clone());
    if old.map(content) == new.map(content) {
        return Vec::new();
    }
    let Some(claim) = new.or(old) else {
        return Vec::new();
    };
    let tag = reserved_for(&claim.meta().key);
    let reserved = volumes.tagged(&tag);
    let named = new.filter(|claim| !claim.claim.volume.is_empty());
    let named = named.map(|claim| Key::new("", &claim.claim.volume));
    let reserved = reserved.iter().map(|volume| volume.meta().key.clone());
    reserved.chain(named).collect()
}

/// Returns the volumes that are being deleted and whose node is gone now.
fn abandoned(volumes: &Reader<VolumeView>, delta: &Delta<NodeView>) -> Vec<Key> {
    let (Some(node), None) = (&delta.old, &delta.new) else {
        return Vec::new();
    };
    let mut volumes = volumes.list();
    volumes.retain(|volume| {
        let meta = volume.meta();
        meta.deleting && meta.annotation(NODE) == Some(&node.meta.key.name)
    });
    volumes
        .iter()
        .map(|volume| volume.meta().key.clone())
        .collect()
}

impl Volumes {
    fn claim(&self, view: &VolumeView) -> ClaimState {
        let volume = &view.volume;
        let Some(reserved) = &volume.claim else {
            return ClaimState::None;
        };
        if reserved.uid.is_empty() {
            return ClaimState::Named;
        }
        let claim = self.claims.get(&reserved.key);
        match claim.filter(|claim| claim.meta().uid == reserved.uid) {
            None => ClaimState::Gone,
            Some(claim) if claim.claim.volume.is_empty() => ClaimState::Unbound,
            Some(claim) if claim.claim.volume == volume.name() => ClaimState::Bound,
            Some(_) => ClaimState::BoundElsewhere,
        }
    }

    fn missing_node(&self, view: &VolumeView) -> Option<String> {
        let volume = &view.volume;
        let node = volume.meta.annotation(NODE);
        let node = node.filter(|_| volume.has_finalizer(LOCAL_PATH))?;
        let exists = self.nodes.get(&Key::new("", node)).is_some();
        (!exists).then(|| node.to_owned())
    }
}

impl Reconciler for Volumes {
    type Object = PersistentVolume;
    type World = World;
    type Action = Action;

    fn observe(&self, key: &Key, _: Inputs) -> Option<World> {
        let volume = self.volumes.get(key)?;
        Some(World {
            claim: self.claim(&volume),
            missing_node: self.missing_node(&volume),
            volume,
        })
    }

    fn meta(world: &World) -> &Meta {
        world.volume.meta()
    }

    fn plan(world: &World) -> Plan<Action> {
        plan(world)
    }

    async fn act(
        &self,
        client: &Client,
        world: &World,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        act::act(client, &world.volume, action).await
    }

    fn record(&self, world: &World, action: &Action, result: &Result<Receipt, ApiError>) {
        if let (Action::Delete { .. }, Err(error)) = (action, result)
            && setpoint_controller::events::is_reported(error)
        {
            let about = reference::<PersistentVolume>(world.volume.meta());
            self.events
                .warning(&about, "VolumeFailedDelete", error.message.clone());
        }
    }

    fn status(world: &World, outcome: &Outcome<Action>) -> Option<PersistentVolumeStatus> {
        status(world, outcome)
    }

    async fn update_status(
        &self,
        client: &Client,
        world: &World,
        status: PersistentVolumeStatus,
    ) -> Result<Receipt, ApiError> {
        let view = &world.volume;
        if let ("Released", Some(claim)) = (&*status.phase, &view.volume.claim) {
            act::ensure_unclaimed(client, view, &claim.key).await?;
        }
        let notice = notice(world, &status);
        let written = client.update_status_of::<PersistentVolume>(view.meta(), status);
        let receipt = written.await?;
        if let Some(notice) = notice {
            notice.record(&self.events, &reference::<PersistentVolume>(view.meta()));
        }
        Ok(receipt)
    }
}
