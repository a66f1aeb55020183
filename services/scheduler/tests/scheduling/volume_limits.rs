//! The number of volumes of a CSI driver that can be attached to a node. Cases are those of upstream's `TestCSILimits`.

use std::collections::BTreeMap;
use std::sync::Arc;

use setpoint_controller::View as _;
use setpoint_model::Key;
use setpoint_proto::core::{PersistentVolumeClaim, Volume};
use setpoint_proto::storage::{CsiNode, CsiNodeDriver, VolumeNodeResources};
use setpoint_scheduler::{
    ClaimView, ClusterEvent, CsiNodeView, CsiVolume, Plugin, Profile, Snapshot, Storage,
};

use crate::world::{PodB, helps, node, objections, objections_of, pod, victims, world};

const EBS: &str = "ebs.csi.aws.com";
const EXCEEDED: &str = "node(s) exceed max volume count";

/// A Pod with claims `<driver>/<handle>`: the name of the claim is that of its volume.
fn with(name: &str, claims: &[&str]) -> PodB {
    let claims = claims.iter().map(|claim| claim.replace('/', "-"));
    claims.fold(pod(name), |pod, claim| {
        pod.with(|spec| {
            let mut volume = Volume {
                name: claim.clone(),
                ..Default::default()
            };
            let source = &mut volume.volume_source.persistent_volume_claim;
            source.get_or_insert_default().claim_name = claim;
            spec.volumes.push(volume);
        })
    })
}

fn storage(limits: &[(&str, i64)], volumes: &[&str]) -> Storage {
    let volumes = volumes.iter().map(|volume| {
        let (driver, handle) = volume.split_once('/').expect("a driver and a handle");
        let volume = CsiVolume {
            driver: driver.into(),
            handle: handle.into(),
        };
        (Key::new("default", format!("{driver}-{handle}")), volume)
    });
    let limits = limits.iter();
    let limits: BTreeMap<_, _> = limits
        .map(|(driver, limit)| ((*driver).to_owned(), *limit))
        .collect();
    Storage {
        limits: [("a".to_owned(), limits)].into(),
        csi_volumes: volumes.collect(),
        ..Storage::default()
    }
}

fn on_node(placed: &[PodB], pending: &[PodB], storage: Storage) -> Snapshot {
    let mut snapshot = world(&[node("a"), node("b")], placed, pending);
    snapshot.storage = storage;
    snapshot
}

/// The profile without VolumeBinding: these claims are not in the snapshot.
fn profile() -> Profile {
    let mut profile = Profile::default();
    profile.filters.remove(Plugin::VolumeBinding);
    profile
}

#[test]
fn a_node_takes_as_many_volumes_of_a_driver_as_its_csi_node_says() {
    let (one, two, three) = (
        "ebs.csi.aws.com/1",
        "ebs.csi.aws.com/2",
        "ebs.csi.aws.com/3",
    );
    let other = "pd.csi.storage.gke.io/1";
    // The limit, the claims of Pods on the node, the claims of the Pod, and whether they are too many.
    type Case<'a> = (
        &'a [(&'a str, i64)],
        &'a [&'a [&'a str]],
        &'a [&'a str],
        bool,
    );
    let cases: [Case<'_>; 12] = [
        (&[(EBS, 2)], &[&[one]], &[two], false),
        (&[(EBS, 2)], &[&[one], &[two]], &[three], true),
        (&[(EBS, 2)], &[&[one, two]], &[three], true),
        (&[(EBS, 2)], &[&[one], &[one]], &[two], false),
        (&[(EBS, 2)], &[&[one], &[two]], &[one], false),
        (&[(EBS, 1)], &[&[other]], &[one], false),
        // More than the limit are attached already.
        (&[(EBS, 1)], &[&[one, two]], &[one], false),
        (&[(EBS, 1)], &[&[one, two]], &[other], false),
        (&[(EBS, 0)], &[], &[one], true),
        (&[(EBS, 0)], &[], &[], false),
        (&[("pd.csi.storage.gke.io", 0)], &[&[one]], &[two], false),
        (
            &[(EBS, 2), ("pd.csi.storage.gke.io", 0)],
            &[],
            &[one, other],
            true,
        ),
    ];
    for (n, (limits, placed, claims, exceeds)) in cases.into_iter().enumerate() {
        let placed = placed.iter().enumerate();
        let placed = placed.map(|(n, claims)| with(&format!("on-{n}"), claims).on("a"));
        let storage = storage(limits, &[one, two, three, other]);
        let snapshot = on_node(&placed.collect::<Vec<_>>(), &[], storage);
        let found = objections_of(&snapshot, profile(), &with("p", claims));
        let expected = if exceeds { EXCEEDED } else { "" };
        assert_eq!(found, [expected, ""], "case {n}");
    }
}

