//! Simulates the gateway for one ReplicaSet and its Pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use setpoint_controller::{Outcome, View};
use setpoint_model::{Target, owner};
use setpoint_proto::apps::ReplicaSet;
use setpoint_proto::core::{self, PodCondition};
use setpoint_proto::meta::{LabelSelector, ObjectMeta};
use setpoint_proto::{ApiError, Reason};
use setpoint_replicaset_controller::{Action, ReplicaSetView, World, plan, status};
use setpoint_workload::PodView;

pub const UID: &str = "set-uid";

#[derive(Clone, Debug)]
pub struct Cluster {
    pub set: ReplicaSet,
    pub pods: BTreeMap<String, core::Pod>,
    pub seed: u64,
    pub now: i64,
    revision: u64,
}

impl Cluster {
    pub fn new(replicas: i32) -> Self {
        let labels: BTreeMap<_, _> = [("app".to_owned(), "web".to_owned())].into();
        let mut set = ReplicaSet {
            metadata: ObjectMeta {
                name: "web".into(),
                namespace: "production".into(),
                uid: UID.into(),
                generation: 1,
                ..Default::default()
            },
            ..Default::default()
        };
        set.spec.replicas = Some(replicas);
        set.spec.template.metadata.labels = labels.clone();
        set.spec.selector = Some(LabelSelector {
            match_labels: labels,
            ..Default::default()
        });
        Self {
            set,
            pods: BTreeMap::new(),
            seed: 7,
            now: 1_000,
            revision: 0,
        }
    }

    /// Adds a Pod of the set, which is not scheduled.
    pub fn add(&mut self, name: &str) -> &mut core::Pod {
        self.revision += 1;
        let mut pod = core::Pod::default();
        pod.metadata.name = name.into();
        pod.metadata.namespace = "production".into();
        pod.metadata.uid = format!("{name}-{}", self.revision);
        pod.metadata.resource_version = self.revision.to_string();
        pod.metadata.labels = self.set.spec.template.metadata.labels.clone();
        pod.metadata.owner_references = vec![owner::reference_to(&self.set)];
        pod.metadata.creation_timestamp = Timestamp::from_second(self.now).unwrap().into();
        pod.status.phase = "Pending".into();
        self.pods.insert(name.into(), pod);
        self.change(name)
    }

    /// Returns a Pod to be changed, with a new resourceVersion.
    pub fn change(&mut self, name: &str) -> &mut core::Pod {
        self.revision += 1;
        let pod = self.pods.get_mut(name).unwrap();
        pod.metadata.resource_version = self.revision.to_string();
        pod
    }

    pub fn world(&self) -> World {
        World {
            set: Arc::new(ReplicaSetView::of(self.set.clone())),
            pods: self
                .pods
                .values()
                .cloned()
                .map(PodView::of)
                .map(Arc::new)
                .collect(),
            neighbours: Default::default(),
            now: Timestamp::from_second(self.now).unwrap(),
            seed: self.seed,
        }
    }

    /// Applies an action as the gateway does.
    pub fn apply(&mut self, action: &Action) -> Result<(), ApiError> {
        match action {
            Action::Create { name } => match self.pods.get(name) {
                Some(pod) if owned(pod) => {}
                Some(_) => return Err(ApiError::new(Reason::AlreadyExists, "taken")),
                None => drop(self.add(name)),
            },
            Action::Adopt(pod) => {
                let reference = owner::reference_to(&self.set);
                self.unchanged(pod)?
                    .metadata
                    .owner_references
                    .push(reference);
            }
            Action::Release(pod) => self.unchanged(pod)?.metadata.owner_references.clear(),
            Action::Delete(pod) => {
                let now = Timestamp::from_second(self.now).unwrap();
                self.unchanged(pod)?.metadata.deletion_timestamp = Some(now.into());
            }
        }
        Ok(())
    }

    fn unchanged(&mut self, pod: &Target) -> Result<&mut core::Pod, ApiError> {
        let name = &pod.key.name;
        let found = self
            .pods
            .get(name)
            .map(|found| Target::of(&PodView::of(found.clone()).meta));
        match found {
            Some(found) if found == *pod => Ok(self.change(name)),
            _ => Err(ApiError::new(Reason::Conflict, "changed")),
        }
    }

    /// Reconciles once and writes the status. Returns whether the plan was empty.
    pub fn reconcile(&mut self) -> bool {
        let world = self.world();
        let plan = plan(&world);
        plan.steps
            .iter()
            .for_each(|step| self.apply(&step.action).unwrap());
        let outcome = Outcome {
            done: plan.steps.len(),
            ..Outcome::of(plan)
        };
        if let Some(status) = status(&world, &outcome) {
            self.set.status = status;
        }
        self.seed += 1_000;
        outcome.plan.is_empty()
    }

    /// Reconciles until the plan is empty and has no delay.
    pub fn settle(&mut self) {
        let settled = |cluster: &mut Self| {
            let again = plan(&cluster.world()).again;
            cluster.now += again.map_or(0, |again| again.as_secs() as i64);
            cluster.reconcile() && again.is_none()
        };
        assert!((0..8).any(|_| settled(self)), "did not settle: {self:#?}");
    }

    /// Rejects all pending Pods, as a node without resources does.
    pub fn reject_all(&mut self) {
        let pending = self
            .pods
            .values()
            .filter(|pod| pod.status.phase == "Pending");
        let names: Vec<_> = pending.map(|pod| pod.metadata.name.clone()).collect();
        for name in names {
            self.reject(&name);
        }
    }

    /// Rejects a Pod, as a node without resources does.
    pub fn reject(&mut self, name: &str) {
        let now = Timestamp::from_second(self.now).unwrap();
        let status = &mut self.change(name).status;
        (status.phase, status.reason) = ("Failed".into(), "OutOfcpu".into());
        status.start_time = Some(now.into());
    }

    /// Removes the terminating Pods.
    pub fn finish_terminating(&mut self) {
        self.pods
            .retain(|_, pod| pod.metadata.deletion_timestamp.is_none());
    }

    /// Returns the number of active Pods.
    pub fn active(&self) -> usize {
        self.world().active().count()
    }

    /// Makes a Pod run on a node and be ready since a time.
    pub fn run(&mut self, name: &str, node: &str, since: i64) -> &mut core::Pod {
        let pod = self.change(name);
        pod.spec.node_name = node.into();
        pod.status.phase = "Running".into();
        pod.status.conditions = vec![PodCondition {
            r#type: "Ready".into(),
            status: "True".into(),
            last_transition_time: Timestamp::from_second(since).unwrap().into(),
            ..Default::default()
        }];
        pod
    }
}

pub fn owned(pod: &core::Pod) -> bool {
    owner::controller_of(&pod.metadata).is_some_and(|owner| owner.uid == UID)
}
