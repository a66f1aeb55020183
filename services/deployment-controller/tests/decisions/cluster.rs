//! A Deployment with its sets and their Pods, as the gateway and the replicaset-controller would keep them.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use setpoint_controller::{Outcome, Plan, View};
use setpoint_deployment_controller::{Action, Deployment, Set, World, plan, status};
use setpoint_model::{Target, Template, owner, template};
use setpoint_proto::apps::{self, ReplicaSet, RollingUpdateDeployment};
use setpoint_proto::meta::{IntOrString, LabelSelector};
use setpoint_proto::{ApiError, Reason};

pub const REVISION: &str = "deployment.kubernetes.io/revision";

/// What the gateway does to a template that it cannot keep, and what the controller notes about it.
fn forget(set: &mut ReplicaSet) {
    let hash = |set: &ReplicaSet| Template::of(&set.spec.template).hash(None);
    let sent = hash(set);
    set.spec.template.spec.hostname.clear();
    let hashes = format!("{sent} as {}", hash(set));
    set.metadata
        .annotations
        .insert("setpoint.dev/stored-template".into(), hashes);
}

/// A set and its Pods as they are, which its status tells only later.
#[derive(Clone, Debug, Default)]
pub struct Tracked {
    pub set: ReplicaSet,
    pub pods: i32,
    pub available: i32,
    pub terminating: i32,
    followed: i64,
}

impl Tracked {
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
    pub sets: BTreeMap<String, Tracked>,
    pub now: i64,
    /// Does the gateway lose a field of Pod templates?
    pub forgetful: bool,
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
            forgetful: false,
            writes: 0,
        }
    }

    /// A Deployment that has been rolled out and rests.
    pub fn settled(replicas: i32, surge: i32, unavailable: i32) -> Self {
        let mut cluster = Self::new(replicas, surge, unavailable);
        cluster.settle();
        cluster
    }

    /// The user changes the spec.
    pub fn edit(&mut self, change: impl FnOnce(&mut apps::DeploymentSpec)) {
        change(&mut self.deployment.spec);
        self.deployment.metadata.generation += 1;
    }

    /// The user wants another image.
    pub fn set_image(&mut self, image: &str) {
        self.edit(|spec| spec.template.spec.hostname = image.into());
    }

    pub fn world(&self) -> World {
        let deployment = Arc::new(Deployment::of(self.deployment.clone()));
        let view = |tracked: &Tracked| Arc::new(Set::of(tracked.set.clone()));
        World {
            sets: self.sets.values().map(view).collect(),
            namesake: self.sets.get(&deployment.set_name()).map(view),
            deployment,
            now: self.time(),
        }
    }

    pub fn plan(&self) -> Plan<Action> {
        plan(&self.world())
    }

    /// What the gateway does when the controller acts.
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
                if self.forgetful {
                    forget(&mut set);
                }
                self.sets.insert(name, Tracked::of(set));
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

    /// A set of the Deployment without anything in it.
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
            .map(|tracked| &mut tracked.set);
        found
            .filter(|set| set.metadata.uid == target.uid)
            .ok_or_else(|| ApiError::new(Reason::Conflict, "another"))
    }

    /// One whole round that dies after so many actions. Says whether there was nothing to do.
    pub fn round(&mut self, survives: usize) -> bool {
        let world = self.world();
        let plan = plan(&world);
        let mut outcome = Outcome::of(plan);
        for step in outcome.plan.steps.iter().take(survives) {
            self.apply(&step.action).unwrap();
            outcome.done += 1;
        }
        if outcome.done == outcome.plan.steps.len() {
            self.report(&world, &outcome);
        }
        outcome.plan.is_empty()
    }

    /// Returns the outcome of the next plan before any of it is executed.
    pub fn planned(&self) -> Outcome<Action> {
        Outcome::of(self.plan())
    }

    /// Writes down what the controller has to tell. Says whether that was anything.
    pub fn report(&mut self, world: &World, outcome: &Outcome<Action>) -> bool {
        let Some(report) = status(world, outcome) else {
            return false;
        };
        self.deployment.status = report.status;
        let revision = report
            .revision
            .map(|revision| (REVISION.to_owned(), revision.to_string()));
        self.deployment.metadata.annotations.extend(revision);
        true
    }

    /// The replicaset-controller creates and deletes Pods, those first that are not available.
    pub fn follow(&mut self, place: usize) {
        self.follow_in_part(place, i32::MAX);
    }

    /// It gets no further than so many Pods.
    pub fn follow_in_part(&mut self, place: usize, most: i32) {
        let Some(set) = self.at(place) else { return };
        let change = set.set.spec.replicas.unwrap() - set.pods;
        let wanted = set.pods + change.clamp(-most, most);
        set.terminating += (set.pods - wanted).max(0);
        set.pods = wanted;
        set.available = set.available.min(wanted);
        set.followed = set.set.metadata.generation;
    }

    /// A Pod becomes available.
    pub fn start(&mut self, place: usize) {
        let Some(set) = self.at(place) else { return };
        set.available = set.pods.min(set.available + 1);
    }

    /// The replicaset-controller says how it is.
    pub fn tell(&mut self, place: usize) {
        let Some(set) = self.at(place) else { return };
        let status = &mut set.set.status;
        status.replicas = set.pods;
        status.ready_replicas = set.available;
        status.available_replicas = set.available;
        status.terminating_replicas = Some(set.terminating);
        status.observed_generation = set.followed;
    }

    /// The stopping Pods are gone.
    pub fn end(&mut self, place: usize) {
        if let Some(set) = self.at(place) {
            set.terminating = 0;
        }
    }

    fn at(&mut self, place: usize) -> Option<&mut Tracked> {
        let places = self.sets.len().max(1);
        self.sets.values_mut().nth(place % places)
    }

    /// The replicaset-controller follows everywhere, and says so.
    pub fn follow_all(&mut self) {
        for place in 0..self.sets.len() {
            self.follow(place);
            self.tell(place);
        }
    }

    /// Everything goes its way until nothing changes any more.
    pub fn settle(&mut self) {
        for _ in 0..200 {
            let idle = self.round(usize::MAX);
            for place in 0..self.sets.len() {
                self.follow(place);
                self.start(place);
                self.end(place);
                self.tell(place);
            }
            let world = self.world();
            let quiet = idle && self.plan().is_empty() && status(&world, &self.planned()).is_none();
            if quiet && self.sets.values().all(|set| set.available == set.pods) {
                return;
            }
        }
        panic!("never came to rest: {self:#?}");
    }

    /// How many Pods there are, and how many of them are available.
    pub fn pods(&self) -> (i32, i32) {
        let sum = |number: fn(&Tracked) -> i32| self.sets.values().map(number).sum();
        (sum(|set| set.pods), sum(|set| set.available))
    }

    /// The sets with Pods: their revision and how many.
    pub fn spread(&self) -> Vec<(String, i32)> {
        let of = |tracked: &Tracked| {
            (
                tracked.set.metadata.annotations[REVISION].clone(),
                tracked.pods,
            )
        };
        let mut spread: Vec<_> = self
            .sets
            .values()
            .map(of)
            .filter(|(_, pods)| *pods > 0)
            .collect();
        spread.sort();
        spread
    }

    /// The revisions of all sets.
    pub fn revisions(&self) -> Vec<String> {
        let of = |tracked: &Tracked| tracked.set.metadata.annotations[REVISION].clone();
        let mut revisions: Vec<_> = self.sets.values().map(of).collect();
        revisions.sort();
        revisions
    }

    /// The reason of a condition, and whether it holds.
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
