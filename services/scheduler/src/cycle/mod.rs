//! The scheduling cycle: one snapshot and one plan for all waiting Pods; the bindings are concurrent.

mod changes;
mod note;
mod outcome;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::decision_log::Note;
use setpoint_controller::{
    Cascade, Client, Delta, Inputs, Outcome, Plan, QueueHandle, Receipt, Reconciler, Recorder, Step,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::ApiError;
use setpoint_proto::core::Pod;

use crate::act::Actor;
use crate::assumed::Assumed;
use crate::cluster_event::ClusterEvent;
use crate::plan::{Action, plan};
use crate::pod::PodView;
use crate::profile::Profiles;
use crate::snapshot::{Caches, Snapshot};
use crate::unschedulable::{LONGEST_WAIT, Observed, Unschedulable};

/// The delay after a decision that panicked.
const PANICKED: Duration = Duration::from_secs(10);

/// The reconciler of Pods without a node.
pub struct Scheduler {
    /// The profiles of the Pods that it schedules.
    pub profiles: Profiles,
    /// The caches.
    pub caches: Caches,
    /// The recorder of Events.
    pub events: Recorder,
    /// Pods that fit nowhere.
    pub unschedulable: Unschedulable,
    /// Bindings without a response.
    pub assumed: Assumed,
    /// The queue of the current term.
    pub queue: QueueHandle,
}

/// A Pod and its decision.
pub struct Decided {
    pod: Arc<PodView>,
    /// Empty without a decision.
    steps: Vec<Step<Action>>,
    /// Whether the decision panicked.
    panicked: bool,
    /// The number of nodes.
    nodes: usize,
    /// The time since which the Pod could be scheduled.
    since: Timestamp,
    now: Timestamp,
    observed: Observed,
}

impl Reconciler for Scheduler {
    type Object = Pod;
    type World = Decided;
    type Action = Action;

    const SPAN: Option<&'static str> = Some("schedule");

    fn begin(&self) {
        self.unschedulable.clear();
        self.assumed.clear();
    }

    fn observe(&self, key: &Key, inputs: Inputs) -> Option<Decided> {
        let mut only = self.observe_all(&[(key.clone(), inputs)]);
        only.pop().flatten()
    }

    fn observe_all(&self, batch: &[(Key, Inputs)]) -> Vec<Option<Decided>> {
        let Some(&(_, inputs)) = batch.first() else {
            return Vec::new();
        };
        let observed = self.unschedulable.observed();
        let cached = &self.caches.pods;
        let pods: Vec<_> = batch.iter().map(|(key, _)| cached.get(key)).collect();
        let mut steps = self.decide(&pods, inputs);
        let nodes = self.caches.nodes.len();
        let decided = |pod: Arc<PodView>| {
            let steps = steps.remove(&pod.meta.key).unwrap_or_default();
            let needed = self.is_ours(&pod) && pod.schedulable().is_some();
            let written = cached.written(&pod.meta.key).or(pod.meta.created);
            Decided {
                panicked: needed && steps.is_empty(),
                steps,
                pod,
                nodes,
                since: written.unwrap_or(inputs.now),
                now: inputs.now,
                observed: observed.clone(),
            }
        };
        let mut decided = decided;
        pods.into_iter().map(|pod| pod.map(&mut decided)).collect()
    }

    fn meta(decided: &Decided) -> &Meta {
        &decided.pod.meta
    }

    /// Without a decision, the Pod needs none (it has a node, is gated or is being deleted) until it changes, or its
    /// decision has panicked.
    fn plan(decided: &Decided) -> Plan<Action> {
        let mut plan = Plan::default();
        plan.steps.clone_from(&decided.steps);
        plan.again = match plan.steps.first().map(|step| &step.action) {
            Some(Action::MarkUnschedulable { .. } | Action::BindVolumes { .. }) => {
                Some(LONGEST_WAIT)
            }
            Some(_) => None,
            None => decided.panicked.then_some(PANICKED),
        };
        plan
    }

    fn describe(decided: &Decided, step: &Step<Action>, note: &mut Note) {
        note::describe(decided, step, note);
    }

    async fn act(
        &self,
        gateway: &Client,
        decided: &Decided,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        let actor = Actor {
            gateway,
            events: &self.events.of_component(decided.profile()),
            scheduler: decided.profile(),
            now: decided.now,
        };
        outcome::answered(actor.act(action)).await
    }

    fn record(&self, decided: &Decided, action: &Action, result: &Result<Receipt, ApiError>) {
        self.record_outcome(decided, action, result);
    }

    fn trace(decided: &Decided, outcome: &Outcome<Action>, cascade: &Cascade) {
        let first = decided.steps.first().map(|step| &step.action);
        if let (Some(Action::Bind { node, .. }), 1) = (first, outcome.done) {
            cascade.label("k8s.node.name", node.clone());
        }
    }
}

impl Decided {
    /// Returns the name of the profile: the one of the Pod's scheduler.
    fn profile(&self) -> &str {
        let wants = self.pod.wants.as_deref();
        wants.map_or("", |wants| &wants.scheduler)
    }

    /// Returns the number of Pods that are preempted.
    fn victims(&self) -> usize {
        let actions = self.steps.iter().map(|step| &step.action);
        let preempts = |action: &&Action| matches!(action, Action::Preempt { .. });
        actions.filter(preempts).count()
    }
}

impl Scheduler {
    /// Decides on the Pods that wait for this scheduler.
    fn decide(
        &self,
        pods: &[Option<Arc<PodView>>],
        inputs: Inputs,
    ) -> HashMap<Key, Vec<Step<Action>>> {
        let mut steps: HashMap<_, Vec<_>> = HashMap::new();
        let pending = pods.iter().flatten().filter(|pod| self.is_ours(pod));
        let pending: Vec<_> = pending.cloned().collect();
        if pending.is_empty() {
            return steps;
        }
        let ours = |pod: &PodView| self.is_ours(pod);
        let (caches, assumed) = (&self.caches, &self.assumed);
        let snapshot = Snapshot::take(caches, assumed, pending, ours, inputs);
        for step in plan(&snapshot, &self.profiles).steps {
            let key = step.action.pod().meta.key.clone();
            steps.entry(key).or_default().push(step);
        }
        steps
    }

    /// Returns whether the Pod waits for this scheduler.
    pub fn is_ours(&self, pod: &PodView) -> bool {
        self.profiles.get(pod).is_some()
    }

    /// Returns whether the Pod is to be decided on. One with scheduling gates is not.
    pub fn takes(&self, pod: &PodView) -> bool {
        self.is_ours(pod) && pod.schedulable().is_some()
    }

    /// Returns whether a changed Pod needs a decision.
    pub fn needs_decision(&self, change: &Delta<PodView>) -> bool {
        let (old, new) = (change.old.as_deref(), change.new.as_deref());
        new.is_some_and(|new| self.takes(new) && old.is_none_or(|old| new.asks_otherwise_than(old)))
    }

    fn wake(&self, change: &ClusterEvent) {
        self.unschedulable.wake(change, &self.queue);
    }
}
