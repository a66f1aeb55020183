//! Simulates the gateway, the nodes and the garbage collector for one StatefulSet.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use setpoint_controller::{Claim, Outcome, View};
use setpoint_model::{Meta, Target, owner};
use setpoint_proto::apps::{
    ControllerRevision, RollingUpdateStatefulSetStrategy, StatefulSet,
    StatefulSetPersistentVolumeClaimRetentionPolicy,
};
use setpoint_proto::core::{Container, PersistentVolumeClaim, Pod, PodCondition};
use setpoint_proto::meta::{IntOrString, LabelSelector, ObjectMeta, OwnerReference};
use setpoint_proto::{ApiError, Reason, Resource};
use setpoint_statefulset_controller::{
    Action, ClaimView, StatefulSetView, World, new_claim, new_pod, plan, repair, status,
};
use setpoint_workload::RevisionView;
use setpoint_workload::history::{self, HASH_LABEL, Write};

pub const UID: &str = "set-uid";
const NAMESPACE: &str = "production";

#[derive(Clone, Debug)]
pub struct Cluster {
    pub set: StatefulSet,
    pub pods: BTreeMap<String, Pod>,
    pub claims: BTreeMap<String, PersistentVolumeClaim>,
    pub revisions: BTreeMap<String, ControllerRevision>,
    pub now: i64,
    revision: u64,
}

impl Cluster {
    /// A set of ordered Pods without claims.
    pub fn new(replicas: i32) -> Self {
        let labels: BTreeMap<_, _> = [("app".to_owned(), "web".to_owned())].into();
        let mut set = StatefulSet {
            metadata: ObjectMeta {
                name: "web".into(),
                namespace: NAMESPACE.into(),
                uid: UID.into(),
                generation: 1,
                ..Default::default()
            },
            ..Default::default()
        };
        set.spec.replicas = Some(replicas);
        set.spec.service_name = "headless".into();
        set.spec.template.metadata.labels = labels.clone();
        set.spec.template.spec.containers = vec![Container::default()];
        set.spec.selector = Some(LabelSelector {
            match_labels: labels,
            ..Default::default()
        });
        set.spec.pod_management_policy = "OrderedReady".into();
        set.spec.update_strategy.r#type = "RollingUpdate".into();
        set.spec.update_strategy.rolling_update = Some(Default::default());
        Self {
            set,
            pods: BTreeMap::new(),
            claims: BTreeMap::new(),
            revisions: BTreeMap::new(),
            now: 1_000,
            revision: 0,
        }
    }

    pub fn parallel(mut self) -> Self {
        self.set.spec.pod_management_policy = "Parallel".into();
        self
    }

    /// Adds a claim template.
    pub fn with_claims(mut self) -> Self {
        let mut claim = PersistentVolumeClaim::default();
        claim.metadata.name = "data".into();
        self.set.spec.volume_claim_templates.push(claim);
        self
    }

    pub fn retain(&mut self, when_deleted: &str, when_scaled: &str) {
        self.set.spec.persistent_volume_claim_retention_policy =
            Some(StatefulSetPersistentVolumeClaimRetentionPolicy {
                when_deleted: when_deleted.into(),
                when_scaled: when_scaled.into(),
            });
    }

    pub fn image(&mut self, image: &str) {
        self.set.spec.template.spec.containers[0].image = image.into();
        self.set.metadata.generation += 1;
    }

    pub fn rolling(&mut self) -> &mut RollingUpdateStatefulSetStrategy {
        let strategy = &mut self.set.spec.update_strategy;
        strategy.rolling_update.get_or_insert_default()
    }

    pub fn partition(&mut self, partition: i32) {
        self.rolling().partition = Some(partition);
    }

    pub fn max_unavailable(&mut self, max: IntOrString) {
        self.rolling().max_unavailable = Some(max);
    }

    pub fn world(&self) -> World {
        let set = StatefulSetView::of(self.set.clone());
        let taken = |name: &str| {
            let revision = self.revisions.get(name).cloned().map(RevisionView::of);
            revision.is_some_and(|it| !it.meta.is_owned_by(UID) || it.data != set.snapshot)
        };
        let collisions = set.status.collision_count.unwrap_or_default();
        let claim = |(name, claim): (&String, &PersistentVolumeClaim)| {
            (name.clone(), Arc::new(ClaimView::of(claim.clone())))
        };
        World {
            revision_name: set.snapshot.name(&set.meta, collisions, taken),
            set: set.into(),
            pods: views(&self.pods),
            revisions: views(&self.revisions),
            claims: self.claims.iter().map(claim).collect(),
            now: time(self.now),
        }
    }

