//! Simulates the gateway and the replicaset-controller for one Deployment.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use setpoint_controller::{Outcome, Plan, View};
use setpoint_deployment_controller::{
    Action, DeploymentView, ReplicaSetView, World, plan, revision, status,
};
use setpoint_model::{Target, Template, owner, template};
use setpoint_proto::apps::{self, ReplicaSet, RollingUpdateDeployment};
use setpoint_proto::meta::{IntOrString, LabelSelector};
use setpoint_proto::{ApiError, Reason};

pub const REVISION: &str = "deployment.kubernetes.io/revision";

/// Drops a field of the template, as a gateway may, and annotates the set, as the controller does then.
fn drop_hostname(set: &mut ReplicaSet) {
    let hash = |set: &ReplicaSet| Template::of(&set.spec.template).hash(None);
    let sent = hash(set);
    set.spec.template.spec.hostname.clear();
    let hashes = format!("{sent} as {}", hash(set));
    set.metadata
        .annotations
        .insert("setpoint.dev/stored-template".into(), hashes);
}

/// A set and its actual Pods, which its status may not reflect yet.
#[derive(Clone, Debug, Default)]
pub struct SimulatedSet {
    pub set: ReplicaSet,
    pub pods: i32,
    pub available: i32,
    pub terminating: i32,
    observed: i64,
}

impl SimulatedSet {
    pub fn of(set: ReplicaSet) -> Self {
        Self {
            set,
            ..Default::default()
        }
    }
}

#[derive(Clone, Debug)]
pub struct Cluster {
    pub deployment: apps::Deployment,
    pub sets: BTreeMap<String, SimulatedSet>,
    pub now: i64,
    /// Whether the gateway drops the host name from Pod templates.
    pub drops_hostname: bool,
    writes: u64,
}

impl Cluster {
    pub fn new(replicas: i32, surge: i32, unavailable: i32) -> Self {
        let labels: BTreeMap<_, _> = [("app".to_owned(), "web".to_owned())].into();
        let mut deployment = apps::Deployment::default();
        deployment.metadata.name = "web".into();
        deployment.metadata.namespace = "production".into();
        deployment.metadata.uid = "deployment-uid".into();
        deployment.metadata.generation = 1;
        let spec = &mut deployment.spec;
        spec.replicas = Some(replicas);
        spec.selector = Some(LabelSelector {
            match_labels: labels.clone(),
            ..Default::default()
        });
        spec.template.metadata.labels = labels;
        spec.strategy.rolling_update = Some(RollingUpdateDeployment {
            max_surge: Some(IntOrString::int(surge)),
            max_unavailable: Some(IntOrString::int(unavailable)),
        });
        spec.progress_deadline_seconds = Some(600);
        Self {
            deployment,
            sets: BTreeMap::new(),
            now: 1_000,
            drops_hostname: false,
            writes: 0,
        }
    }

    /// Returns a Deployment whose rollout is complete.
    pub fn settled(replicas: i32, surge: i32, unavailable: i32) -> Self {
        let mut cluster = Self::new(replicas, surge, unavailable);
        cluster.settle();
        cluster
    }

    /// Changes the spec as a user does.
    pub fn edit(&mut self, change: impl FnOnce(&mut apps::DeploymentSpec)) {
        change(&mut self.deployment.spec);
        self.deployment.metadata.generation += 1;
    }

    /// Changes the template. The host name stands for the image.
    pub fn set_image(&mut self, image: &str) {
        self.edit(|spec| spec.template.spec.hostname = image.into());
    }

    pub fn world(&self) -> World {
        let deployment = Arc::new(DeploymentView::of(self.deployment.clone()));
        let view = |simulated: &SimulatedSet| Arc::new(ReplicaSetView::of(simulated.set.clone()));
        World {
            sets: self.sets.values().map(view).collect(),
            name_conflict: self.sets.get(&deployment.set_name()).map(view),
            deployment,
            now: self.time(),
        }
    }

    pub fn plan(&self) -> Plan<Action> {
        plan(&self.world())
    }

