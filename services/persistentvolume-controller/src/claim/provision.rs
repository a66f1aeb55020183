//! The provisioner of volumes that are folders of a node. Pure.

use setpoint_controller::events::reference;
use setpoint_model::names::validate_label_value;
use setpoint_model::volume::{
    BOUND_BY_CONTROLLER, LOCAL_PATH, NODE, PROVISIONED_BY, READ_WRITE_ONCE_POD, VOLUME_PROTECTION,
};
use setpoint_proto::core::{
    HostPathVolumeSource, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
    PersistentVolume, PersistentVolumeClaim, PersistentVolumeSource, PersistentVolumeSpec,
    VolumeNodeAffinity,
};
use setpoint_proto::meta::ObjectMeta;

use super::{Action, World};
use crate::{ClassView, Notice};

/// Returns the volume for a claim, or, if the selected node cannot have it, the wish for another node.
///
/// # Errors
/// A demand of the claim or its class that folders of nodes do not meet.
pub fn provision(world: &World, class: &ClassView) -> Result<Action, Notice> {
    let name = &class.meta.key.name;
    let failed = |problem: &str| {
        let message = format!("failed to provision volume with StorageClass {name:?}: {problem}");
        Notice::warning("ProvisioningFailed", message)
    };
    if let Some(problem) = unsupported(world, class) {
        return Err(failed(&problem));
    }
    let Some(selected) = world.claim.claim.selected_node() else {
        let problem =
            "no node was selected: the class must have the volumeBindingMode WaitForFirstConsumer";
        return Err(failed(problem));
    };
    let Some(node) = &world.node else {
        let problem = format!("error getting selected node: nodes {selected:?} not found");
        return Ok(Action::ForgetNode(failed(&problem)));
    };
    let Some((folder, removes)) = &node.folder else {
        let problem = format!("node {selected:?} has no folder for local volumes");
        return Ok(Action::ForgetNode(failed(&problem)));
    };
    let hostname = node.hostname.as_deref().unwrap_or(selected);
    let volume = volume(world, class, (selected, hostname), folder, *removes);
    Ok(Action::Provision(Box::new(volume)))
}

fn unsupported(world: &World, class: &ClassView) -> Option<String> {
    let claim = &world.claim.claim;
    let known = ["ReadWriteOnce", READ_WRITE_ONCE_POD];
    let mut modes = claim.access_modes.iter();
    if let Some(mode) = modes.find(|mode| !known.contains(&mode.as_str())) {
        return Some(format!(
            "access mode {mode} is not supported: a folder is on one node"
        ));
    }
    if let Some(parameter) = class.parameters.first() {
        return Some(format!("unknown parameter {parameter:?}"));
    }
    let refused = [
        (
            claim.mode == "Block",
            "Block volume provisioning is not supported",
        ),
        (
            claim.selector.is_some(),
            "claim.Spec.Selector is not supported",
        ),
        (claim.has_source, "data sources are not supported"),
        (
            !claim.attributes_class.is_empty(),
            "VolumeAttributesClasses are not supported",
        ),
        (
            !class.mount_options.is_empty(),
            "Mount options are not supported",
        ),
    ];
    let refused = refused.into_iter().find(|(asked, _)| *asked);
    refused.map(|(_, problem)| problem.to_owned())
}

/// Returns the volume. Its name follows from the uid of the claim, so that a repeated create makes no second one.
fn volume(
    world: &World,
    class: &ClassView,
    (node, hostname): (&str, &str),
    folder: &str,
    removes: bool,
) -> PersistentVolume {
    let (view, claim) = (&world.claim, &world.claim.claim);
    let name = format!("pvc-{}", claim.meta.uid);
    let annotations = [
        (PROVISIONED_BY, LOCAL_PATH),
        (BOUND_BY_CONTROLLER, "yes"),
        (NODE, node),
    ];
    let fits = validate_label_value(node).is_empty();
    let label = fits.then(|| (NODE.to_owned(), node.to_owned()));
    let mut finalizers = vec![VOLUME_PROTECTION.to_owned()];
    finalizers.extend(removes.then(|| LOCAL_PATH.to_owned()));
    let host_path = HostPathVolumeSource {
        path: format!("{folder}/{name}"),
        r#type: Some("DirectoryOrCreate".to_owned()),
    };
    PersistentVolume {
        metadata: ObjectMeta {
            name,
            annotations: annotations
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            // The agent of the node watches the volumes with this label.
            labels: label.into_iter().collect(),
            finalizers,
            ..ObjectMeta::default()
        },
        spec: PersistentVolumeSpec {
            capacity: [("storage".to_owned(), view.size.clone())].into(),
            persistent_volume_source: PersistentVolumeSource {
                host_path: Some(host_path),
                ..PersistentVolumeSource::default()
            },
            access_modes: claim.access_modes.clone(),
            claim_ref: Some(reference::<PersistentVolumeClaim>(&claim.meta)),
            persistent_volume_reclaim_policy: class.reclaim_policy.clone(),
            storage_class_name: class.meta.key.name.clone(),
            volume_mode: Some(claim.mode.clone()),
            node_affinity: Some(on(hostname)),
            ..PersistentVolumeSpec::default()
        },
        ..PersistentVolume::default()
    }
}

fn on(hostname: &str) -> VolumeNodeAffinity {
    let here = NodeSelectorRequirement {
        key: "kubernetes.io/hostname".to_owned(),
        operator: "In".to_owned(),
        values: vec![hostname.to_owned()],
    };
    let term = NodeSelectorTerm {
        match_expressions: vec![here],
        ..NodeSelectorTerm::default()
    };
    VolumeNodeAffinity {
        required: Some(NodeSelector {
            node_selector_terms: vec![term],
        }),
    }
}
