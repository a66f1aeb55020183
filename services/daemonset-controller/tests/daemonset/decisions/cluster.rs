//! Simulates the gateway, the scheduler and the nodes for one DaemonSet.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use setpoint_controller::{Claim, Outcome, View};
use setpoint_daemonset_controller::{Action, Backoff, DaemonSetView, Found, World, plan, status};
use setpoint_model::{Target, owner, placement};
use setpoint_proto::apps::{ControllerRevision, DaemonSet, RollingUpdateDaemonSet};
use setpoint_proto::core::{
    Affinity, Container, Node, NodeAffinity, NodeSelector, NodeSelectorRequirement,
    NodeSelectorTerm, Pod, PodCondition, Taint,
};
use setpoint_proto::meta::{IntOrString, LabelSelector, ObjectMeta};
use setpoint_proto::{ApiError, Reason};
use setpoint_workload::history::{HASH_LABEL, Write, new_revision};
use setpoint_workload::{PodView, RevisionView};

const NAMESPACE: &str = "production";
const GENERATION: &str = "deprecated.daemonset.template.generation";

/// The objects of the gateway, or a cache of them.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    pub set: DaemonSet,
    pub nodes: BTreeMap<String, Node>,
    pub pods: BTreeMap<String, Pod>,
    pub revisions: BTreeMap<String, ControllerRevision>,
}

#[derive(Clone, Debug)]
pub struct Cluster {
    pub objects: Objects,
    pub backoffs: HashMap<String, Backoff>,
    pub seed: u64,
    pub now: i64,
    revision: u64,
}

pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

impl Cluster {
    /// A DaemonSet with a rolling update of one node at a time, and these nodes.
    pub fn new(nodes: &[&str]) -> Self {
        let labels: BTreeMap<_, _> = [("app".to_owned(), "log".to_owned())].into();
        let metadata = ObjectMeta {
            name: "log".into(),
            namespace: NAMESPACE.into(),
            uid: "set-uid".into(),
            generation: 1,
            annotations: [(GENERATION.to_owned(), "1".to_owned())].into(),
            ..Default::default()
        };
        let mut set = DaemonSet {
            metadata,
            ..Default::default()
        };
        set.spec.template.metadata.labels = labels.clone();
        set.spec.template.spec.containers = vec![Container::default()];
        set.spec.selector = Some(LabelSelector {
            match_labels: labels,
            ..Default::default()
        });
        set.spec.revision_history_limit = Some(10);
        let objects = Objects {
            set,
            ..Default::default()
        };
        let mut cluster = Self {
            objects,
            backoffs: HashMap::new(),
            seed: 7,
            now: 10_000,
            revision: 0,
        };
        nodes.iter().for_each(|node| cluster.add_node(node));
        cluster.roll(0, 1);
        cluster
    }

    pub fn add_node(&mut self, name: &str) {
        let mut node = Node::default();
        node.metadata.name = name.into();
        node.metadata.uid = format!("{name}-uid");
        self.objects.nodes.insert(name.into(), node);
    }

    pub fn node(&mut self, name: &str) -> &mut Node {
        self.objects.nodes.get_mut(name).unwrap()
    }

    pub fn taint(&mut self, node: &str, effect: &str) {
        self.node(node).spec.taints = vec![Taint {
            key: "gpu".into(),
            effect: effect.into(),
            ..Default::default()
        }];
    }

    /// Sets a rolling update with these numbers for a surge and for unavailability.
    pub fn roll(&mut self, surge: i32, unavailable: i32) {
        let strategy = &mut self.objects.set.spec.update_strategy;
        strategy.r#type = "RollingUpdate".into();
        strategy.rolling_update = Some(RollingUpdateDaemonSet {
            max_surge: Some(IntOrString::int(surge)),
            max_unavailable: Some(IntOrString::int(unavailable)),
        });
    }

    /// Changes the template as a user does.
    pub fn set_image(&mut self, image: &str) {
        let set = &mut self.objects.set;
        let former = std::mem::replace(
            &mut set.spec.template.spec.containers[0].image,
            image.into(),
        );
        if former != image {
            set.metadata.generation += 1;
            let generation = set.metadata.annotations.get_mut(GENERATION).unwrap();
            *generation = (generation.parse::<i64>().unwrap() + 1).to_string();
        }
    }

    pub fn view(&self) -> DaemonSetView {
        DaemonSetView::of(self.objects.set.clone())
    }

    pub fn world(&self) -> World {
        self.world_of(&self.objects)
    }

