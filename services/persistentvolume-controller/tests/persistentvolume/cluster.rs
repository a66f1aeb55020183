//! Tests of both controllers against a gateway in this process.

mod fixture;

use fixture::{Fixture, claim, class, hold, node, on_node, pod, volume};
use setpoint_model::Key;
use setpoint_proto::Reason;
use setpoint_proto::core::{
    CsiPersistentVolumeSource, Node, ObjectReference, PersistentVolume, PersistentVolumeClaim,
    PersistentVolumeSource, Pod,
};
use setpoint_proto::meta::Quantity;

const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const LOCAL_PATH: &str = "setpoint.dev/local-path";

#[tokio::test]
async fn a_claim_and_the_smallest_volume_that_fits_are_bound_to_each_other() {
    let fixture = Fixture::start().await;
    for (name, size) in [("large", "5Gi"), ("fitting", "2Gi"), ("small", "1Gi")] {
        fixture.create(&volume(name, size)).await;
    }
    fixture.create(&claim("data", "2Gi")).await;
    fixture.settle().await;
    let bound: PersistentVolumeClaim = fixture.get("data").await;
    assert_eq!(bound.spec.volume_name, "fitting");
    assert_eq!(bound.status.phase, "Bound");
    assert_eq!(bound.status.capacity["storage"].string, "2Gi");
    assert_eq!(bound.status.access_modes, ["ReadWriteOnce"]);
    for annotation in [BIND_COMPLETED, BOUND_BY_CONTROLLER] {
        assert_eq!(bound.metadata.annotations[annotation], "yes");
    }
    let volume: PersistentVolume = fixture.get("fitting").await;
    let reserved = volume.spec.claim_ref.unwrap();
    assert_eq!(reserved.uid, bound.metadata.uid);
    assert_eq!(volume.status.phase, "Bound");
    assert_eq!(volume.metadata.annotations[BOUND_BY_CONTROLLER], "yes");
    for other in ["large", "small"] {
        let other: PersistentVolume = fixture.get(other).await;
        assert_eq!(
            (&*other.status.phase, other.spec.claim_ref),
            ("Available", None)
        );
    }
    assert_eq!(fixture.settle().await, 0, "nothing is left to do");
}

/// As upstream, the class of the volume is taken over when it is bound, and later only by who changes it.
#[tokio::test]
async fn a_bound_claim_has_the_attributes_class_of_its_volume() {
    let fixture = Fixture::start().await;
    let mut disk = volume("disk", "1Gi");
    disk.spec.volume_attributes_class_name = Some("gold".into());
    disk.spec.persistent_volume_source = PersistentVolumeSource {
        csi: Some(CsiPersistentVolumeSource {
            driver: "fake.csi.k8s.io".into(),
            volume_handle: "volume-handle".into(),
            ..Default::default()
        }),
        ..Default::default()
    };
    fixture.create(&disk).await;
    let mut data = claim("data", "1Gi");
    data.spec.volume_attributes_class_name = Some("gold".into());
    fixture.create(&data).await;
    fixture.settle().await;
    let mut bound: PersistentVolumeClaim = fixture.get("data").await;
    let current = |claim: &PersistentVolumeClaim| {
        let current = &claim.status.current_volume_attributes_class_name;
        current.clone().unwrap_or_default()
    };
    assert_eq!((&*bound.status.phase, &*current(&bound)), ("Bound", "gold"));
    bound.spec.volume_attributes_class_name = Some("silver".into());
    fixture.update(&bound).await;
    fixture.settle().await;
    let bound: PersistentVolumeClaim = fixture.get("data").await;
    assert_eq!((&*bound.status.phase, &*current(&bound)), ("Bound", "gold"));
}

/// A crash after any write of a binding leaves a state from which the next reconcile continues, to the same volume.
#[tokio::test]
async fn a_binding_is_completed_after_a_crash_between_any_two_writes() {
    for writes in 0..8 {
        let fixture = Fixture::start().await;
        fixture.create(&volume("disk", "1Gi")).await;
        fixture.create(&claim("data", "1Gi")).await;
        fixture.crash_after(writes).await;
        // A better volume that has appeared meanwhile takes nothing from the reserved one.
        let partly: PersistentVolume = fixture.get("disk").await;
        fixture.settle().await;
        let bound: PersistentVolumeClaim = fixture.get("data").await;
        let disk: PersistentVolume = fixture.get("disk").await;
        assert_eq!(bound.status.phase, "Bound", "{writes}");
        assert_eq!(disk.status.phase, "Bound", "{writes}");
        assert_eq!(
            disk.spec.claim_ref.as_ref().unwrap().uid,
            bound.metadata.uid
        );
        if let Some(before) = partly.spec.claim_ref {
            assert_eq!(before.uid, bound.metadata.uid);
        }
    }
}