    /// Applies an action as the gateway does. The world is the one that it was planned for.
    pub fn apply(&mut self, world: &World, action: &Action) -> Result<(), ApiError> {
        let reference = owner::reference_to(&self.set);
        match action {
            Action::Adopt(pod) => self.pod(pod)?.metadata.owner_references.push(reference),
            Action::Release(pod) => self.pod(pod)?.metadata.owner_references.clear(),
            Action::Revision(Write::Claim(Claim::Adopt(revision))) => {
                let meta = &mut self.change_revision(revision)?.metadata;
                meta.owner_references.push(reference);
            }
            Action::Revision(Write::Claim(Claim::Release(revision))) => {
                let meta = &mut self.change_revision(revision)?.metadata;
                meta.owner_references.clear();
            }
            Action::Revision(Write::Create { name, number }) => {
                let (set, data) = (&world.set, &world.set.snapshot);
                let labels = &set.template.metadata.labels;
                let revision =
                    history::new_revision::<StatefulSet>(&set.meta, labels, data, name, *number);
                let version = self.next();
                create(&mut self.revisions, revision, version)?;
            }
            Action::Revision(Write::Renumber { revision, number }) => {
                self.change_revision(revision)?.revision = *number;
            }
            Action::Revision(Write::Delete(revision)) => {
                self.change_revision(revision)?;
                self.revisions.remove(&revision.key.name);
            }
            Action::CreateClaim { claim, ordinal } => {
                let claim = new_claim(&world.set, claim, *ordinal).unwrap();
                let version = self.next();
                create(&mut self.claims, claim, version)?;
            }
            Action::OwnClaim { claim, owners, .. } => {
                let version = self.next();
                let claim = unchanged(&mut self.claims, claim, version)?;
                let owners = owners.iter().map(|owner| owner.0.clone());
                claim.metadata.owner_references = owners.collect();
            }
            Action::AwaitClaim { .. } => {
                return Err(ApiError::new(Reason::InternalError, "being deleted"));
            }
            Action::Create {
                ordinal, revision, ..
            } => {
                let mut pod = new_pod(world, *ordinal, revision).unwrap();
                pod.status.phase = "Pending".into();
                let version = self.next();
                create(&mut self.pods, pod, version)?;
            }
            Action::Repair { pod, ordinal } => {
                let pod = self.pod(pod)?;
                repair(&world.set, pod, *ordinal);
            }
            Action::Delete(pod) => {
                let now = time(self.now);
                self.pod(pod)?.metadata.deletion_timestamp = Some(now.into());
            }
        }
        Ok(())
    }

    fn next(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }

    fn pod(&mut self, target: &Target) -> Result<&mut Pod, ApiError> {
        let version = self.next();
        unchanged(&mut self.pods, target, version)
    }

    fn change_revision(&mut self, target: &Target) -> Result<&mut ControllerRevision, ApiError> {
        let version = self.next();
        unchanged(&mut self.revisions, target, version)
    }

    /// Returns a Pod to be changed, with a new resourceVersion.
    pub fn change(&mut self, name: &str) -> &mut Pod {
        let version = self.next();
        let pod = self.pods.get_mut(name).unwrap();
        pod.metadata.resource_version = version.to_string();
        pod
    }

    /// Reconciles once and writes the status. Returns whether the plan was empty.
    pub fn reconcile(&mut self) -> bool {
        let world = self.world();
        let plan = plan(&world);
        let mut outcome = Outcome::of(plan.clone());
        for step in &plan.steps {
            match self.apply(&world, &step.action) {
                Ok(()) => outcome.done += 1,
                Err(error) => {
                    outcome.failed = Some(error);
                    break;
                }
            }
        }
        if let Some(status) = status(&world, &outcome) {
            self.set.status = status;
        }
        plan.is_empty()
    }

    /// Lets the nodes and the garbage collector do their work: Pods become ready, terminating ones end, and objects
    /// whose owner is gone are deleted.
    pub fn run(&mut self) {
        let names: Vec<_> = self.pods.keys().cloned().collect();
        for name in names {
            let pod = &self.pods[&name];
            if pod.metadata.deletion_timestamp.is_some() {
                self.pods.remove(&name);
            } else if pod.status.phase != "Failed" {
                self.ready(&name);
            }
        }
        self.collect_garbage();
    }

    pub fn collect_garbage(&mut self) {
        let pods = self.pods.values().map(|pod| pod.metadata.uid.clone());
        let uids: HashSet<_> = pods.chain([UID.to_owned()]).collect();
        let alive = |owner: &OwnerReference| uids.contains(&owner.uid);
        self.claims.retain(|_, claim| {
            let owners = &claim.metadata.owner_references;
            let collected = !owners.is_empty() && !owners.iter().any(alive);
            !collected && claim.metadata.deletion_timestamp.is_none()
        });
    }