    /// Returns the world that caches show.
    pub fn world_of(&self, seen: &Objects) -> World {
        fn views<V: View>(objects: &BTreeMap<String, V::Object>) -> Vec<Arc<V>>
        where
            V::Object: Clone,
        {
            objects.values().cloned().map(V::of).map(Arc::new).collect()
        }
        let set = DaemonSetView::of(seen.set.clone());
        let named = |name: &str| {
            let revision = seen.revisions.get(name)?;
            Some(Arc::new(RevisionView::of(revision.clone())))
        };
        World {
            revision_name: set.revision_name(named),
            set: Arc::new(set),
            nodes: views(&seen.nodes),
            pods: views(&seen.pods),
            revisions: views(&seen.revisions),
            backoffs: self.backoffs.clone(),
            now: at(self.now),
            seed: self.seed,
        }
    }

    fn next_revision(&mut self) -> String {
        self.revision += 1;
        self.revision.to_string()
    }

    /// Returns a Pod to be changed, with a new resourceVersion.
    pub fn change(&mut self, name: &str) -> &mut Pod {
        let revision = self.next_revision();
        let pod = self.objects.pods.get_mut(name).unwrap();
        pod.metadata.resource_version = revision;
        pod
    }

    /// Adds a Pod of the set for a node, which is not bound.
    pub fn add_pod(&mut self, name: &str, node: &str, hash: &str) -> &mut Pod {
        let metadata = ObjectMeta {
            name: name.into(),
            namespace: NAMESPACE.into(),
            uid: format!("{name}-{}", self.revision),
            labels: self.objects.set.spec.template.metadata.labels.clone(),
            owner_references: vec![owner::reference_to(&self.objects.set)],
            creation_timestamp: at(self.now).into(),
            ..Default::default()
        };
        let mut pod = Pod {
            metadata,
            ..Default::default()
        };
        pod.metadata.labels.insert(HASH_LABEL.into(), hash.into());
        let named = NodeSelectorRequirement {
            key: placement::NAME_FIELD.into(),
            operator: "In".into(),
            values: vec![node.into()],
        };
        let required = NodeSelector {
            node_selector_terms: vec![NodeSelectorTerm {
                match_fields: vec![named],
                ..Default::default()
            }],
        };
        pod.spec.affinity = Some(Affinity {
            node_affinity: Some(NodeAffinity {
                required_during_scheduling_ignored_during_execution: Some(required),
                ..Default::default()
            }),
            ..Default::default()
        });
        pod.status.phase = "Pending".into();
        self.objects.pods.insert(name.into(), pod);
        self.change(name)
    }

    /// Applies an action as the gateway does.
    pub fn apply(&mut self, action: &Action) -> Result<(), ApiError> {
        match action {
            Action::Create { name, node, hash } => match self.objects.pods.contains_key(name) {
                true => return Err(ApiError::new(Reason::AlreadyExists, "taken")),
                false => drop(self.add_pod(name, node, hash)),
            },
            Action::Delete { pod, node, found } => {
                let now = at(self.now);
                let unbound = self.unchanged(pod)?.spec.node_name.is_empty();
                match unbound || *found == Found::Lost {
                    true => drop(self.objects.pods.remove(&pod.key.name)),
                    false => {
                        self.change(&pod.key.name).metadata.deletion_timestamp = Some(now.into());
                    }
                }
                if *found == Found::Failed {
                    let next = Backoff::after(self.backoffs.get(node).copied(), now);
                    self.backoffs.insert(node.clone(), next);
                }
            }
            Action::Pod(Claim::Adopt(pod)) => {
                let reference = owner::reference_to(&self.objects.set);
                self.unchanged(pod)?
                    .metadata
                    .owner_references
                    .push(reference);
            }
            Action::Pod(Claim::Release(pod)) => {
                self.unchanged(pod)?.metadata.owner_references.clear();
            }
            Action::Revision(Write::Create { name, number }) => {
                let view = self.view();
                let labels = &view.template.metadata.labels;
                let mut revision =
                    new_revision::<DaemonSet>(&view.meta, labels, &view.data, name, *number);
                if self.objects.revisions.contains_key(&name.name) {
                    return Err(ApiError::new(Reason::AlreadyExists, "taken"));
                }
                revision.metadata.uid = format!("{}-{}", name.name, self.revision);
                revision.metadata.resource_version = self.next_revision();
                self.objects.revisions.insert(name.name.clone(), revision);
            }
            Action::Revision(Write::Renumber { revision, number }) => {
                let version = self.next_revision();
                let renumbered = self.objects.revisions.get_mut(&revision.key.name).unwrap();
                renumbered.revision = *number;
                renumbered.metadata.resource_version = version;
            }
            Action::Revision(Write::Delete(revision)) => {
                self.objects.revisions.remove(&revision.key.name);
            }
            Action::Revision(Write::Claim(claim)) => panic!("no revision is an orphan: {claim:?}"),
        }
        Ok(())
    }