#[test]
fn a_profile_may_do_without_the_limits() {
    let mut without = profile();
    without.filters.remove(Plugin::NodeVolumeLimits);
    let snapshot = on_node(&[], &[], storage(&[(EBS, 0)], &["ebs.csi.aws.com/1"]));
    let found = objections_of(&snapshot, without, &with("p", &["ebs.csi.aws.com/1"]));
    assert_eq!(found, ["", ""]);
}

/// Checks C7: a volume that is detached makes room.
#[test]
fn pods_with_volumes_are_preempted_for_others() {
    let claims = ["ebs.csi.aws.com/1", "ebs.csi.aws.com/2"];
    let placed = [
        with("plain", &[]).priority(1).on("a"),
        with("attached", &claims[..1]).priority(1).on("a"),
    ];
    let mut snapshot = on_node(&placed, &[], storage(&[(EBS, 1)], &claims));
    let claim = |name: &str| {
        let mut claim = PersistentVolumeClaim::default();
        (claim.metadata.namespace, claim.metadata.name) = ("default".into(), name.into());
        claim.metadata.uid = name.into();
        claim
    };
    let mut bound = claim("ebs.csi.aws.com-2");
    bound.spec.volume_name = "pv".into();
    let annotations = &mut bound.metadata.annotations;
    annotations.insert("pv.kubernetes.io/bind-completed".into(), "yes".into());
    let view = Arc::new(ClaimView::of(bound));
    let storage = &mut snapshot.storage;
    storage
        .claims
        .insert(view.meta().key.clone(), (view, Vec::new()));
    let volume = setpoint_proto::core::PersistentVolume::default();
    let volume = Arc::new(setpoint_scheduler::VolumeView::of(volume));
    storage.volumes.insert("pv".into(), volume);
    let high = with("high", &claims[1..]).priority(2);
    assert_eq!(objections(&snapshot, &high)[0], EXCEEDED);
    let mut snapshot = Snapshot {
        pending: vec![Arc::new(high.view())],
        ..snapshot
    };
    // The other node is full.
    snapshot.nodes[1].pods = 110;
    assert_eq!(victims(&snapshot), ["attached"]);
}

#[test]
fn a_csi_node_has_a_limit_for_each_driver_that_names_one() {
    let driver = |name: &str, count: Option<Option<i32>>| CsiNodeDriver {
        name: name.into(),
        allocatable: count.map(|count| VolumeNodeResources { count }),
        ..Default::default()
    };
    let mut object = CsiNode::default();
    object.spec.drivers = vec![
        driver("limited", Some(Some(3))),
        driver("unlimited", Some(None)),
        driver("unknown", None),
    ];
    let view = CsiNodeView::of(object);
    assert_eq!(view.limits, [("limited".to_owned(), 3)].into());
}

/// Checks C6: upstream's queueing hints of NodeVolumeLimits.
#[test]
fn a_pod_with_claims_that_leaves_a_claim_that_appears_and_other_limits_help() {
    let waiting = with("p", &["ebs.csi.aws.com/1"]).view();
    let helped = |change: ClusterEvent| {
        let rejectors = [Plugin::NodeVolumeLimits].into_iter().collect();
        helps(&waiting, rejectors, &change)
    };
    assert!(helped(ClusterEvent::VolumeLimits));
    assert!(helped(ClusterEvent::left(Arc::new(
        with("q", &["ebs.csi.aws.com/2"]).on("a").view()
    ))));
    assert!(!helped(ClusterEvent::left(Arc::new(
        pod("q").on("a").view()
    ))));
    let claim = |namespace: &str, name: &str| {
        let mut claim = PersistentVolumeClaim::default();
        (claim.metadata.namespace, claim.metadata.name) = (namespace.into(), name.into());
        ClusterEvent::Claim {
            old: None,
            new: Arc::new(ClaimView::of(claim)),
        }
    };
    assert!(helped(claim("default", "ebs.csi.aws.com-1")));
    assert!(!helped(claim("default", "ebs.csi.aws.com-2")));
    assert!(!helped(claim("other", "ebs.csi.aws.com-1")));
    assert!(!helped(ClusterEvent::Class));
}