#[tokio::test]
async fn a_volume_that_a_user_reserved_is_bound_to_the_claim_of_this_name() {
    let fixture = Fixture::start().await;
    let mut reserved = volume("reserved", "9Gi");
    reserved.spec.claim_ref = Some(ObjectReference {
        namespace: "shop".into(),
        name: "data".into(),
        ..Default::default()
    });
    fixture.create(&reserved).await;
    fixture.create(&volume("smaller", "1Gi")).await;
    fixture.settle().await;
    let waiting: PersistentVolume = fixture.get("reserved").await;
    assert_eq!(waiting.status.phase, "Available");
    fixture.create(&claim("other", "1Gi")).await;
    fixture.create(&claim("data", "1Gi")).await;
    fixture.settle().await;
    let data: PersistentVolumeClaim = fixture.get("data").await;
    assert_eq!(data.spec.volume_name, "reserved");
    let volume: PersistentVolume = fixture.get("reserved").await;
    assert!(
        !volume
            .metadata
            .annotations
            .contains_key(BOUND_BY_CONTROLLER)
    );
    let other: PersistentVolumeClaim = fixture.get("other").await;
    assert_eq!(other.spec.volume_name, "smaller");
}

#[tokio::test]
async fn a_claim_that_names_its_volume_gets_that_one_or_none() {
    let fixture = Fixture::start().await;
    fixture.create(&volume("disk", "1Gi")).await;
    let naming = |name: &str, size: &str| {
        let mut claim = claim(name, size);
        claim.spec.volume_name = "disk".into();
        claim
    };
    fixture.create(&naming("greedy", "2Gi")).await;
    fixture.settle().await;
    fixture.create(&naming("modest", "1Gi")).await;
    fixture.settle().await;
    fixture.create(&naming("late", "1Gi")).await;
    fixture.settle().await;
    for (name, phase) in [
        ("greedy", "Pending"),
        ("modest", "Bound"),
        ("late", "Pending"),
    ] {
        let claim: PersistentVolumeClaim = fixture.get(name).await;
        assert_eq!(claim.status.phase, phase, "{name}");
    }
    let told = fixture.told();
    let mismatch =
        "VolumeMismatch: Cannot bind to requested volume \"disk\": requested PV is too small";
    assert!(told.contains(&mismatch.to_owned()), "{told:?}");
    let taken = "FailedBinding: volume \"disk\" already bound to a different claim.";
    assert!(told.contains(&taken.to_owned()), "{told:?}");
}

#[tokio::test]
async fn a_retained_volume_stays_released_with_its_data_and_is_given_to_no_other_claim() {
    let fixture = Fixture::start().await;
    fixture.create(&volume("disk", "1Gi")).await;
    fixture.create(&claim("data", "1Gi")).await;
    fixture.settle().await;
    fixture.delete::<PersistentVolumeClaim>("data").await;
    fixture.settle().await;
    fixture.create(&claim("data", "1Gi")).await;
    fixture.settle().await;
    let volume: PersistentVolume = fixture.get("disk").await;
    assert_eq!(volume.status.phase, "Released");
    let second: PersistentVolumeClaim = fixture.get("data").await;
    assert_eq!(second.status.phase, "Pending");
    assert_ne!(volume.spec.claim_ref.unwrap().uid, second.metadata.uid);
}

#[tokio::test]
async fn a_volume_that_cannot_be_reclaimed_has_failed_and_says_why() {
    let fixture = Fixture::start().await;
    for (policy, reason) in [
        ("Recycle", "VolumeFailedRecycle"),
        ("Delete", "VolumeFailedDelete"),
    ] {
        let mut object = volume("disk", "1Gi");
        object.spec.persistent_volume_reclaim_policy = policy.into();
        fixture.create(&object).await;
        fixture.create(&claim("data", "1Gi")).await;
        fixture.settle().await;
        fixture.delete::<PersistentVolumeClaim>("data").await;
        fixture.settle().await;
        let volume: PersistentVolume = fixture.get("disk").await;
        assert_eq!(volume.status.phase, "Failed");
        assert_eq!(volume.status.reason, reason);
        fixture.delete::<PersistentVolume>("disk").await;
        fixture.settle().await;
        assert!(fixture.is_gone::<PersistentVolume>("disk").await);
    }
}

