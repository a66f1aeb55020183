//! Properties of both plans, over random claims and volumes.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;

use proptest::prelude::*;
use setpoint_controller::{Outcome, View as _};
use setpoint_model::volume::reserved_for;
use setpoint_persistentvolume_controller::claim::{self, ClaimView};
use setpoint_persistentvolume_controller::volume::{self, ClaimState, VolumeView};
use setpoint_persistentvolume_controller::{ClassView, NodeView};
use setpoint_proto::core::{Node, ObjectReference, PersistentVolume, PersistentVolumeClaim};
use setpoint_proto::meta::Quantity;
use setpoint_proto::storage::StorageClass;

const NAMESPACE: &str = "shop";
const PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const LOCAL_PATH: &str = "setpoint.dev/local-path";
/// Provisioning takes the most writes: protect, provisioner, volume, claim, and the phases.
const ROUNDS: usize = 12;

/// The objects of a cluster, without a gateway.
#[derive(Clone, Debug)]
struct Cluster {
    claims: Vec<PersistentVolumeClaim>,
    volumes: Vec<PersistentVolume>,
    /// Whether the node `one`, which has a folder for volumes, exists.
    has_node: bool,
}

fn storage(gibibytes: u8) -> std::collections::BTreeMap<String, Quantity> {
    [(
        "storage".to_owned(),
        Quantity::new(format!("{gibibytes}Gi")),
    )]
    .into()
}

prop_compose! {
    fn any_claim(n: usize)(
        size in 1_u8..4,
        class in prop::sample::select(vec![Some(""), Some("standard"), None]),
        selected in any::<bool>(),
        named in prop::option::weighted(0.2, 0_usize..4),
    ) -> PersistentVolumeClaim {
        let mut claim = PersistentVolumeClaim::default();
        let meta = &mut claim.metadata;
        (meta.namespace, meta.name, meta.uid) = (NAMESPACE.into(), format!("c{n}"), format!("uid-{n}"));
        if selected {
            meta.annotations.insert(SELECTED_NODE.into(), "one".into());
        }
        claim.spec.storage_class_name = class.map(str::to_owned);
        claim.spec.access_modes = vec!["ReadWriteOnce".into()];
        claim.spec.resources.requests = storage(size);
        claim.spec.volume_name = named.map(|n| format!("v{n}")).unwrap_or_default();
        claim
    }
}

prop_compose! {
    fn any_volume(n: usize)(
        size in 1_u8..4,
        class in prop::sample::select(vec!["", "standard"]),
        policy in prop::sample::select(vec!["Retain", "Delete", "Recycle"]),
        reserved in prop::option::weighted(0.3, (0_usize..3, any::<bool>())),
    ) -> PersistentVolume {
        let mut volume = PersistentVolume::default();
        (volume.metadata.name, volume.metadata.uid) = (format!("v{n}"), format!("v{n}"));
        volume.spec.capacity = storage(size);
        volume.spec.access_modes = vec!["ReadWriteOnce".into()];
        volume.spec.storage_class_name = class.into();
        volume.spec.persistent_volume_reclaim_policy = policy.into();
        volume.spec.claim_ref = reserved.map(|(claim, by_uid)| ObjectReference {
            namespace: NAMESPACE.into(),
            name: format!("c{claim}"),
            uid: if by_uid { format!("uid-{claim}") } else { String::new() },
            ..Default::default()
        });
        volume
    }
}

prop_compose! {
    fn any_cluster()(
        claims in (any_claim(0), any_claim(1)),
        volumes in (any_volume(0), any_volume(1), any_volume(2)),
        count in 0_usize..4,
        has_node in any::<bool>(),
    ) -> Cluster {
        let mut volumes = vec![volumes.0, volumes.1, volumes.2];
        volumes.truncate(count);
        Cluster { claims: vec![claims.0, claims.1], volumes, has_node }
    }
}