    /// Makes a Pod run and be ready from now on, unless it is already.
    pub fn ready(&mut self, name: &str) {
        let now = time(self.now);
        let pod = self.change(name);
        if !pod.status.conditions.is_empty() && pod.status.conditions[0].status == "True" {
            return;
        }
        pod.status.phase = "Running".into();
        pod.status.conditions = vec![PodCondition {
            r#type: "Ready".into(),
            status: "True".into(),
            last_transition_time: now.into(),
            ..Default::default()
        }];
    }

    pub fn unready(&mut self, name: &str) {
        self.change(name).status.conditions.clear();
    }

    pub fn fail(&mut self, name: &str) {
        let pod = self.change(name);
        pod.status.phase = "Failed".into();
        pod.status.conditions.clear();
    }

    pub fn terminate(&mut self, name: &str) {
        let now = time(self.now);
        self.change(name).metadata.deletion_timestamp = Some(now.into());
    }

    /// Runs nodes and controller until neither has anything to do.
    pub fn settle(&mut self) {
        let settled = |cluster: &mut Self| {
            cluster.run();
            let again = plan(&cluster.world()).again;
            cluster.now += again.map_or(0, |again| again.as_secs() as i64);
            let before = cluster.set.status.clone();
            cluster.reconcile() && again.is_none() && before == cluster.set.status
        };
        let rounds = 40 + 8 * self.pods.len() + 8 * self.set.spec.replicas.unwrap() as usize;
        assert!(
            (0..rounds).any(|_| settled(self)),
            "did not settle: {self:#?}"
        );
    }

    /// Returns the steps of the next plan, as the decision log shows them.
    pub fn steps(&self) -> Vec<String> {
        let steps = plan(&self.world()).steps.into_iter();
        steps.map(|step| brief(&step.action)).collect()
    }

    /// Returns the names of the Pods that are not terminating.
    pub fn names(&self) -> Vec<&str> {
        let pods = self.pods.values().map(|pod| &pod.metadata);
        let alive = pods.filter(|meta| meta.deletion_timestamp.is_none());
        alive.map(|meta| &*meta.name).collect()
    }

    /// Returns the image of a Pod.
    pub fn image_of(&self, pod: &str) -> &str {
        &self.pods[pod].spec.containers[0].image
    }

    /// Returns the name of the revision of a Pod.
    pub fn revision_of(&self, pod: &str) -> &str {
        &self.pods[pod].metadata.labels[HASH_LABEL]
    }
}

/// Returns an action as one word and the name of its object.
pub fn brief(action: &Action) -> String {
    match action {
        Action::Create { name, .. } => format!("create {name}"),
        Action::Delete(pod) => format!("delete {}", pod.key.name),
        Action::Repair { pod, .. } => format!("repair {}", pod.key.name),
        Action::CreateClaim { claim, .. } => format!("claim {claim}"),
        Action::OwnClaim { claim, .. } => format!("own {}", claim.key.name),
        Action::AwaitClaim { claim, .. } => format!("await {claim}"),
        Action::Adopt(pod) => format!("adopt {}", pod.key.name),
        Action::Release(pod) => format!("release {}", pod.key.name),
        Action::Revision(Write::Create { number, .. }) => format!("revision {number}"),
        Action::Revision(Write::Renumber { number, .. }) => format!("renumber {number}"),
        Action::Revision(Write::Delete(_)) => "delete revision".to_owned(),
        Action::Revision(Write::Claim(Claim::Adopt(_))) => "adopt revision".to_owned(),
        Action::Revision(Write::Claim(Claim::Release(_))) => "release revision".to_owned(),
    }
}

pub fn time(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn views<V: View>(objects: &BTreeMap<String, V::Object>) -> Vec<Arc<V>> {
    let views = objects.values().cloned().map(V::of);
    views.map(Arc::new).collect()
}

fn create<T: Resource>(
    objects: &mut BTreeMap<String, T>,
    mut object: T,
    version: u64,
) -> Result<(), ApiError> {
    let name = object.meta().name.clone();
    if let Some(taken) = objects.get(&name) {
        let ours = owner::controller_of(taken.meta()).is_some_and(|owner| owner.uid == UID);
        let taken = ApiError::new(Reason::AlreadyExists, "taken");
        return if ours { Ok(()) } else { Err(taken) };
    }
    let meta = object.meta_mut();
    meta.uid = format!("{name}-{version}");
    meta.resource_version = version.to_string();
    objects.insert(name, object);
    Ok(())
}

fn unchanged<'a, T: Resource>(
    objects: &'a mut BTreeMap<String, T>,
    target: &Target,
    version: u64,
) -> Result<&'a mut T, ApiError> {
    let conflict = || ApiError::new(Reason::Conflict, "changed");
    let object = objects.get_mut(&target.key.name).ok_or_else(conflict)?;
    if Target::of(&Meta::of(object.meta())) != *target {
        return Err(conflict());
    }
    object.meta_mut().resource_version = version.to_string();
    Ok(object)
}
