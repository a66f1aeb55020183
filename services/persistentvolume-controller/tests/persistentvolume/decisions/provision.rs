//! The provisioner of volumes that are folders of a node.

use std::sync::Arc;

use setpoint_persistentvolume_controller::claim::{self, provision};
use setpoint_persistentvolume_controller::{NodeView, Notice};
use setpoint_proto::core::{PersistentVolume, PersistentVolumeClaim, TypedLocalObjectReference};
use setpoint_proto::storage::StorageClass;

use crate::decisions::fixture::{
    LOCAL_PATH, PROVISIONED_BY, SELECTED_NODE, claim, claim_world, class, node, storage,
};

fn provisioned(world: &claim::World) -> Result<claim::Action, Notice> {
    provision(world, world.class.as_ref().unwrap())
}

fn failed(problem: &str) -> Notice {
    let message = format!("failed to provision volume with StorageClass \"standard\": {problem}");
    Notice::warning("ProvisioningFailed", message)
}

#[test]
fn what_a_folder_does_not_have_is_refused_with_the_reason() {
    type Change = fn(&mut PersistentVolumeClaim, &mut StorageClass);
    let cases: [(Change, &str); 9] = [
        (
            |claim, _| claim.spec.access_modes.push("ReadWriteMany".into()),
            "access mode ReadWriteMany is not supported: a folder is on one node",
        ),
        (
            |_, class| _ = class.parameters.insert("type".into(), "fast".into()),
            "unknown parameter \"type\"",
        ),
        (
            |claim, _| claim.spec.volume_mode = Some("Block".into()),
            "Block volume provisioning is not supported",
        ),
        (
            |claim, _| claim.spec.selector = Some(Default::default()),
            "claim.Spec.Selector is not supported",
        ),
        (
            |claim, _| claim.spec.data_source = Some(TypedLocalObjectReference::default()),
            "data sources are not supported",
        ),
        (
            |claim, _| claim.spec.volume_attributes_class_name = Some("gold".into()),
            "VolumeAttributesClasses are not supported",
        ),
        (
            |_, class| class.mount_options.push("ro".into()),
            "Mount options are not supported",
        ),
        (
            |claim, _| claim.metadata.annotations.clear(),
            "no node was selected: the class must have the volumeBindingMode WaitForFirstConsumer",
        ),
        (
            |claim, _| {
                _ = claim
                    .metadata
                    .annotations
                    .insert(SELECTED_NODE.into(), String::new())
            },
            "no node was selected: the class must have the volumeBindingMode WaitForFirstConsumer",
        ),
    ];
    for (change, problem) in cases {
        let (mut claim, mut class) = (claim(), class());
        change(&mut claim, &mut class);
        let refused = provisioned(&claim_world(claim, class));
        assert_eq!(refused, Err(failed(problem)));
    }
}

#[test]
fn a_node_without_a_folder_is_forgotten() {
    let mut world = claim_world(claim(), class());
    let mut bare = node();
    bare.folder = None;
    for (node, problem) in [
        (None, "error getting selected node: nodes \"one\" not found"),
        (Some(bare), "node \"one\" has no folder for local volumes"),
    ] {
        world.node = node.map(Arc::new);
        let forgotten = claim::Action::ForgetNode(failed(problem));
        assert_eq!(provisioned(&world), Ok(forgotten));
    }
}

#[test]
fn a_provisioned_volume_is_a_folder_of_the_node_that_is_reserved_for_the_claim() {
    let mut wanted = claim();
    wanted.spec.access_modes = vec!["ReadWriteOncePod".into()];
    let mut world = claim_world(wanted, class());
    for (hostname, removes, finalizers) in [
        (
            Some("host-one"),
            true,
            &["kubernetes.io/pv-protection", LOCAL_PATH][..],
        ),
        (None, false, &["kubernetes.io/pv-protection"]),
    ] {
        world.node = Some(Arc::new(NodeView {
            hostname: hostname.map(str::to_owned),
            folder: Some(("/volumes".into(), removes)),
            ..node()
        }));
        let Ok(claim::Action::Provision(volume)) = provisioned(&world) else {
            panic!("a volume");
        };
        let PersistentVolume { metadata, spec, .. } = *volume;
        assert_eq!(metadata.name, "pvc-uid-data");
        assert_eq!(metadata.finalizers, finalizers);
        let annotations = [
            ("pv.kubernetes.io/bound-by-controller", "yes"),
            (PROVISIONED_BY, LOCAL_PATH),
            ("setpoint.dev/node", "one"),
        ];
        let annotations = annotations.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(metadata.annotations, annotations.into());
        let folder = spec.persistent_volume_source.host_path.unwrap();
        assert_eq!(folder.path, "/volumes/pvc-uid-data");
        assert_eq!(folder.r#type.as_deref(), Some("DirectoryOrCreate"));
        assert_eq!(spec.capacity, storage("1Gi"));
        assert_eq!(spec.access_modes, ["ReadWriteOncePod"]);
        assert_eq!(spec.claim_ref.unwrap().uid, "uid-data");
        assert_eq!(spec.persistent_volume_reclaim_policy, "Retain");
        assert_eq!(spec.storage_class_name, "standard");
        assert_eq!(spec.volume_mode.as_deref(), Some("Filesystem"));
        let required = spec.node_affinity.unwrap().required.unwrap();
        let [term] = &required.node_selector_terms[..] else {
            panic!("one term");
        };
        let [here] = &term.match_expressions[..] else {
            panic!("one requirement");
        };
        assert_eq!(
            (&*here.key, &*here.operator),
            ("kubernetes.io/hostname", "In")
        );
        assert_eq!(here.values, [hostname.unwrap_or("one")]);
    }
}