#[tokio::test]
async fn a_bound_claim_whose_volume_is_gone_is_lost() {
    let fixture = Fixture::start().await;
    fixture.create(&volume("disk", "1Gi")).await;
    fixture.create(&claim("data", "1Gi")).await;
    fixture.settle().await;
    let mut disk: PersistentVolume = fixture.get("disk").await;
    disk.metadata.finalizers.clear();
    fixture.update(&disk).await;
    fixture.delete::<PersistentVolume>("disk").await;
    fixture.settle().await;
    let lost: PersistentVolumeClaim = fixture.get("data").await;
    assert_eq!(lost.status.phase, "Lost");
    let told = fixture.told();
    let lost = "ClaimLost: Bound claim has lost its PersistentVolume. Data on the volume is lost!";
    assert_eq!(told.last().unwrap(), lost);
}

#[tokio::test]
async fn a_claim_in_use_and_a_bound_volume_stay_until_nothing_uses_them() {
    let fixture = Fixture::start().await;
    fixture.create(&volume("disk", "1Gi")).await;
    fixture.create(&claim("data", "1Gi")).await;
    fixture.create(&on_node(pod("web", "data"))).await;
    fixture.settle().await;
    fixture.delete::<PersistentVolume>("disk").await;
    fixture.delete::<PersistentVolumeClaim>("data").await;
    fixture.settle().await;
    let claim: PersistentVolumeClaim = fixture.get("data").await;
    assert_eq!(claim.metadata.finalizers, ["kubernetes.io/pvc-protection"]);
    let volume: PersistentVolume = fixture.get("disk").await;
    assert_eq!(volume.status.phase, "Bound");
    assert_eq!(volume.metadata.finalizers, ["kubernetes.io/pv-protection"]);
    fixture.delete_now::<Pod>("web").await;
    fixture.settle().await;
    assert!(fixture.is_gone::<PersistentVolumeClaim>("data").await);
    assert!(fixture.is_gone::<PersistentVolume>("disk").await);
}

/// The cache does not have the Pod yet that uses the claim.
#[tokio::test]
async fn a_claim_stays_if_a_pod_uses_it_that_no_cache_has() {
    let fixture = Fixture::start().await;
    fixture.create(&claim("data", "1Gi")).await;
    fixture.settle().await;
    fixture.delete::<PersistentVolumeClaim>("data").await;
    let before = fixture.observe_claim("data").await;
    fixture.create(&on_node(pod("web", "data"))).await;
    let refused = fixture.act_on_claim(&before).await.unwrap_err();
    assert_eq!(
        (refused.reason, &*refused.message),
        (Reason::Conflict, "pod web uses claim shop/data")
    );
}

/// The cache does not have the claim yet that a volume is bound to: the volume keeps its data.
#[tokio::test]
async fn a_volume_is_not_released_while_its_claim_exists() {
    let fixture = Fixture::start().await;
    fixture.create(&volume("disk", "1Gi")).await;
    fixture.create(&claim("data", "1Gi")).await;
    fixture.settle().await;
    let mut world = fixture.observe_volume("disk").await;
    world.claim = setpoint_persistentvolume_controller::volume::ClaimState::Gone;
    let refused = fixture.report_volume(&world).await.unwrap_err();
    assert_eq!(
        (refused.reason, &*refused.message),
        (Reason::Conflict, "claim shop/data of volume disk exists")
    );
}

