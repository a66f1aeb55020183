//! Plans and statuses of claims.

use std::sync::Arc;

use setpoint_controller::{Outcome, View as _};
use setpoint_persistentvolume_controller::Notice;
use setpoint_persistentvolume_controller::claim::{self, Binding, ClaimView};
use setpoint_persistentvolume_controller::volume::VolumeView;
use setpoint_proto::core::{PersistentVolume, PersistentVolumeClaimStatus, Pod};
use setpoint_workload::PodView;

use crate::decisions::fixture::{
    BIND_COMPLETED, LOCAL_PATH, PROVISIONER, Reserved, SELECTED_NODE, actions, claim, claim_world,
    class, disk, storage,
};

fn pod(name: &str, node: &str) -> Arc<PodView> {
    let mut pod = Pod::default();
    pod.metadata.name = name.into();
    pod.spec.node_name = node.into();
    Arc::new(PodView::of(pod))
}

#[test]
fn a_claim_that_waits_for_pods_names_those_without_a_node() {
    let mut unplaced = claim();
    unplaced.metadata.annotations.remove(SELECTED_NODE);
    let mut world = claim_world(unplaced, class());
    let first = "waiting for first consumer to be created before binding";
    for (pods, reason, message) in [
        (vec![], "WaitForFirstConsumer", first),
        (vec![pod("a", "one")], "WaitForFirstConsumer", first),
        (
            vec![pod("b", ""), pod("a", "one")],
            "WaitForPodScheduled",
            "waiting for pod b to be scheduled",
        ),
        (
            vec![pod("b", ""), pod("a", "")],
            "WaitForPodScheduled",
            "waiting for pods a,b to be scheduled",
        ),
    ] {
        world.pods = pods;
        let report = claim::Action::Report(Notice::normal(reason, message));
        assert_eq!(actions(claim::plan(&world)), [report]);
    }
}

#[test]
fn actions_are_printed_with_the_reason_or_the_name_of_the_volume() {
    let notice = Notice::warning("ProvisioningFailed", "no such class");
    let report = claim::Action::Report(notice);
    assert_eq!(
        format!("{report:?}"),
        "Report(ProvisioningFailed: no such class)"
    );
    let mut volume = PersistentVolume::default();
    volume.metadata.name = "disk-1".into();
    let bind = claim::Action::BindVolume(Arc::new(VolumeView::of(volume)));
    assert_eq!(format!("{bind:?}"), "BindVolume(disk-1)");
}

#[test]
fn a_claim_without_a_volume_says_what_it_waits_for() {
    let plan_of = |change: fn(&mut claim::World), provisioner: &str, asked: &str| {
        let mut claim = claim();
        let annotations = &mut claim.metadata.annotations;
        annotations.insert(PROVISIONER.into(), asked.into());
        let mut class = class();
        class.provisioner = provisioner.into();
        let mut world = claim_world(claim, class);
        change(&mut world);
        actions(claim::plan(&world))
    };
    let [claim::Action::Provision(_)] = plan_of(|_| {}, LOCAL_PATH, LOCAL_PATH)[..] else {
        panic!("a volume");
    };
    let set = claim::Action::SetProvisioner(LOCAL_PATH.to_owned());
    assert_eq!(plan_of(|_| {}, LOCAL_PATH, "example.com/disk"), [set]);
    let report = |plan: Vec<claim::Action>| match &plan[..] {
        [claim::Action::Report(notice)] => (notice.reason, notice.message.clone()),
        other => panic!("{other:?}"),
    };
    let in_tree = report(plan_of(|_| {}, "kubernetes.io/aws-ebs", LOCAL_PATH));
    let message = "no volume plugin matched name: kubernetes.io/aws-ebs";
    assert_eq!(in_tree, ("ProvisioningFailed", message.to_owned()));
    let external = report(plan_of(|_| {}, "example.com/disk", "example.com/disk"));
    assert_eq!(external.0, "ExternalProvisioning");
    assert!(plan_of(|world| deleting(world, true), "example.com/disk", "").is_empty());
}

/// Marks the claim of a world as being deleted, with a Pod that uses it or without.
fn deleting(world: &mut claim::World, used: bool) {
    let view = Arc::make_mut(&mut world.claim);
    view.claim.meta.deleting = true;
    world.pods.extend(used.then(|| pod("a", "one")));
}

#[test]
fn a_claim_without_a_class_gets_the_default_one_if_there_is_any() {
    let mut classless = claim();
    classless.spec.storage_class_name = None;
    let mut world = claim_world(classless.clone(), class());
    world.class = None;
    let none = "no persistent volumes available for this claim and no storage class is set";
    let report = [claim::Action::Report(Notice::normal("FailedBinding", none))];
    assert_eq!(actions(claim::plan(&world)), report);
    world.default_class = Some("fast".into());
    let set = claim::Action::SetClass("fast".into());
    assert_eq!(actions(claim::plan(&world)), [set]);
    classless.spec.storage_class_name = Some(String::new());
    world.claim = Arc::new(ClaimView::of(classless));
    assert_eq!(actions(claim::plan(&world)), report, "it wants none");
}

