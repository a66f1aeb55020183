//! The controller: its informers, and its implementation of [`Reconciler`].

use std::sync::Arc;

use setpoint_controller::events::{is_reported, reference};
use setpoint_controller::{
    Client, Delta, Hosted, Inputs, ObjectRef, Outcome, Plan, Reader, Receipt, Reconciler, Recorder,
    Replica, View as _, runtime,
};
use setpoint_model::volume::{LOCAL_PATH, reserved_for};
use setpoint_model::{Key, Meta};
use setpoint_proto::core::{PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus};
use setpoint_proto::{ApiError, Resource as _};
use setpoint_workload::PodView;

use super::view::UNBOUND;
use super::{Action, ClaimView, World, act, notice, plan, status};
use crate::volume::VolumeView;
use crate::{ClassView, NodeView, Notice};

/// The reconciler of PersistentVolumeClaims.
pub struct Claims {
    /// The claims.
    pub claims: Reader<ClaimView>,
    /// The volumes.
    pub volumes: Reader<VolumeView>,
    /// The StorageClasses.
    pub classes: Reader<ClassView>,
    /// The nodes.
    pub nodes: Reader<NodeView>,
    /// The Pods.
    pub pods: Reader<PodView>,
    /// The recorder of Events.
    pub events: Recorder,
}

/// The controller, for processes that host it.
pub const CONTROLLER: Hosted = Hosted {
    name: "persistentvolumeclaim-controller",
    resource: PersistentVolumeClaim::RESOURCE,
    run: |replica, settings, ()| Box::pin(run(replica, settings)),
};

async fn run(replica: Replica, settings: runtime::Settings) -> anyhow::Result<()> {
    let reconciler = Claims {
        claims: replica.reader(),
        volumes: replica.reader(),
        classes: replica.reader(),
        nodes: replica.reader(),
        pods: replica.reader(),
        events: replica.events.clone(),
    };
    let controller = replica
        .controller(reconciler)
        .for_(replica.informer::<ClaimView>())
        .depends_on(replica.informer(), replica.with_reader(of_changed_volume))
        .depends_on(replica.informer(), replica.with_reader(of_changed_class))
        .depends_on(replica.informer(), replica.with_reader(of_changed_node))
        .depends_on(replica.informer(), of_changed_pod);
    replica.run(controller, settings).await
}

fn keys(claims: &[Arc<ClaimView>]) -> Vec<Key> {
    claims
        .iter()
        .map(|claim| claim.meta().key.clone())
        .collect()
}

/// Returns the claims that a volume is or was reserved for, and those that it may fit.
fn of_changed_volume(claims: &Reader<ClaimView>, delta: &Delta<VolumeView>) -> Vec<Key> {
    let mut woken = Vec::new();
    for view in delta.old.iter().chain(&delta.new) {
        let reserved = view.volume.claim.as_ref();
        woken.extend(reserved.map(|claim| claim.key.clone()));
    }
    if let Some(view) = &delta.new {
        let volume = &view.volume;
        let mut unbound = claims.tagged(UNBOUND);
        unbound.retain(|view| {
            let claim = &view.claim;
            let open = claim.volume.is_empty() && claim.class() == volume.class;
            claim.volume == volume.name() || (open && volume.claim.is_none())
        });
        woken.extend(keys(&unbound));
    }
    woken.sort_unstable();
    woken.dedup();
    woken
}

/// Returns the claims of a class that wait, and those without a class.
fn of_changed_class(claims: &Reader<ClaimView>, delta: &Delta<ClassView>) -> Vec<Key> {
    let Some(class) = &delta.new else {
        return Vec::new();
    };
    let mut unbound = claims.tagged(UNBOUND);
    unbound.retain(|view| {
        let name = view.claim.class.as_ref();
        name.is_none_or(|name| *name == class.meta.key.name)
    });
    keys(&unbound)
}

/// Returns the claims that wait for a volume on a node that has appeared or gone, or has got another folder.
fn of_changed_node(claims: &Reader<ClaimView>, delta: &Delta<NodeView>) -> Vec<Key> {
    let folder = |node: &Arc<NodeView>| node.folder.clone();
    let (old, new) = (delta.old.as_ref(), delta.new.as_ref());
    if old.map(folder) == new.map(folder) {
        return Vec::new();
    }
    let Some(node) = new.or(old) else {
        return Vec::new();
    };
    let mut unbound = claims.tagged(UNBOUND);
    unbound.retain(|view| view.claim.selected_node() == Some(&node.meta.key.name));
    keys(&unbound)
}

