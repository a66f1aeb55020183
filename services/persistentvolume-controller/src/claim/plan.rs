//! Plan: protects the claim, binds it, or has a volume provisioned for it.

use std::sync::Arc;

use setpoint_controller::Plan;
use setpoint_model::volume::LOCAL_PATH;
use setpoint_proto::core::PersistentVolume;

use super::{Binding, World, provision};
use crate::volume::VolumeView;
use crate::{ClassView, Notice};

/// On claims: the provisioner that is to create the volume.
pub(super) const PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";

/// One write, or an Event.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Add the finalizer that keeps it while Pods use it.
    Protect,
    /// Remove that finalizer. No Pod with a node may use the claim.
    Unprotect,
    /// Set the class, which the claim was created without.
    SetClass(String),
    /// Reserve a volume for the claim, which must still exist.
    BindVolume(Arc<VolumeView>),
    /// Name the volume in the claim, and note that the binding is complete.
    BindClaim(Arc<VolumeView>),
    /// Note which provisioner is to create the volume.
    SetProvisioner(String),
    /// Create a volume that is reserved for the claim.
    Provision(Box<PersistentVolume>),
    /// Have the scheduler select another node.
    ForgetNode(Notice),
    /// Tell the user what the claim waits for.
    Report(Notice),
}

/// Plans for one claim. Writes of the claim itself are planned one at a time.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    let (view, claim) = (&world.claim, &world.claim.claim);
    let deleting = claim.meta.deleting;
    if deleting && view.is_protected() && !world.is_used() {
        plan.step(
            Action::Unprotect,
            "it is being deleted, and no Pod with a node uses it",
        );
        return plan;
    }
    if !deleting && !view.is_protected() {
        plan.step(Action::Protect, "Pods may use it");
        return plan;
    }
    match Binding::of(world) {
        Binding::Chosen(volume) => bind(&mut plan, world, volume),
        Binding::Open if !deleting => wait(&mut plan, world),
        Binding::Blocked(notice) if !deleting => {
            plan.step(
                Action::Report(notice),
                "it names a volume that it cannot have",
            );
        }
        Binding::Complete(_) if claim.phase == "Bound" && claim.size > claim.capacity => {
            let message = "Ignoring the PVC: didn't find a plugin capable of expanding the volume; waiting for an external \
                           controller to process this PVC.";
            let notice = Notice::normal("ExternalExpanding", message);
            plan.step(
                Action::Report(notice),
                "it asks for more than its volume has",
            );
        }
        _ => {}
    }
    plan
}

/// Plans the first of the two writes of a binding that is missing.
fn bind(plan: &mut Plan<Action>, world: &World, volume: Arc<VolumeView>) {
    match volume.volume.is_bound_to(&world.claim.claim) {
        false => plan.step(Action::BindVolume(volume), "the volume fits the claim"),
        true => plan.step(
            Action::BindClaim(volume),
            "the volume is reserved for the claim",
        ),
    }
}

/// Plans for a claim without a volume.
fn wait(plan: &mut Plan<Action>, world: &World) {
    let claim = &world.claim.claim;
    if claim.class.is_none()
        && let Some(class) = &world.default_class
    {
        let because = "it has no class, and there is a default";
        return plan.step(Action::SetClass(class.clone()), because);
    }
    if world.waits_for_pod() {
        return plan.step(Action::Report(delayed(world)), "its first Pod has no node");
    }
    let (name, because) = (claim.class(), "no volume fits");
    let notice = match &world.class {
        _ if name.is_empty() => Notice::normal(
            "FailedBinding",
            "no persistent volumes available for this claim and no storage class is set",
        ),
        None => {
            let message = format!("storageclass.storage.k8s.io {name:?} not found");
            Notice::warning("ProvisioningFailed", message)
        }
        Some(class) => match provisioned(world, class) {
            Ok(action) => return plan.step(action, because),
            Err(notice) => notice,
        },
    };
    plan.step(Action::Report(notice), because);
}

/// Returns the step towards a volume of a class, or why there is none.
fn provisioned(world: &World, class: &ClassView) -> Result<Action, Notice> {
    let provisioner = &*class.provisioner;
    if provisioner.starts_with("kubernetes.io/") {
        let message = format!("no volume plugin matched name: {provisioner}");
        return Err(Notice::warning("ProvisioningFailed", message));
    }
    if world.claim.claim.meta.annotation(PROVISIONER) != Some(provisioner) {
        return Ok(Action::SetProvisioner(provisioner.to_owned()));
    }
    if provisioner == LOCAL_PATH {
        return provision(world, class);
    }
    Err(Notice::normal(
        "ExternalProvisioning",
        format!(
            "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by \
             the system administrator. If volume creation is delayed, please verify that the provisioner is \
             running and correctly registered."
        ),
    ))
}

/// Returns what a claim waits for whose volume depends on its first Pod.
fn delayed(world: &World) -> Notice {
    let waiting = world.pods.iter().filter(|pod| pod.node.is_none());
    let mut names: Vec<_> = waiting.map(|pod| &*pod.meta.key.name).collect();
    names.sort_unstable();
    match names.as_slice() {
        [] => Notice::normal(
            "WaitForFirstConsumer",
            "waiting for first consumer to be created before binding",
        ),
        [name] => {
            let message = format!("waiting for pod {name} to be scheduled");
            Notice::normal("WaitForPodScheduled", message)
        }
        names => {
            let message = format!("waiting for pods {} to be scheduled", names.join(","));
            Notice::normal("WaitForPodScheduled", message)
        }
    }
}