#[tokio::test]
async fn a_claim_that_waits_for_its_first_pod_gets_a_folder_on_the_node_of_that_pod() {
    let fixture = Fixture::start().await;
    fixture.create(&node("one", Some("/data/local-path"))).await;
    fixture.create(&class("standard")).await;
    let mut wanted = claim("data", "1Gi");
    wanted.spec.storage_class_name = Some("standard".into());
    fixture.create(&wanted).await;
    fixture.settle().await;
    let told = fixture.told();
    let waits = "WaitForFirstConsumer: waiting for first consumer to be created before binding";
    assert_eq!(told, [waits]);
    fixture.create(&pod("web", "data")).await;
    fixture.settle().await;
    let waits = "WaitForPodScheduled: waiting for pod web to be scheduled";
    assert!(fixture.told().contains(&waits.to_owned()));
    fixture.annotate_claim("data", SELECTED_NODE, "one").await;
    fixture.settle().await;
    let bound: PersistentVolumeClaim = fixture.get("data").await;
    assert_eq!(bound.status.phase, "Bound");
    let name = format!("pvc-{}", bound.metadata.uid);
    assert_eq!(bound.spec.volume_name, name);
    let volume: PersistentVolume = fixture.get(&name).await;
    let host = volume.spec.persistent_volume_source.host_path.as_ref();
    assert_eq!(host.unwrap().path, format!("/data/local-path/{name}"));
    assert_eq!(volume.spec.persistent_volume_reclaim_policy, "Delete");
    let terms = volume.spec.node_affinity.as_ref().unwrap();
    let term = &terms.required.as_ref().unwrap().node_selector_terms[0];
    assert_eq!(term.match_expressions[0].values, ["one"]);
    assert_eq!(volume.metadata.annotations["setpoint.dev/node"], "one");
    let provisioned =
        format!("ProvisioningSucceeded: Successfully provisioned volume {name} using {LOCAL_PATH}");
    assert!(fixture.told().contains(&provisioned));

    // The agent of the node removes the folder, and then its finalizer.
    fixture.delete_now::<Pod>("web").await;
    fixture.delete::<PersistentVolumeClaim>("data").await;
    fixture.settle().await;
    let mut released: PersistentVolume = fixture.get(&name).await;
    assert!(released.metadata.deletion_timestamp.is_some());
    assert_eq!(released.status.phase, "Released");
    assert_eq!(released.metadata.finalizers, [LOCAL_PATH]);
    released.metadata.finalizers.clear();
    fixture.update(&released).await;
    assert!(fixture.is_gone::<PersistentVolume>(&name).await);
}

/// The scheduler has not considered the volume, which may be of another node than the one that was selected.
#[tokio::test]
async fn a_claim_with_a_selected_node_is_bound_to_no_volume_that_the_scheduler_did_not_choose() {
    let fixture = Fixture::start().await;
    fixture.create(&node("one", None)).await;
    fixture.create(&class("standard")).await;
    let mut elsewhere = volume("elsewhere", "1Gi");
    elsewhere.spec.storage_class_name = "standard".into();
    fixture.create(&elsewhere).await;
    fixture.settle().await;
    let name = fixture.provision("data").await;
    assert!(name.starts_with("pvc-"), "{name}");
}

#[tokio::test]
async fn a_claim_that_asks_for_more_later_is_told_that_nothing_expands_its_volume() {
    let fixture = Fixture::start().await;
    let mut expandable = class("expandable");
    expandable.allow_volume_expansion = Some(true);
    expandable.volume_binding_mode = Some("Immediate".into());
    fixture.create(&expandable).await;
    let (mut disk, mut data) = (volume("disk", "2Gi"), claim("data", "1Gi"));
    disk.spec.storage_class_name = "expandable".into();
    data.spec.storage_class_name = Some("expandable".into());
    fixture.create(&disk).await;
    fixture.create(&data).await;
    fixture.settle().await;
    let expands = |told: &String| told.starts_with("ExternalExpanding: ");
    assert!(!fixture.told().iter().any(expands));
    let mut larger: PersistentVolumeClaim = fixture.get("data").await;
    let requests = &mut larger.spec.resources.requests;
    requests.insert("storage".into(), Quantity::new("3Gi"));
    fixture.update(&larger).await;
    fixture.settle().await;
    assert!(fixture.told().iter().any(expands));
}

#[tokio::test]
async fn a_volume_goes_with_its_node_and_stays_while_the_node_exists() {
    let fixture = Fixture::start().await;
    fixture.create(&node("one", Some("/data"))).await;
    fixture.create(&class("standard")).await;
    let name = fixture.provision("data").await;
    fixture.delete::<PersistentVolumeClaim>("data").await;
    fixture.settle().await;
    let mut world = fixture.observe_volume(&name).await;
    world.missing_node = Some("one".into());
    let refused = fixture.act_on_volume(&world).await.unwrap_err();
    assert_eq!(
        (refused.reason, &*refused.message),
        (Reason::Conflict, "node one exists")
    );
    fixture.delete::<Node>("one").await;
    fixture.settle().await;
    assert!(fixture.is_gone::<PersistentVolume>(&name).await);
}

#[tokio::test]
async fn nothing_is_left_of_a_volume_of_a_simulated_node() {
    let fixture = Fixture::start().await;
    fixture.create(&node("one", None)).await;
    fixture.create(&class("standard")).await;
    let name = fixture.provision("data").await;
    fixture.delete::<PersistentVolumeClaim>("data").await;
    fixture.settle().await;
    assert!(fixture.is_gone::<PersistentVolume>(&name).await);
}