#[test]
fn a_claim_is_protected_until_it_is_deleted_and_no_pod_on_a_node_uses_it() {
    // Whether it is protected, whether it is deleted, the nodes of its Pods, and the plan.
    let (protect, unprotect) = (claim::Action::Protect, claim::Action::Unprotect);
    for (protected, deleted, nodes, expected) in [
        (false, false, &[][..], Some(protect)),
        (false, true, &[], None),
        (true, true, &[], Some(unprotect.clone())),
        (true, true, &[""], Some(unprotect)),
        (true, true, &["", "one"], None),
    ] {
        let mut object = claim();
        if !protected {
            object.metadata.finalizers = vec!["example.com/other".into()];
        }
        let mut world = claim_world(object, class());
        Arc::make_mut(&mut world.claim).claim.meta.deleting = deleted;
        world.pods = nodes.iter().map(|node| pod("a", node)).collect();
        let expected: Vec<_> = expected.into_iter().collect();
        assert_eq!(
            actions(claim::plan(&world)),
            expected,
            "{protected} {nodes:?}"
        );
    }
}

/// Returns the world of a claim that names a volume, or that was bound to it.
fn naming(name: &str, bound: bool, volume: Option<PersistentVolume>) -> claim::World {
    let mut naming = claim();
    naming.spec.volume_name = name.into();
    if bound {
        let annotations = &mut naming.metadata.annotations;
        annotations.insert(BIND_COMPLETED.into(), "yes".into());
    }
    let mut world = claim_world(naming, class());
    world.named = volume.map(|volume| Arc::new(VolumeView::of(volume)));
    world
}

#[test]
fn a_bound_claim_is_complete_chosen_again_or_lost() {
    use Reserved::{ByName, Nobody, Other, Own};
    let lost = |reason, message: &str| Binding::Lost(Notice::warning(reason, message));
    let gone = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
    let unnamed = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!";
    let misbound = "Two claims are bound to the same volume, this one is bound incorrectly";
    let of = |name, volume| Binding::of(&naming(name, true, volume));
    assert_eq!(of("", Some(disk(Own, "1Gi"))), lost("ClaimLost", unnamed));
    assert_eq!(of("disk", None), lost("ClaimLost", gone));
    let other = of("disk", Some(disk(Other, "1Gi")));
    assert_eq!(other, lost("ClaimMisbound", misbound));
    let own = of("disk", Some(disk(Own, "1Gi")));
    assert!(matches!(own, Binding::Complete(_)), "{own:?}");
    for reserved in [Nobody, ByName] {
        let again = of("disk", Some(disk(reserved, "1Gi")));
        assert!(matches!(again, Binding::Chosen(_)), "{again:?}");
    }
}

#[test]
fn a_claim_that_names_a_volume_is_bound_to_it_or_says_why_not() {
    use Reserved::{ByName, Nobody, Other, Own};
    let report = |notice| vec![claim::Action::Report(notice)];
    let missing = "volume \"disk\" requested by the claim does not exist";
    let small = "Cannot bind to requested volume \"disk\": requested PV is too small";
    let taken = "volume \"disk\" already bound to a different claim.";
    let chosen = |volume: &PersistentVolume| Arc::new(VolumeView::of(volume.clone()));
    let bind = |volume: &PersistentVolume| vec![claim::Action::BindVolume(chosen(volume))];
    let complete = |volume: &PersistentVolume| vec![claim::Action::BindClaim(chosen(volume))];
    let cases = [
        (None, report(Notice::normal("FailedBinding", missing))),
        (
            Some(disk(Nobody, "1Mi")),
            report(Notice::warning("VolumeMismatch", small)),
        ),
        (
            Some(disk(Other, "1Gi")),
            report(Notice::warning("FailedBinding", taken)),
        ),
        (Some(disk(Nobody, "1Gi")), bind(&disk(Nobody, "1Gi"))),
        (Some(disk(ByName, "1Gi")), bind(&disk(ByName, "1Gi"))),
        (Some(disk(Own, "1Gi")), complete(&disk(Own, "1Gi"))),
    ];
    for (volume, expected) in cases {
        let mut world = naming("disk", false, volume);
        assert_eq!(actions(claim::plan(&world)), expected);
        deleting(&mut world, true);
        let reports = matches!(expected[..], [claim::Action::Report(_)]);
        let expected = if reports { Vec::new() } else { expected };
        assert_eq!(
            actions(claim::plan(&world)),
            expected,
            "while it is deleted"
        );
        world.pods.clear();
        let unprotect = [claim::Action::Unprotect];
        assert_eq!(actions(claim::plan(&world)), unprotect, "and not used");
    }
}