fn class() -> ClassView {
    let mut class = StorageClass::default();
    class.metadata.name = "standard".into();
    class.provisioner = LOCAL_PATH.into();
    class.volume_binding_mode = Some("WaitForFirstConsumer".into());
    ClassView::of(class)
}

fn node() -> NodeView {
    let mut node = Node::default();
    node.metadata.name = "one".into();
    let annotations = &mut node.metadata.annotations;
    annotations.insert(LOCAL_PATH.into(), "/volumes".into());
    NodeView::of(node)
}

fn add_finalizer(finalizers: &mut Vec<String>, finalizer: &str) {
    finalizers.push(finalizer.to_owned());
}

impl Cluster {
    /// The observations of the claim controller about a claim.
    fn claim_world(&self, n: usize) -> claim::World {
        let view = Arc::new(ClaimView::of(self.claims[n].clone()));
        let volumes = self.volumes.iter();
        let volumes: Vec<_> = volumes
            .map(|volume| Arc::new(VolumeView::of(volume.clone())))
            .collect();
        let (bound, own) = (view.claim.is_bound(), reserved_for(&view.meta().key));
        let named = volumes.iter();
        let mut named = named.filter(|volume| volume.volume.name() == view.claim.volume);
        let is_candidate = |volume: &&Arc<VolumeView>| {
            !bound
                && [&*own, view.claim.class()]
                    .map(Some)
                    .contains(&volume.tag())
        };
        claim::World {
            named: named.next().cloned(),
            volumes: volumes.iter().filter(is_candidate).cloned().collect(),
            class: (view.claim.class() == "standard").then(|| Arc::new(class())),
            default_class: None,
            node: self.has_node.then(|| Arc::new(node())),
            pods: Vec::new(),
            claim: view,
        }
    }

    /// The observations of the volume controller about a volume.
    fn volume_world(&self, n: usize) -> volume::World {
        let view = Arc::new(VolumeView::of(self.volumes[n].clone()));
        let claim = match &view.volume.claim {
            None => ClaimState::None,
            Some(reserved) if reserved.uid.is_empty() => ClaimState::Named,
            Some(reserved) => {
                let mut claims = self.claims.iter();
                let same = |claim: &&PersistentVolumeClaim| claim.metadata.uid == reserved.uid;
                match claims.find(same).map(|claim| &*claim.spec.volume_name) {
                    None => ClaimState::Gone,
                    Some("") => ClaimState::Unbound,
                    Some(name) if name == view.volume.name() => ClaimState::Bound,
                    Some(_) => ClaimState::BoundElsewhere,
                }
            }
        };
        volume::World {
            volume: view,
            claim,
            missing_node: None,
        }
    }

    /// Executes the plan for a claim. Returns whether anything was written.
    fn reconcile_claim(&mut self, n: usize) -> bool {
        let world = self.claim_world(n);
        let plan = claim::plan(&world);
        assert!(plan.steps.len() < 2, "writes of one object in one plan");
        let mut wrote = false;
        for step in &plan.steps {
            wrote |= !matches!(step.action, claim::Action::Report(_));
            self.act_on_claim(n, &step.action);
        }
        let status = claim::status(&world, &Outcome::of(plan));
        wrote |= status.is_some();
        if let Some(status) = status {
            self.claims[n].status = status;
        }
        wrote
    }