#[tokio::test]
async fn what_a_folder_does_not_have_is_refused_with_an_event() {
    let fixture = Fixture::start().await;
    fixture.create(&node("one", None)).await;
    fixture.create(&class("standard")).await;
    let mut shared = claim("shared", "1Gi");
    shared.spec.storage_class_name = Some("standard".into());
    shared.spec.access_modes = vec!["ReadWriteMany".into()];
    fixture.create(&shared).await;
    fixture.annotate_claim("shared", SELECTED_NODE, "one").await;
    fixture.settle().await;
    let refused = "ProvisioningFailed: failed to provision volume with StorageClass \"standard\": access mode \
                   ReadWriteMany is not supported: a folder is on one node";
    let told = fixture.told();
    assert!(told.contains(&refused.to_owned()), "{told:?}");
    let waiting: PersistentVolumeClaim = fixture.get("shared").await;
    assert_eq!(waiting.status.phase, "Pending");
}

#[tokio::test]
async fn a_node_that_cannot_have_the_volume_is_forgotten_so_that_another_is_selected() {
    let fixture = Fixture::start().await;
    fixture.create(&class("standard")).await;
    let mut wanted = claim("data", "1Gi");
    wanted.spec.storage_class_name = Some("standard".into());
    fixture.create(&wanted).await;
    fixture.annotate_claim("data", SELECTED_NODE, "gone").await;
    fixture.settle().await;
    let waiting: PersistentVolumeClaim = fixture.get("data").await;
    assert!(!waiting.metadata.annotations.contains_key(SELECTED_NODE));
    let told = fixture.told();
    let failed = "error getting selected node: nodes \"gone\" not found";
    assert!(told.iter().any(|told| told.ends_with(failed)), "{told:?}");
}

#[tokio::test]
async fn claims_of_other_provisioners_and_without_any_say_what_they_wait_for() {
    let fixture = Fixture::start().await;
    let with_class = |name: &str, class: Option<&str>| {
        let mut claim = claim(name, "1Gi");
        claim.spec.storage_class_name = class.map(str::to_owned);
        claim
    };
    let mut external = class("external");
    external.provisioner = "example.com/disk".into();
    external.volume_binding_mode = Some("Immediate".into());
    fixture.create(&external).await;
    fixture.create(&with_class("none", Some(""))).await;
    fixture
        .create(&with_class("missing", Some("nowhere")))
        .await;
    fixture
        .create(&with_class("external", Some("external")))
        .await;
    fixture.settle().await;
    let told = fixture.told();
    for expected in [
        "FailedBinding: no persistent volumes available for this claim and no storage class is set",
        "ProvisioningFailed: storageclass.storage.k8s.io \"nowhere\" not found",
        "ExternalProvisioning: Waiting for a volume to be created either by the external provisioner 'example.com/disk'",
    ] {
        let is_told = told.iter().any(|told| told.starts_with(expected));
        assert!(is_told, "{expected}: {told:?}");
    }
    let claim: PersistentVolumeClaim = fixture.get("external").await;
    let provisioner = &claim.metadata.annotations["volume.kubernetes.io/storage-provisioner"];
    assert_eq!(provisioner, "example.com/disk");
}

#[tokio::test]
async fn a_claim_without_a_class_gets_a_default_that_was_created_later() {
    let fixture = Fixture::start().await;
    fixture.create(&claim("data", "1Gi")).await;
    fixture.settle().await;
    let mut default = class("standard");
    let annotation = "storageclass.kubernetes.io/is-default-class";
    let annotations = &mut default.metadata.annotations;
    annotations.insert(annotation.into(), "true".into());
    fixture.create(&default).await;
    fixture.settle().await;
    let claim: PersistentVolumeClaim = fixture.get("data").await;
    assert_eq!(claim.spec.storage_class_name.as_deref(), Some("standard"));
}

/// Both controllers write a volume or claim only as it was observed.
#[tokio::test]
async fn a_stale_observation_changes_nothing() {
    let fixture = Fixture::start().await;
    fixture.create(&volume("disk", "1Gi")).await;
    fixture.create(&hold(claim("data", "1Gi"))).await;
    fixture.settle_volumes().await;
    let before = fixture.observe_claim("data").await;
    let mut disk: PersistentVolume = fixture.get("disk").await;
    disk.metadata.labels.insert("changed".into(), "yes".into());
    fixture.update(&disk).await;
    let refused = fixture.act_on_claim(&before).await.unwrap_err();
    assert_eq!(refused.reason, Reason::Conflict);
    let disk: PersistentVolume = fixture.get("disk").await;
    assert_eq!(disk.spec.claim_ref, None);
    assert_eq!(Key::of(&disk.metadata), Key::new("", "disk"));
}