/// Returns the claims of a Pod that has appeared, gone, or got a node.
fn of_changed_pod(delta: &Delta<PodView>) -> Vec<Key> {
    let (old, new) = (delta.old.as_deref(), delta.new.as_deref());
    let content = |pod: &PodView| (pod.meta.uid.clone(), pod.node.is_some());
    if old.map(content) == new.map(content) {
        return Vec::new();
    }
    let claims = |pod: &PodView| {
        let namespace = pod.meta.key.namespace.clone();
        let claims = pod.claims.iter();
        let keys: Vec<_> = claims
            .map(|(_, claim)| Key::new(&namespace, &**claim))
            .collect();
        keys
    };
    let mut woken: Vec<_> = old.into_iter().chain(new).flat_map(claims).collect();
    woken.sort_unstable();
    woken.dedup();
    woken
}

impl Claims {
    fn candidates(&self, view: &ClaimView) -> Vec<Arc<VolumeView>> {
        let claim = &view.claim;
        if claim.is_bound() {
            return Vec::new();
        }
        let mut volumes = self.volumes.tagged(&reserved_for(&claim.meta.key));
        volumes.extend(self.volumes.tagged(claim.class()));
        volumes
    }

    /// Returns the default class; of several, the newest one.
    fn default_class(&self, view: &ClaimView) -> Option<String> {
        if view.claim.class.is_some() {
            return None;
        }
        let mut defaults = self.classes.list();
        defaults.retain(|class| class.is_default);
        let newest = defaults.into_iter().min_by_key(|class| {
            let meta = &class.meta;
            (std::cmp::Reverse(meta.created), meta.key.name.clone())
        });
        newest.map(|class| class.meta.key.name.clone())
    }

    fn pods(&self, claim: &Key) -> Vec<Arc<PodView>> {
        let mut pods = self.pods.in_namespace(&claim.namespace);
        pods.retain(|pod| pod.claims.iter().any(|(_, name)| **name == *claim.name));
        pods
    }

    fn tell(&self, world: &World, notice: &Notice) {
        let about = reference::<PersistentVolumeClaim>(world.claim.meta());
        notice.record(&self.events, &about);
    }
}

impl Reconciler for Claims {
    type Object = PersistentVolumeClaim;
    type World = World;
    type Action = Action;

    fn observe(&self, key: &Key, _: Inputs) -> Option<World> {
        let view = self.claims.get(key)?;
        let claim = &view.claim;
        let by_name = |name: &str| Key::new("", name);
        let needs_pods = claim.meta.deleting || !claim.is_bound();
        Some(World {
            named: self.volumes.get(&by_name(&claim.volume)),
            volumes: self.candidates(&view),
            class: self.classes.get(&by_name(claim.class())),
            default_class: self.default_class(&view),
            node: claim
                .selected_node()
                .and_then(|node| self.nodes.get(&by_name(node))),
            pods: match needs_pods {
                true => self.pods(key),
                false => Vec::new(),
            },
            claim: view,
        })
    }

    fn meta(world: &World) -> &Meta {
        world.claim.meta()
    }

    fn plan(world: &World) -> Plan<Action> {
        plan(world)
    }

    fn touches(_: &World, action: &Action) -> Option<ObjectRef> {
        let volume = |key: Key| key.in_resource(PersistentVolume::RESOURCE);
        match action {
            Action::BindVolume(view) => Some(volume(view.meta().key.clone())),
            Action::Provision(object) => Some(volume(Key::of(&object.metadata))),
            _ => None,
        }
    }

    async fn act(
        &self,
        client: &Client,
        world: &World,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        act::act(client, &world.claim, action).await
    }

    fn record(&self, world: &World, action: &Action, result: &Result<Receipt, ApiError>) {
        match (action, result) {
            (Action::Report(notice) | Action::ForgetNode(notice), Ok(_)) => {
                self.tell(world, notice)
            }
            (Action::Provision(volume), Ok(_)) => {
                let name = &volume.metadata.name;
                let message = format!("Successfully provisioned volume {name} using {LOCAL_PATH}");
                self.tell(world, &Notice::normal("ProvisioningSucceeded", message));
            }
            (Action::Provision(_), Err(error)) if is_reported(error) => {
                let message = format!("failed to create volume: {}", error.message);
                self.tell(world, &Notice::warning("ProvisioningFailed", message));
            }
            _ => {}
        }
    }

    fn status(world: &World, outcome: &Outcome<Action>) -> Option<PersistentVolumeClaimStatus> {
        status(world, outcome)
    }

    async fn update_status(
        &self,
        client: &Client,
        world: &World,
        status: PersistentVolumeClaimStatus,
    ) -> Result<Receipt, ApiError> {
        let meta = world.claim.meta();
        let notice = notice(world, &status);
        let written = client.update_status_of::<PersistentVolumeClaim>(meta, status);
        let receipt = written.await?;
        if let Some(notice) = notice {
            self.tell(world, &notice);
        }
        Ok(receipt)
    }
}