    fn unchanged(&mut self, pod: &Target) -> Result<&mut Pod, ApiError> {
        let name = &pod.key.name;
        let found = self.objects.pods.get(name);
        let found = found.map(|found| Target::of(&PodView::of(found.clone()).meta));
        match found {
            Some(found) if found == *pod => Ok(self.change(name)),
            _ => Err(ApiError::new(Reason::Conflict, "changed")),
        }
    }

    /// Reconciles once and writes the status. Returns whether there was nothing to do.
    pub fn reconcile(&mut self) -> bool {
        let world = self.world();
        let plan = plan(&world);
        for step in &plan.steps {
            self.apply(&step.action).unwrap();
        }
        let outcome = Outcome {
            done: plan.steps.len(),
            ..Outcome::of(plan)
        };
        let reported = status(&world, &outcome);
        let idle = outcome.plan.is_empty() && reported.is_none();
        self.objects.set.status = reported.unwrap_or(self.objects.set.status.clone());
        self.seed += 1_000;
        idle
    }

    /// Binds all Pods, makes those that have not failed ready, and removes the terminating ones.
    pub fn run_all(&mut self) {
        let names: Vec<_> = self.objects.pods.keys().cloned().collect();
        for name in names {
            self.run(&name);
        }
        let pods = &mut self.objects.pods;
        pods.retain(|_, pod| pod.metadata.deletion_timestamp.is_none());
    }

    /// Binds a Pod and makes it ready, if it has not ended.
    pub fn run(&mut self, name: &str) {
        let (now, pod) = (at(self.now), self.change(name));
        if let Some(node) = placement::target_node(&pod.spec).map(str::to_owned) {
            pod.spec.node_name = node;
        }
        if matches!(pod.status.phase.as_str(), "Pending" | "Running") {
            pod.status.phase = "Running".into();
            set_ready(pod, true, now);
        }
    }

    /// Makes a Pod fail on its node.
    pub fn fail(&mut self, name: &str, phase: &str) {
        self.run(name);
        let (now, pod) = (at(self.now), self.change(name));
        pod.status.phase = phase.into();
        set_ready(pod, false, now);
    }

    /// Makes a Pod run without being ready.
    pub fn unready(&mut self, name: &str) {
        self.run(name);
        let (now, pod) = (at(self.now), self.change(name));
        set_ready(pod, false, now);
    }

    /// Reconciles and lets the Pods run until nothing is left to do.
    pub fn settle(&mut self) {
        for _ in 0..100 {
            let idle = self.reconcile();
            let again = plan(&self.world()).again;
            let left = |pod: &Pod| {
                let ready = setpoint_model::pod::is_ready(pod);
                !ready || pod.metadata.deletion_timestamp.is_some()
            };
            if idle && again.is_none() && !self.objects.pods.values().any(left) {
                return;
            }
            self.now += again.map_or(1, |again| again.as_secs() as i64 + 1);
            self.run_all();
        }
        panic!("did not settle: {self:#?}");
    }

    /// Returns the names of the Pods meant for a node that are not being deleted.
    pub fn on(&self, node: &str) -> Vec<&str> {
        let live = self.objects.pods.values().filter(|pod| {
            pod.metadata.deletion_timestamp.is_none()
                && placement::target_node(&pod.spec) == Some(node)
        });
        live.map(|pod| pod.metadata.name.as_str()).collect()
    }

    /// Returns the newest revision.
    pub fn newest(&self) -> &ControllerRevision {
        let revisions = self.objects.revisions.values();
        revisions.max_by_key(|revision| revision.revision).unwrap()
    }
}

fn set_ready(pod: &mut Pod, ready: bool, now: Timestamp) {
    let status = if ready { "True" } else { "False" };
    let known = pod.status.conditions.first();
    if known.is_none_or(|known| known.status != status) {
        pod.status.conditions = vec![PodCondition {
            r#type: "Ready".into(),
            status: status.into(),
            last_transition_time: now.into(),
            ..Default::default()
        }];
    }
}
