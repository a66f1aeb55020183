//! Pods and claims of an ordinal, and repairs of their identity and storage.
#![warn(clippy::arithmetic_side_effects)]

use setpoint_model::labels::Lookup as _;
use setpoint_proto::apps::StatefulSet;
use setpoint_proto::core::{
    PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, Volume, VolumeSource,
};
use setpoint_proto::{ApiError, Reason};
use setpoint_workload::PodView;
use setpoint_workload::history::HASH_LABEL;

use crate::claim::Owners;
use crate::{StatefulSetView, World};

const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// Returns the Pod of an ordinal, made from the template of a revision.
///
/// # Errors
/// If the revision is gone or has no template.
pub fn new_pod(world: &World, ordinal: i64, revision: &str) -> Result<Pod, ApiError> {
    let set = &world.set;
    let stored = world.history().get(revision);
    let template = stored.and_then(|revision| revision.data.template());
    let template = template.ok_or_else(|| {
        let message = format!("controller revision {revision} has no Pod template");
        ApiError::new(Reason::InternalError, message)
    })?;
    let name = set.pod_name(ordinal);
    let mut pod = setpoint_workload::new_pod::<StatefulSet>(&set.meta, &template, &name);
    pod.metadata.generate_name = format!("{}-", set.meta.key.name);
    let labels = &mut pod.metadata.labels;
    labels.insert(HASH_LABEL.to_owned(), revision.to_owned());
    (pod.spec.hostname, pod.spec.subdomain) = (name, set.service.clone());
    repair(set, &mut pod, ordinal);
    Ok(pod)
}

/// Sets the labels and volumes that make a Pod the one of its ordinal. Its name and host name do not change.
pub fn repair(set: &StatefulSetView, pod: &mut Pod, ordinal: i64) {
    set_identity(pod, ordinal);
    if !has_storage(set, &PodView::claims_of(&pod.spec), ordinal) {
        set_storage(set, pod, ordinal);
    }
}

/// Returns whether a Pod has the identity and the storage of its ordinal.
pub(crate) fn is_intact(set: &StatefulSetView, pod: &PodView, ordinal: i64) -> bool {
    pod.labels.value(POD_NAME) == Some(&pod.meta.key.name) && has_storage(set, &pod.claims, ordinal)
}

fn has_storage(set: &StatefulSetView, claims: &[(Box<str>, Box<str>)], ordinal: i64) -> bool {
    set.claim_templates.iter().all(|template| {
        let name = set.claim_name(template, ordinal);
        let mut claims = claims.iter();
        claims.any(|(volume, claim)| **volume == template.metadata.name && **claim == name)
    })
}

fn set_identity(pod: &mut Pod, ordinal: i64) {
    let labels = &mut pod.metadata.labels;
    labels.insert(POD_NAME.to_owned(), pod.metadata.name.clone());
    labels.insert(POD_INDEX.to_owned(), ordinal.to_string());
}

/// Replaces the volumes of the names of claim templates by the claims of the ordinal.
fn set_storage(set: &StatefulSetView, pod: &mut Pod, ordinal: i64) {
    let is_claim = |volume: &Volume| {
        let mut templates = set.claim_templates.iter();
        templates.any(|template| template.metadata.name == volume.name)
    };
    pod.spec.volumes.retain(|volume| !is_claim(volume));
    let claims = set.claim_templates.iter().map(|template| Volume {
        name: template.metadata.name.clone(),
        volume_source: VolumeSource {
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: set.claim_name(template, ordinal),
                ..Default::default()
            }),
            ..Default::default()
        },
    });
    pod.spec.volumes.splice(..0, claims);
}

/// Returns the claim with this name for an ordinal, with the labels that the set's selector requires; `None` if no
/// template has this name.
pub fn new_claim(set: &StatefulSetView, name: &str, ordinal: i64) -> Option<PersistentVolumeClaim> {
    let mut templates = set.claim_templates.iter();
    let template = templates.find(|template| set.claim_name(template, ordinal) == name);
    let mut claim = template?.clone();
    claim.metadata.name = name.to_owned();
    claim.metadata.namespace.clone_from(&set.meta.key.namespace);
    claim.metadata.labels.extend(set.match_labels.clone());
    let owner = Owners::new(set, ordinal, None).wanted();
    claim.metadata.owner_references.extend(owner);
    Some(claim)
}
