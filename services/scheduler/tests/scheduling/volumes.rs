//! Claims and volumes: VolumeBinding, VolumeZone and VolumeRestrictions.

use std::sync::Arc;

use setpoint_controller::View as _;
use setpoint_model::Key;
use setpoint_proto::core::{
    NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ObjectReference, PersistentVolume,
    PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, TopologySelectorLabelRequirement,
    TopologySelectorTerm, Volume, VolumeNodeAffinity,
};
use setpoint_proto::meta::{OwnerReference, Quantity};
use setpoint_proto::storage::StorageClass;
use setpoint_scheduler::{
    Action, ClaimView, ClassView, ClusterEvent, Plugin, Snapshot, Storage, VolumeView,
};

use crate::world::{
    HOSTNAME, PodB, bindings, helps, node, objections, plan, pod, refusal, victims, world,
};

const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

impl PodB {
    fn uses(self, claim: &str) -> Self {
        self.with(|spec| {
            let mut volume = Volume {
                name: claim.into(),
                ..Default::default()
            };
            volume.volume_source.persistent_volume_claim =
                Some(PersistentVolumeClaimVolumeSource {
                    claim_name: claim.into(),
                    ..Default::default()
                });
            spec.volumes.push(volume);
        })
    }
}

fn claim(name: &str, class: &str) -> PersistentVolumeClaim {
    let mut claim = PersistentVolumeClaim::default();
    let meta = &mut claim.metadata;
    (meta.namespace, meta.name) = ("default".into(), name.into());
    meta.uid = format!("uid-of-{name}");
    claim.spec.storage_class_name = Some(class.into());
    claim.spec.access_modes = vec!["ReadWriteOnce".into()];
    let requests = &mut claim.spec.resources.requests;
    requests.insert("storage".into(), Quantity::new("1Gi"));
    claim
}

fn bound(name: &str, volume: &str) -> PersistentVolumeClaim {
    let mut claim = claim(name, "local");
    claim.spec.volume_name = volume.into();
    let annotations = &mut claim.metadata.annotations;
    annotations.insert("pv.kubernetes.io/bind-completed".into(), "yes".into());
    claim
}

fn class(name: &str, provisioner: &str, mode: &str) -> StorageClass {
    let mut class = StorageClass::default();
    class.metadata.name = name.into();
    class.provisioner = provisioner.into();
    class.volume_binding_mode = Some(mode.into());
    class
}

/// An available volume of the class `local` on one host.
fn volume(name: &str, host: &str) -> PersistentVolume {
    let mut volume = PersistentVolume::default();
    volume.metadata.name = name.into();
    volume.spec.storage_class_name = "local".into();
    volume.spec.access_modes = vec!["ReadWriteOnce".into()];
    let capacity = &mut volume.spec.capacity;
    capacity.insert("storage".into(), Quantity::new("1Gi"));
    volume.status.phase = "Available".into();
    let here = NodeSelectorRequirement {
        key: HOSTNAME.into(),
        operator: "In".into(),
        values: vec![host.into()],
    };
    volume.spec.node_affinity = Some(VolumeNodeAffinity {
        required: Some(NodeSelector {
            node_selector_terms: vec![NodeSelectorTerm {
                match_expressions: vec![here],
                ..Default::default()
            }],
        }),
    });
    volume
}

fn storage(
    claims: &[PersistentVolumeClaim],
    volumes: &[PersistentVolume],
    classes: &[StorageClass],
) -> Storage {
    let volumes: Vec<_> = volumes
        .iter()
        .map(|volume| Arc::new(VolumeView::of(volume.clone())))
        .collect();
    let mut storage = Storage::default();
    for claim in claims {
        let view = Arc::new(ClaimView::of(claim.clone()));
        let mut candidates = volumes.clone();
        candidates.retain(|volume| {
            let free = volume.volume.claim.is_none() && volume.volume.class == view.claim.class();
            free || volume.volume.is_reserved_for(&view.claim)
        });
        storage
            .claims
            .insert(view.meta().key.clone(), (view, candidates));
    }
    let named = volumes.into_iter();
    storage.volumes = named
        .map(|volume| (volume.volume.name().to_owned(), volume))
        .collect();
    let classes = classes.iter().map(|class| ClassView::of(class.clone()));
    storage.classes = classes
        .map(|class| (class.meta.key.name.clone(), Arc::new(class)))
        .collect();
    storage
}