#[test]
fn a_claim_takes_a_volume_that_fits_unless_it_waits_for_its_first_pod() {
    let mut immediate = class();
    immediate.volume_binding_mode = None;
    for (class, chosen) in [(class(), false), (immediate, true)] {
        let mut world = claim_world(claim(), class);
        let mut other = disk(Reserved::Nobody, "2Gi");
        other.metadata.name = "larger".into();
        let volumes = [other, disk(Reserved::Nobody, "1Gi")];
        world.volumes = volumes.map(VolumeView::of).map(Arc::new).into();
        let expected = match chosen {
            true => Binding::Chosen(world.volumes[1].clone()),
            false => Binding::Open,
        };
        assert_eq!(Binding::of(&world), expected);
    }
}

#[test]
fn the_status_of_a_bound_claim_has_what_its_volume_had_when_it_was_bound() {
    let mut large = disk(Reserved::Own, "2Gi");
    large.spec.volume_attributes_class_name = Some("gold".into());
    // The phase, the size and the attributes class before; the size and the attributes class after.
    for (phase, size, attributes, expected) in [
        ("Pending", None, None, ("2Gi", Some("gold"))),
        (
            "Pending",
            Some("1Gi"),
            Some("silver"),
            ("2Gi", Some("gold")),
        ),
        ("Bound", None, None, ("2Gi", None)),
        (
            "Bound",
            Some("1Gi"),
            Some("silver"),
            ("1Gi", Some("silver")),
        ),
        ("Lost", Some("1Gi"), None, ("2Gi", None)),
    ] {
        let mut world = naming("disk", true, Some(large.clone()));
        let now = &mut Arc::make_mut(&mut world.claim).status;
        now.phase = phase.into();
        now.capacity = size.map(storage).unwrap_or_default();
        now.current_volume_attributes_class_name = attributes.map(str::to_owned);
        let status = claim::status(&world, &Outcome::default()).unwrap();
        let notice = claim::notice(&world, &status);
        assert_eq!((&*status.phase, notice), ("Bound", None));
        assert_eq!(status.access_modes, ["ReadWriteOnce"]);
        assert_eq!(status.capacity, storage(expected.0), "{phase} {size:?}");
        assert_eq!(
            status.current_volume_attributes_class_name.as_deref(),
            expected.1
        );
        Arc::make_mut(&mut world.claim).status = status;
        assert_eq!(claim::status(&world, &Outcome::default()), None);
    }
    let mut pending = naming("disk", true, Some(disk(Reserved::Own, "1Gi")));
    Arc::make_mut(&mut pending.claim).status.phase = "Pending".into();
    let status = claim::status(&pending, &Outcome::default()).unwrap();
    assert_eq!(status.current_volume_attributes_class_name, None);
}

#[test]
fn the_status_of_a_claim_without_a_volume_says_nothing_of_one() {
    let mut world = claim_world(claim(), class());
    let status = &mut Arc::make_mut(&mut world.claim).status;
    status.phase = "Bound".into();
    status.capacity = storage("1Gi");
    status.access_modes = vec!["ReadWriteOnce".into()];
    status.current_volume_attributes_class_name = Some("gold".into());
    let plan = claim::plan(&world);
    assert!(matches!(plan.steps[0].action, claim::Action::Provision(_)));
    let status = claim::status(&world, &Outcome::of(plan)).unwrap();
    let pending = PersistentVolumeClaimStatus {
        phase: "Pending".into(),
        ..PersistentVolumeClaimStatus::default()
    };
    assert_eq!(claim::notice(&world, &status), None);
    assert_eq!(status, pending);
    Arc::make_mut(&mut world.claim).finalizers.clear();
    let plan = claim::plan(&world);
    let after = claim::status(&world, &Outcome::of(plan));
    assert_eq!(after, None, "a write of the claim was planned");

    let lost = naming("disk", true, None);
    let status = claim::status(&lost, &Outcome::default()).unwrap();
    assert_eq!(status.phase, "Lost");
    let notice = claim::notice(&lost, &status).unwrap();
    assert_eq!(notice.reason, "ClaimLost");
}

#[test]
fn a_bound_claim_that_asks_for_more_than_it_has_is_told_so() {
    for (phase, capacity, told) in [
        ("Bound", "1Gi", false),
        ("Bound", "1Mi", true),
        ("Bound", "2Gi", false),
        ("Pending", "1Mi", false),
    ] {
        let mut object = claim();
        object.spec.volume_name = "disk".into();
        let annotations = &mut object.metadata.annotations;
        annotations.insert(BIND_COMPLETED.into(), "yes".into());
        object.status.phase = phase.into();
        object.status.capacity = storage(capacity);
        let mut world = claim_world(object, class());
        world.named = Some(Arc::new(VolumeView::of(disk(Reserved::Own, "1Gi"))));
        let reports = actions(claim::plan(&world));
        let reports = reports.iter().filter(|action| {
            matches!(action, claim::Action::Report(notice) if notice.reason == "ExternalExpanding")
        });
        assert_eq!(reports.count() == 1, told, "{phase} {capacity}");
    }
}