    fn act_on_claim(&mut self, n: usize, action: &claim::Action) {
        let claim = &mut self.claims[n];
        let annotations = &mut claim.metadata.annotations;
        match action {
            claim::Action::Protect => {
                add_finalizer(
                    &mut claim.metadata.finalizers,
                    "kubernetes.io/pvc-protection",
                );
            }
            claim::Action::Unprotect => claim.metadata.finalizers.clear(),
            claim::Action::SetClass(class) => claim.spec.storage_class_name = Some(class.clone()),
            claim::Action::BindVolume(view) => {
                let name = view.volume.name();
                let mut volumes = self.volumes.iter_mut();
                let volume = volumes.find(|volume| volume.metadata.name == name).unwrap();
                if volume.spec.claim_ref.is_none() {
                    let annotations = &mut volume.metadata.annotations;
                    annotations.insert(BOUND_BY_CONTROLLER.into(), "yes".into());
                }
                volume.spec.claim_ref = Some(ObjectReference {
                    namespace: NAMESPACE.into(),
                    name: claim.metadata.name.clone(),
                    uid: claim.metadata.uid.clone(),
                    ..Default::default()
                });
            }
            claim::Action::BindClaim(view) => {
                annotations.insert(BIND_COMPLETED.into(), "yes".into());
                view.volume.name().clone_into(&mut claim.spec.volume_name);
            }
            claim::Action::SetProvisioner(provisioner) => {
                annotations.insert(PROVISIONER.into(), provisioner.clone());
            }
            claim::Action::Provision(volume) => self.volumes.push(PersistentVolume::clone(volume)),
            claim::Action::ForgetNode(_) => drop(annotations.remove(SELECTED_NODE)),
            claim::Action::Report(_) => {}
        }
    }

    /// Executes the plan for a volume. Returns whether anything was written.
    fn reconcile_volume(&mut self, n: usize) -> bool {
        let world = self.volume_world(n);
        let plan = volume::plan(&world);
        assert!(plan.steps.len() < 2, "writes of one object in one plan");
        let mut wrote = !plan.is_empty();
        for step in &plan.steps {
            let volume = &mut self.volumes[n];
            match &step.action {
                volume::Action::Label { node } => {
                    let labels = &mut volume.metadata.labels;
                    labels.insert("setpoint.dev/node".into(), node.clone());
                }
                volume::Action::Protect => {
                    add_finalizer(
                        &mut volume.metadata.finalizers,
                        "kubernetes.io/pv-protection",
                    );
                }
                volume::Action::Unprotect | volume::Action::Abandon { .. } => {
                    volume.metadata.finalizers.clear();
                }
                volume::Action::Unbind => {
                    let made = volume.metadata.annotations.remove(BOUND_BY_CONTROLLER);
                    match (made, &mut volume.spec.claim_ref) {
                        (None, Some(claim)) => claim.uid.clear(),
                        _ => volume.spec.claim_ref = None,
                    }
                }
                volume::Action::Delete { .. } => {
                    volume.metadata.deletion_timestamp = Some(jiff::Timestamp::UNIX_EPOCH.into());
                }
            }
        }
        let status = volume::status(&world, &Outcome::of(plan));
        wrote |= status.is_some();
        if let Some(status) = status {
            self.volumes[n].status = status;
        }
        wrote
    }

    /// Reconciles each object once. Returns whether anything was written.
    fn reconcile(&mut self) -> bool {
        let mut wrote = false;
        for n in 0..self.claims.len() {
            wrote |= self.reconcile_claim(n);
        }
        for n in 0..self.volumes.len() {
            wrote |= self.reconcile_volume(n);
        }
        wrote
    }

    fn settle(&mut self) -> bool {
        (0..ROUNDS).any(|_| !self.reconcile())
    }
}

