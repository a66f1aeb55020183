//! Removes the directories of this node's own PersistentVolumes that are being deleted.
//!
//! ```text
//! deletion timestamp, and our finalizer is the last that protects it ─▶ no Pod uses it ─▶ directory ─▶ finalizer
//! ```
//! The volume and its claim are read again before anything is removed, because caches may lag behind a claim that was
//! bound anew.

mod act;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use setpoint_controller::client::ListOptions;
use setpoint_controller::{
    Client, Controller, Inputs, Plan, Reader, Receipt, Reconciler, Recorder, Replica, View,
};
use setpoint_model::volume::NODE;
use setpoint_model::{Key, Meta};
use setpoint_proto::ApiError;
use setpoint_proto::core::{PersistentVolume, Pod};
use setpoint_runtime::{Runtime, Sandbox};

use crate::node::Pods;

/// The finalizer of volumes whose directory a node removes.
pub const FINALIZER: &str = "setpoint.dev/local-path";
/// The finalizer of volumes that a claim may still use.
const PROTECTION: &str = "kubernetes.io/pv-protection";
/// The interval in which a volume is looked at that a Pod still uses.
const RECHECK: Duration = Duration::from_secs(5);

/// The cached form of a PersistentVolume.
pub struct VolumeView {
    meta: Meta,
    /// Name of the node that keeps it; empty if none does.
    node: String,
    /// Whether only its node keeps it from being deleted.
    due: bool,
    /// Namespace and name of its claim.
    claim: Key,
}

impl View for VolumeView {
    type Object = PersistentVolume;

    fn of(volume: PersistentVolume) -> Self {
        let node = volume.metadata.annotations.get(NODE);
        let claim = volume.spec.claim_ref.as_ref();
        Self {
            node: node.cloned().unwrap_or_default(),
            due: is_due(&volume),
            claim: claim.map_or_else(Key::default, |claim| {
                Key::new(&claim.namespace, &claim.name)
            }),
            meta: Meta::of(&volume.metadata),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

/// Returns whether a volume is being deleted and only waits for its node.
fn is_due(volume: &PersistentVolume) -> bool {
    let meta = &volume.metadata;
    let has = |finalizer: &str| meta.finalizers.iter().any(|one| one == finalizer);
    meta.deletion_timestamp.is_some() && has(FINALIZER) && !has(PROTECTION)
}

/// The reconciler of this node's volumes.
pub struct Volumes<R> {
    pods: Arc<Pods<R>>,
    volumes: Reader<VolumeView>,
    events: Recorder,
    /// The directory of the volumes.
    folder: PathBuf,
}

/// The observation of a volume.
pub struct World {
    volume: Arc<VolumeView>,
    /// Whether a Pod of this node may still use it.
    in_use: bool,
}

/// The only action.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Remove the directory, then the finalizer.
    Remove,
}

/// Returns the controller that removes volumes of `node` below `folder`. The node may watch these alone.
pub fn controller<R: Runtime>(
    replica: &Replica,
    pods: &Arc<Pods<R>>,
    node: &str,
    folder: PathBuf,
) -> Controller<Volumes<R>> {
    let volumes = replica.client.informer::<VolumeView>().only(ListOptions {
        labels: format!("{NODE}={node}"),
        ..ListOptions::default()
    });
    let ours = Arc::clone(pods);
    let reconciler = Volumes {
        pods: Arc::clone(pods),
        volumes: volumes.reader(),
        events: replica.events.clone(),
        folder,
    };
    Controller::new("local-volumes", reconciler, replica.client.clone())
        .for_those(
            volumes,
            move |volume| volume.due && ours.nodes.contains_key(&volume.node),
            |_| true,
        )
        .unelected()
}

impl<R: Runtime> Reconciler for Volumes<R> {
    type Object = PersistentVolume;
    type World = World;
    type Action = Action;

    fn observe(&self, key: &Key, _: Inputs) -> Option<World> {
        let volume = self.volumes.get(key)?;
        let ours = volume.due && self.pods.nodes.contains_key(&volume.node);
        ours.then(|| World {
            in_use: in_use(&self.pods, &volume.claim),
            volume,
        })
    }

    fn meta(world: &World) -> &Meta {
        &world.volume.meta
    }

    fn plan(world: &World) -> Plan<Action> {
        let mut plan = Plan::default();
        match world.in_use {
            true => plan.look_again(RECHECK),
            false => plan.step(Action::Remove, "the volume is being deleted and unused"),
        }
        plan
    }

    async fn act(&self, client: &Client, world: &World, _: &Action) -> Result<Receipt, ApiError> {
        act::remove(client, &self.events, &self.folder, &world.volume.meta).await
    }
}

/// Returns whether a sandbox may use a claim: its Pod does, or is unknown.
fn in_use<R: Runtime>(pods: &Pods<R>, claim: &Key) -> bool {
    let unknown = |key: Key| pods.get(&key).is_none();
    if pods.runtime.pods().into_iter().any(unknown) {
        return true;
    }
    pods.all().any(|view| {
        let pod = view.pod();
        let sandboxes = pods.runtime.sandboxes(&view.meta().key);
        let is_other = |other: &Sandbox| other.config.uid != pod.metadata.uid;
        !sandboxes.is_empty() && uses(&pod, claim) || sandboxes.iter().any(is_other)
    })
}

fn uses(pod: &Pod, claim: &Key) -> bool {
    let named = |name: &str| pod.metadata.namespace == claim.namespace && name == claim.name;
    let mut volumes = pod.spec.volumes.iter();
    volumes.any(|volume| {
        let source = &volume.volume_source;
        let claimed = source.persistent_volume_claim.as_ref();
        let made = format!("{}-{}", pod.metadata.name, volume.name);
        claimed.is_some_and(|claimed| named(&claimed.claim_name))
            || source.ephemeral.is_some() && named(&made)
    })
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::{PersistentVolumeClaimVolumeSource, Volume};

    use super::*;

    #[test]
    fn a_volume_waits_for_its_node_once_nobody_else_protects_it() {
        let mut volume = PersistentVolume::default();
        volume.metadata.finalizers = vec![FINALIZER.into()];
        assert!(!is_due(&volume), "it is not being deleted");
        volume.metadata.deletion_timestamp = Some(jiff::Timestamp::UNIX_EPOCH.into());
        assert!(is_due(&volume));
        volume.metadata.finalizers.push(PROTECTION.into());
        assert!(!is_due(&volume));
        volume.metadata.finalizers = vec!["example.com/other".into()];
        assert!(!is_due(&volume), "it is not ours");
    }

    #[test]
    fn a_pod_uses_the_claims_of_its_own_namespace_and_those_made_for_it() {
        let mut pod = Pod::default();
        (pod.metadata.namespace, pod.metadata.name) = ("a".into(), "web".into());
        let mut claimed = Volume::default();
        claimed.volume_source.persistent_volume_claim = Some(PersistentVolumeClaimVolumeSource {
            claim_name: "data".into(),
            ..PersistentVolumeClaimVolumeSource::default()
        });
        let mut own = Volume {
            name: "scratch".into(),
            ..Volume::default()
        };
        own.volume_source.ephemeral = Some(Default::default());
        pod.spec.volumes = vec![claimed, own];
        let uses = |namespace, name| super::uses(&pod, &Key::new(namespace, name));
        assert!(uses("a", "data") && uses("a", "web-scratch"));
        assert!(!uses("b", "data") && !uses("a", "scratch") && !uses("a", "web-data"));
    }
}