    /// Applies an action as the gateway does.
    pub fn apply(&mut self, action: &Action) -> Result<(), ApiError> {
        self.writes += 1;
        match action.clone() {
            Action::Create {
                name,
                hash,
                replicas,
                annotations,
            } => {
                if self.sets.contains_key(&name) {
                    return Err(ApiError::new(Reason::AlreadyExists, name));
                }
                let mut set = self.blank(&name);
                set.spec.template = self.deployment.spec.template.clone();
                set.spec
                    .template
                    .metadata
                    .labels
                    .insert(template::LABEL.into(), hash);
                set.metadata.labels = set.spec.template.metadata.labels.clone();
                set.metadata.annotations = annotations;
                set.spec.replicas = Some(replicas);
                set.spec.min_ready_seconds = self.deployment.spec.min_ready_seconds;
                if self.drops_hostname {
                    drop_hostname(&mut set);
                }
                self.sets.insert(name, SimulatedSet::of(set));
            }
            Action::Scale {
                set,
                to,
                annotations,
                ..
            } => {
                let set = self.get(&set)?;
                set.spec.replicas = Some(to);
                set.metadata.generation += 1;
                set.metadata.annotations.extend(annotations);
            }
            Action::Refresh {
                set,
                annotations,
                min_ready_seconds,
            } => {
                let set = self.get(&set)?;
                set.spec.min_ready_seconds = min_ready_seconds;
                set.metadata.annotations.extend(annotations);
            }
            Action::Adopt(set) => {
                let reference = owner::reference_to(&self.deployment);
                self.get(&set)?.metadata.owner_references.push(reference);
            }
            Action::Release(set) => self.get(&set)?.metadata.owner_references.clear(),
            Action::Delete(set) => {
                self.get(&set)?;
                self.sets.remove(&set.key.name);
            }
        }
        Ok(())
    }

    /// Returns a new set of the Deployment without Pods and labels.
    pub fn blank(&mut self, name: &str) -> ReplicaSet {
        self.writes += 1;
        let mut set = ReplicaSet::default();
        set.metadata.name = name.into();
        set.metadata.namespace = "production".into();
        set.metadata.uid = format!("{name}-{}", self.writes);
        set.metadata.generation = 1;
        set.spec.replicas = Some(0);
        set.metadata.creation_timestamp =
            Timestamp::from_second(self.writes as i64).unwrap().into();
        set.metadata.owner_references = vec![owner::reference_to(&self.deployment)];
        set
    }

    fn get(&mut self, target: &Target) -> Result<&mut ReplicaSet, ApiError> {
        let found = self
            .sets
            .get_mut(&target.key.name)
            .map(|simulated| &mut simulated.set);
        found
            .filter(|set| set.metadata.uid == target.uid)
            .ok_or_else(|| ApiError::new(Reason::Conflict, "another"))
    }

    /// Reconciles once; dies after `steps` actions. Returns whether the plan was empty.
    pub fn reconcile(&mut self, steps: usize) -> bool {
        let world = self.world();
        let plan = plan(&world);
        let mut outcome = Outcome::of(plan);
        for step in outcome.plan.steps.iter().take(steps) {
            self.apply(&step.action).unwrap();
            outcome.done += 1;
        }
        if outcome.done == outcome.plan.steps.len() {
            self.write_status(&world, &outcome);
        }
        outcome.plan.is_empty()
    }

    /// Returns the outcome of the next plan before any of it is executed.
    pub fn planned(&self) -> Outcome<Action> {
        Outcome::of(self.plan())
    }

    /// Writes the status. Returns whether it had to be written.
    pub fn write_status(&mut self, world: &World, outcome: &Outcome<Action>) -> bool {
        let Some(status) = status(world, outcome) else {
            return false;
        };
        self.deployment.status = status;
        let revision = revision(world).map(|revision| (REVISION.to_owned(), revision.to_string()));
        self.deployment.metadata.annotations.extend(revision);
        true
    }