proptest! {
    /// Each write is a plan of its own, so that a crash after any of them leaves a state that is among these.
    #[test]
    fn claims_and_volumes_settle_and_then_nothing_is_written(mut cluster in any_cluster()) {
        prop_assert!(cluster.settle(), "{:#?}", cluster);
        prop_assert!(!cluster.reconcile());
    }

    /// A volume that a user has reserved for the claim may be smaller, as upstream.
    #[test]
    fn a_bound_claim_has_a_volume_of_its_own_that_is_large_enough(mut cluster in any_cluster()) {
        let reserved = cluster.volumes.iter().filter(|volume| volume.spec.claim_ref.is_some());
        let reserved: Vec<_> = reserved.map(|volume| volume.metadata.name.clone()).collect();
        cluster.settle();
        for (n, claim) in cluster.claims.iter().enumerate() {
            if claim.status.phase != "Bound" {
                continue;
            }
            let world = cluster.claim_world(n);
            let volume = &world.named.as_ref().unwrap().volume;
            prop_assert_eq!(&volume.claim.as_ref().unwrap().uid, &claim.metadata.uid);
            let is_enough = volume.capacity >= world.claim.claim.size;
            prop_assert!(is_enough || reserved.iter().any(|name| name == volume.name()), "{:?}", volume);
            prop_assert_eq!(&*volume.phase, "Bound");
        }
    }

    #[test]
    fn the_order_of_the_caches_does_not_matter(cluster in any_cluster()) {
        for n in 0..cluster.claims.len() {
            let world = cluster.claim_world(n);
            let mut reversed = world.clone();
            reversed.volumes.reverse();
            let actions = |world: &claim::World| {
                let steps = claim::plan(world).steps.into_iter();
                steps.map(|step| step.action).collect::<Vec<_>>()
            };
            prop_assert_eq!(actions(&world), actions(&reversed));
        }
    }

    /// A claim that nobody uses is let go, and nothing is made for it or said about it.
    #[test]
    fn what_is_being_deleted_is_let_go(mut cluster in any_cluster(), before in 0..ROUNDS) {
        (0..before).for_each(|_| _ = cluster.reconcile());
        let deleted = jiff::Timestamp::UNIX_EPOCH;
        let claims = cluster.claims.iter_mut();
        claims.for_each(|claim| claim.metadata.deletion_timestamp = Some(deleted.into()));
        let volumes = cluster.volumes.iter_mut();
        volumes.for_each(|volume| volume.metadata.deletion_timestamp = Some(deleted.into()));
        for n in 0..cluster.claims.len() {
            let world = cluster.claim_world(n);
            let is_protected = world.claim.is_protected();
            let steps = claim::plan(&world).steps;
            let lets_go = steps.iter().any(|step| step.action == claim::Action::Unprotect);
            prop_assert_eq!(lets_go, is_protected);
            let made = |action: &claim::Action| matches!(
                action,
                claim::Action::Provision(_) | claim::Action::SetProvisioner(_) | claim::Action::Protect
            );
            prop_assert!(!steps.iter().any(|step| made(&step.action)), "{:?}", steps);
        }
        for n in 0..cluster.volumes.len() {
            let world = cluster.volume_world(n);
            let in_use = world.volume.volume.phase == "Bound" || world.claim == ClaimState::Bound;
            for step in volume::plan(&world).steps {
                match step.action {
                    volume::Action::Unprotect => prop_assert!(!in_use),
                    volume::Action::Unbind => prop_assert_eq!(&world.claim, &ClaimState::BoundElsewhere),
                    other => prop_assert!(false, "{:?}", other),
                }
            }
        }
    }

    #[test]
    fn a_volume_whose_claim_is_gone_is_released_and_reclaimed_by_its_policy(
        mut cluster in any_cluster(),
        provisioned in any::<bool>(),
    ) {
        if provisioned {
            for volume in &mut cluster.volumes {
                let annotations = &mut volume.metadata.annotations;
                annotations.insert("pv.kubernetes.io/provisioned-by".into(), LOCAL_PATH.into());
            }
        }
        cluster.settle();
        cluster.claims.clear();
        prop_assert!(cluster.settle());
        for volume in &cluster.volumes {
            let reserved = volume.spec.claim_ref.as_ref();
            let by_uid = reserved.is_some_and(|claim| !claim.uid.is_empty());
            let policy = volume.spec.persistent_volume_reclaim_policy.as_str();
            let deletable = volume.metadata.annotations.contains_key("pv.kubernetes.io/provisioned-by");
            let expected = match policy {
                _ if !by_uid => "Available",
                "Recycle" => "Failed",
                "Delete" if !deletable => "Failed",
                _ => "Released",
            };
            prop_assert_eq!(&*volume.status.phase, expected, "{:?}", volume);
            let deleted = volume.metadata.deletion_timestamp.is_some();
            prop_assert_eq!(deleted, by_uid && policy == "Delete" && deletable);
        }
    }
}