/// Two nodes with host names, and a Pod.
fn two_nodes(pending: &[PodB], storage: Storage) -> Snapshot {
    let nodes = [
        node("a").labels("kubernetes.io/hostname=a"),
        node("b").labels("kubernetes.io/hostname=b"),
    ];
    let mut snapshot = world(&nodes, &[], pending);
    snapshot.storage = storage;
    snapshot
}

fn waiting() -> StorageClass {
    class(
        "local",
        "kubernetes.io/no-provisioner",
        "WaitForFirstConsumer",
    )
}

/// The Pods that wait for their volumes, with the node, and the volume or `-` for each claim.
fn volume_bindings(snapshot: &Snapshot) -> Vec<(String, String, Vec<String>)> {
    let steps = plan(snapshot).steps.into_iter();
    let bound = steps.filter_map(|step| match step.action {
        Action::BindVolumes { pod, node, choices } => {
            let volumes = choices.iter().map(|choice| {
                let volume = choice.volume.as_ref();
                volume.map_or("-".to_owned(), |volume| volume.volume.name().to_owned())
            });
            Some((pod.meta.key.name.clone(), node, volumes.collect()))
        }
        _ => None,
    });
    bound.collect()
}

#[test]
fn a_pod_waits_for_its_claims_in_upstreams_words() {
    let immediate = class("fast", "example.com/disk", "Immediate");
    let mut going = claim("data", "fast");
    going.metadata.deletion_timestamp = Some(jiff::Timestamp::UNIX_EPOCH.into());
    let mut lost = bound("data", "gone");
    lost.status.phase = "Lost".into();
    let mut named = claim("data", "local");
    named.spec.volume_name = "disk".into();
    let cases = [
        (vec![], "persistentvolumeclaim \"data\" not found"),
        (
            vec![claim("data", "fast")],
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        (
            vec![claim("data", "")],
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        (
            vec![named],
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        (
            vec![going],
            "persistentvolumeclaim \"data\" is being deleted",
        ),
        (
            vec![lost],
            "persistentvolumeclaim \"data\" bound to non-existent persistentvolume \"gone\"",
        ),
        (
            vec![claim("data", "nowhere")],
            "pod has unbound immediate PersistentVolumeClaims",
        ),
    ];
    for (claims, problem) in cases {
        let storage = storage(&claims, &[], &[immediate.clone(), waiting()]);
        let snapshot = two_nodes(&[pod("web").uses("data")], storage);
        let (message, _) = refusal(&snapshot);
        let expected = format!(
            "0/2 nodes are available: {problem}. preemption: 0/2 nodes are available: \
             2 Preemption is not helpful for scheduling."
        );
        assert_eq!(message, expected);
    }
}

#[test]
fn a_bound_volume_is_used_where_its_node_affinity_says() {
    let mut disk = volume("disk", "b");
    disk.spec.claim_ref = Some(ObjectReference {
        namespace: "default".into(),
        name: "data".into(),
        uid: "uid-of-data".into(),
        ..Default::default()
    });
    let storage = storage(&[bound("data", "disk")], &[disk], &[]);
    let web = pod("web").uses("data");
    let snapshot = two_nodes(std::slice::from_ref(&web), storage.clone());
    let against = "node(s) didn't match PersistentVolume's node affinity";
    assert_eq!(objections(&snapshot, &web), [against, ""]);
    assert_eq!(bindings(&snapshot), [("web".into(), "b".into())]);
    let mut gone = storage;
    gone.volumes.clear();
    let snapshot = two_nodes(std::slice::from_ref(&web), gone);
    let against = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";
    assert_eq!(objections(&snapshot, &web), [against, against]);
}

#[test]
fn a_volume_of_a_zone_is_used_in_that_zone() {
    let mut disk = volume("disk", "a");
    disk.spec.node_affinity = None;
    let labels = &mut disk.metadata.labels;
    labels.insert("topology.kubernetes.io/zone".into(), "east__west".into());
    let web = pod("web").uses("data");
    let nodes = [
        node("a").labels("topology.kubernetes.io/zone=west"),
        node("b").labels("topology.kubernetes.io/zone=north"),
        node("c"),
        node("d").labels("topology.kubernetes.io/region=west"),
        node("e").labels("failure-domain.beta.kubernetes.io/zone=east"),
    ];
    let mut snapshot = world(&nodes, &[], &[]);
    snapshot.storage = storage(&[bound("data", "disk")], &[disk], &[]);
    let against = "node(s) had no available volume zone";
    assert_eq!(objections(&snapshot, &web), ["", against, "", against, ""]);
}

#[test]
fn a_claim_that_waits_is_bound_to_a_volume_of_the_node_before_the_pod_is() {
    let volumes = [volume("on-b", "b")];
    let web = pod("web").uses("data");
    let storage = storage(&[claim("data", "local")], &volumes, &[waiting()]);
    let snapshot = two_nodes(std::slice::from_ref(&web), storage);
    let against = "node(s) didn't find available persistent volumes to bind";
    assert_eq!(objections(&snapshot, &web), [against, ""]);
    assert!(bindings(&snapshot).is_empty());
    let expected = ("web".to_owned(), "b".to_owned(), vec!["on-b".to_owned()]);
    assert_eq!(volume_bindings(&snapshot), [expected]);
}

/// Each decision of a plan includes the volumes of those before it.
#[test]
fn one_volume_is_given_to_one_claim_only() {
    let volumes = [volume("one", "a"), volume("two", "a")];
    let claims = ["first", "second", "third"].map(|name| claim(name, "local"));
    let pods = ["first", "second", "third"].map(|name| pod(name).uses(name));
    let mut storage = storage(&claims, &volumes, &[waiting()]);
    let snapshot = two_nodes(&pods, storage.clone());
    let mut given: Vec<_> = volume_bindings(&snapshot)
        .into_iter()
        .flat_map(|(_, _, volumes)| volumes)
        .collect();
    given.sort();
    assert_eq!(given, ["one", "two"]);
    // One Pod with two claims needs both.
    let both = pod("both").uses("first").uses("second");
    let snapshot = two_nodes(std::slice::from_ref(&both), storage.clone());
    assert_eq!(volume_bindings(&snapshot)[0].2.len(), 2);
    let key = Key::new("default", "first");
    for (_, candidates) in storage.claims.values_mut() {
        candidates.truncate(1);
    }
    assert_eq!(storage.claims[&key].1.len(), 1);
    let snapshot = two_nodes(&[both], storage);
    assert!(volume_bindings(&snapshot).is_empty());
}

#[test]
fn a_claim_is_provisioned_on_the_node_that_was_selected_or_one_that_the_class_allows() {
    let mut zonal = class("zonal", "example.com/disk", "WaitForFirstConsumer");
    zonal.allowed_topologies = vec![TopologySelectorTerm {
        match_label_expressions: vec![TopologySelectorLabelRequirement {
            key: HOSTNAME.into(),
            values: vec!["a".into()],
        }],
    }];
    let web = pod("web").uses("data");
    let snapshot = two_nodes(
        std::slice::from_ref(&web),
        storage(&[claim("data", "zonal")], &[], &[zonal]),
    );
    let provisioned = |node: &str| ("web".to_owned(), node.to_owned(), vec!["-".to_owned()]);
    assert_eq!(volume_bindings(&snapshot), [provisioned("a")]);

    let free = class("free", "example.com/disk", "WaitForFirstConsumer");
    let mut selected = claim("data", "free");
    let annotations = &mut selected.metadata.annotations;
    annotations.insert(SELECTED_NODE.into(), "b".into());
    let snapshot = two_nodes(
        &[web],
        storage(&[selected], &[], std::slice::from_ref(&free)),
    );
    assert_eq!(volume_bindings(&snapshot), [provisioned("b")]);

    // Two Pods of one claim go to one node.
    let pods = [pod("one").uses("data"), pod("two").uses("data")];
    let snapshot = two_nodes(&pods, storage(&[claim("data", "free")], &[], &[free]));
    let nodes: Vec<_> = volume_bindings(&snapshot)
        .into_iter()
        .map(|(_, node, _)| node)
        .collect();
    assert_eq!((nodes.len(), &nodes[0]), (2, &nodes[1]));
}

#[test]
fn folders_are_provisioned_where_an_agent_or_a_simulation_has_them() {
    let local = class(
        "standard",
        "setpoint.dev/local-path",
        "WaitForFirstConsumer",
    );
    let mut agent = node("a");
    let annotations = &mut agent.0.metadata.annotations;
    annotations.insert("setpoint.dev/local-path".into(), "/data".into());
    let nodes = [
        agent,
        node("b").labels("setpoint.dev/runtime=simulated"),
        node("c"),
    ];
    let mut snapshot = world(&nodes, &[], &[]);
    snapshot.storage = storage(&[claim("data", "standard")], &[], &[local]);
    let against = "node(s) didn't find available persistent volumes to bind";
    let web = pod("web").uses("data");
    assert_eq!(objections(&snapshot, &web), ["", "", against]);
}

#[test]
fn an_exclusive_claim_has_one_pod_which_a_more_important_one_may_preempt() {
    let mut exclusive = claim("data", "local");
    exclusive.spec.access_modes = vec!["ReadWriteOncePod".into()];
    exclusive.spec.volume_name = "disk".into();
    let annotations = &mut exclusive.metadata.annotations;
    annotations.insert("pv.kubernetes.io/bind-completed".into(), "yes".into());
    let storage = storage(&[exclusive], &[volume("disk", "a")], &[]);
    let nodes = [node("a").labels("kubernetes.io/hostname=a")];
    let placed = [pod("first").on("a").uses("data")];
    let second = pod("second").uses("data");
    let mut snapshot = world(&nodes, &placed, std::slice::from_ref(&second));
    snapshot.storage = storage.clone();
    let against = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode";
    assert_eq!(objections(&snapshot, &second), [against]);
    assert!(victims(&snapshot).is_empty());
    let mut snapshot = world(&nodes, &placed, &[second.priority(1)]);
    snapshot.storage = storage.clone();
    assert_eq!(victims(&snapshot), ["first"]);
    let stranger = [pod("first").namespace("other").on("a").uses("data")];
    let mut snapshot = world(&nodes, &stranger, &[]);
    snapshot.storage = storage.clone();
    assert_eq!(objections(&snapshot, &pod("second").uses("data")), [""]);
    let elsewhere = pod("second").namespace("other").uses("data");
    let mut snapshot = world(&nodes, &placed, &[]);
    snapshot.storage = storage;
    let problem = "persistentvolumeclaim \"data\" not found";
    assert_eq!(objections(&snapshot, &elsewhere), [problem]);
}

/// Checks C6.
#[test]
fn pods_wake_when_their_claims_volumes_or_classes_may_help() {
    let waiting = pod("web").uses("data").view();
    let view = |claim: &PersistentVolumeClaim| Arc::new(ClaimView::of(claim.clone()));
    let (free, complete) = (claim("data", "local"), bound("data", "disk"));
    let mut selected = free.clone();
    let annotations = &mut selected.metadata.annotations;
    annotations.insert(SELECTED_NODE.into(), "a".into());
    let changed =
        |old: Option<&PersistentVolumeClaim>, new: &PersistentVolumeClaim| ClusterEvent::Claim {
            old: old.map(view),
            new: view(new),
        };
    let mut recreated = free.clone();
    recreated.metadata.uid = "another".into();
    let mut unclassed = free.clone();
    unclassed.spec.storage_class_name = None;
    let mut foreign = free.clone();
    foreign.metadata.namespace = "other".into();
    let other = claim("other", "local");
    let mut taken = volume("disk", "a");
    taken.spec.claim_ref = Some(ObjectReference::default());
    let volume_change =
        |volume: &PersistentVolume| ClusterEvent::Volume(Arc::new(VolumeView::of(volume.clone())));
    let cases = [
        (changed(None, &free), true),
        (changed(None, &other), false),
        (changed(Some(&selected), &complete), true),
        (changed(Some(&free), &selected), false),
        (changed(Some(&selected), &free), true),
        (changed(Some(&free), &complete), true),
        (changed(Some(&free), &recreated), true),
        (changed(Some(&unclassed), &free), true),
        (changed(Some(&free), &free), false),
        (changed(Some(&selected), &selected), false),
        (changed(Some(&complete), &complete), false),
        (changed(None, &foreign), false),
        (volume_change(&volume("disk", "a")), true),
        (volume_change(&taken), false),
        (ClusterEvent::Class, true),
        (ClusterEvent::Namespace, false),
    ];
    let rejectors = [Plugin::VolumeBinding].into_iter().collect();
    for (n, (change, expected)) in cases.iter().enumerate() {
        assert_eq!(
            helps(&waiting, rejectors, change),
            *expected,
            "case {n}: {change:?}"
        );
    }
}

/// Checks C6: upstream's queueing hints of VolumeRestrictions.
#[test]
fn pods_wake_when_a_pod_that_uses_their_claim_leaves() {
    let waiting = pod("p").uses("data").view();
    let (user, other) = (pod("q").on("a").uses("data"), pod("q").on("a").uses("x"));
    let view = |pod: &PodB| Arc::new(pod.view());
    let updated = ClusterEvent::Pod {
        old: Some(view(&user)),
        new: Some(view(&user)),
    };
    let foreign = user.clone().namespace("other");
    let cases = [
        (ClusterEvent::left(view(&user)), true),
        (ClusterEvent::left(view(&other)), false),
        (ClusterEvent::left(view(&foreign)), false),
        (updated, false),
        (ClusterEvent::Class, false),
    ];
    let rejectors = [Plugin::VolumeRestrictions].into_iter().collect();
    for (n, (change, expected)) in cases.iter().enumerate() {
        assert_eq!(helps(&waiting, rejectors, change), *expected, "case {n}");
    }
}

#[test]
fn the_claim_of_an_ephemeral_volume_belongs_to_its_pod() {
    let web = pod("web").with(|spec| {
        let mut scratch = Volume {
            name: "scratch".into(),
            ..Default::default()
        };
        scratch.volume_source.ephemeral = Some(Default::default());
        spec.volumes.push(scratch);
    });
    let foreign = claim("web-scratch", "local");
    let mut own = foreign.clone();
    own.metadata.owner_references.push(OwnerReference {
        uid: "uid-of-web".into(),
        controller: Some(true),
        ..Default::default()
    });
    let cases = [
        (
            vec![],
            "waiting for ephemeral volume controller to create the persistentvolumeclaim \"web-scratch\"",
        ),
        (
            vec![foreign],
            "PVC default/web-scratch was not created for pod default/web (pod is not owner)",
        ),
        (vec![own], ""),
    ];
    for (claims, expected) in cases {
        let snapshot = two_nodes(&[], storage(&claims, &[volume("disk", "a")], &[waiting()]));
        assert_eq!(objections(&snapshot, &web)[0], expected);
    }
}