    /// Scales the Pods of a set as the replicaset-controller does: unavailable ones are deleted first.
    pub fn scale_pods(&mut self, index: usize) {
        self.scale_at_most(index, i32::MAX);
    }

    /// Creates or deletes at most `limit` Pods of a set.
    pub fn scale_at_most(&mut self, index: usize, limit: i32) {
        let Some(set) = self.at(index) else { return };
        let change = set.set.spec.replicas.unwrap() - set.pods;
        let wanted = set.pods + change.clamp(-limit, limit);
        set.terminating += (set.pods - wanted).max(0);
        set.pods = wanted;
        set.available = set.available.min(wanted);
        set.observed = set.set.metadata.generation;
    }

    /// Makes a Pod of a set available.
    pub fn make_available(&mut self, index: usize) {
        let Some(set) = self.at(index) else { return };
        set.available = set.pods.min(set.available + 1);
    }

    /// Writes the status of a set as the replicaset-controller does.
    pub fn report_status(&mut self, index: usize) {
        let Some(set) = self.at(index) else { return };
        let status = &mut set.set.status;
        status.replicas = set.pods;
        status.ready_replicas = set.available;
        status.available_replicas = set.available;
        status.terminating_replicas = Some(set.terminating);
        status.observed_generation = set.observed;
    }

    /// Removes the terminating Pods of a set.
    pub fn finish_terminating(&mut self, index: usize) {
        if let Some(set) = self.at(index) {
            set.terminating = 0;
        }
    }

    fn at(&mut self, index: usize) -> Option<&mut SimulatedSet> {
        let sets = self.sets.len().max(1);
        self.sets.values_mut().nth(index % sets)
    }

    /// Scales the Pods of all sets and writes their status.
    pub fn sync_sets(&mut self) {
        for index in 0..self.sets.len() {
            self.scale_pods(index);
            self.report_status(index);
        }
    }

    /// Runs all controllers until nothing changes.
    pub fn settle(&mut self) {
        for _ in 0..200 {
            let idle = self.reconcile(usize::MAX);
            for index in 0..self.sets.len() {
                self.scale_pods(index);
                self.make_available(index);
                self.finish_terminating(index);
                self.report_status(index);
            }
            let world = self.world();
            let quiet = idle && self.plan().is_empty() && status(&world, &self.planned()).is_none();
            if quiet && self.sets.values().all(|set| set.available == set.pods) {
                return;
            }
        }
        panic!("did not settle: {self:#?}");
    }

    /// Returns the number of Pods, and that of available ones.
    pub fn pods(&self) -> (i32, i32) {
        let sum = |number: fn(&SimulatedSet) -> i32| self.sets.values().map(number).sum();
        (sum(|set| set.pods), sum(|set| set.available))
    }

    /// Returns the number of Pods for each revision that has Pods.
    pub fn pods_by_revision(&self) -> Vec<(String, i32)> {
        let of = |simulated: &SimulatedSet| {
            (
                simulated.set.metadata.annotations[REVISION].clone(),
                simulated.pods,
            )
        };
        let mut pods_by_revision: Vec<_> = self
            .sets
            .values()
            .map(of)
            .filter(|(_, pods)| *pods > 0)
            .collect();
        pods_by_revision.sort();
        pods_by_revision
    }

    /// Returns the revisions of all sets.
    pub fn revisions(&self) -> Vec<String> {
        let of = |simulated: &SimulatedSet| simulated.set.metadata.annotations[REVISION].clone();
        let mut revisions: Vec<_> = self.sets.values().map(of).collect();
        revisions.sort();
        revisions
    }

    /// Returns status and reason of a condition.
    pub fn condition(&self, kind: &str) -> Option<(&str, &str)> {
        let conditions = &self.deployment.status.conditions;
        let condition = conditions
            .iter()
            .find(|condition| condition.r#type == kind)?;
        Some((&condition.status, &condition.reason))
    }

    pub fn time(&self) -> Timestamp {
        Timestamp::from_second(self.now).unwrap()
    }
}
