//! The scheduling cycle: one snapshot and one plan for all waiting Pods; the bindings are concurrent.

mod changes;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::decision_log::Note;
use setpoint_controller::{
    Cascade, Client, Delta, Inputs, ObjectRef, Outcome, Plan, QueueHandle, Receipt, Reconciler,
    Recorder, Step,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::core::Pod;
use setpoint_proto::setpoint::Verdict;
use setpoint_proto::{ApiError, Reason, Resource as _};
use setpoint_task::catch_panic;
use tracing::{info, warn};

use crate::act::Actor;
use crate::assumed::{Assumed, is_in_doubt};
use crate::change::Change;
use crate::metrics;
use crate::plan::{Action, plan};
use crate::pod::PodView;
use crate::reason::{FilterReason, Plugin, Rejectors};
use crate::scoring::Weights;
use crate::snapshot::{Caches, Snapshot};
use crate::status::Nomination;
use crate::unschedulable::{LONGEST_WAIT, Observed, Refusal, Unschedulable};

/// The delay after a decision that panicked.
const PANICKED: Duration = Duration::from_secs(10);

/// The reconciler of Pods without a node.
pub struct Scheduler {
    /// The `spec.schedulerName` of the Pods that it schedules.
    pub name: String,
    /// The caches.
    pub caches: Caches,
    /// The weights of scores.
    pub weights: Weights,
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
    type World = Decided;
    type Action = Action;
    type Status = ();

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

    /// Without a decision, the Pod needs none (it has a node, is gated or is being deleted) until it changes, or its decision
    /// has panicked.
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

    /// Records the decision and the verdicts on the nodes.
    fn describe(decided: &Decided, step: &Step<Action>, note: &mut Note) {
        match &step.action {
            Action::Bind { node, score, .. } => {
                let chosen = Verdict {
                    node: node.clone(),
                    score: Some(*score),
                    ..Verdict::default()
                };
                note.say(format!("Bind to {node}"), step.because, None);
                note.verdicts(vec![chosen], 0);
            }
            Action::BindVolumes { node, choices, .. } => {
                let said = format!("Bind {} claims to volumes on {node}", choices.len());
                note.say(said, step.because, None);
                note.waits();
            }
            Action::MarkUnschedulable {
                message, against, ..
            } => {
                let verdict = |(node, reasons): &(String, Vec<FilterReason>)| Verdict {
                    node: node.clone(),
                    objections: reasons.iter().map(|reason| format!("{reason:#}")).collect(),
                    score: None,
                };
                let verdicts: Vec<_> = against.iter().map(verdict).collect();
                let more = decided.nodes.saturating_sub(verdicts.len());
                note.say("MarkUnschedulable".to_owned(), message, None);
                note.verdicts(verdicts, more);
                note.waits();
            }
            Action::Preempt { victim, node, .. } => {
                let said = format!("Preempt {} on {node}", victim.meta.key);
                note.say(said, step.because, Some(object_ref(victim)));
            }
            Action::Withdraw { nominated, .. } => {
                let said = format!("Withdraw the nomination of {}", nominated.meta.key);
                note.say(said, step.because, Some(object_ref(nominated)));
            }
        }
    }

    async fn act(
        &self,
        gateway: &Client,
        decided: &Decided,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        let actor = Actor {
            gateway,
            events: &self.events,
            scheduler: &self.name,
            now: decided.now,
        };
        answered(actor.act(action)).await
    }

    fn record(&self, decided: &Decided, action: &Action, result: &Result<Receipt, ApiError>) {
        let key = &decided.pod.meta.key;
        match action {
            Action::Bind { pod, node, .. } => {
                metrics::attempted(&self.name, action, result.as_ref().err(), decided.now);
                self.record_binding(decided, (pod, node), result);
            }
            Action::MarkUnschedulable {
                message,
                rejectors,
                nomination,
                ..
            } => {
                metrics::attempted(&self.name, action, result.as_ref().err(), decided.now);
                if result.is_err() && matches!(nomination, Nomination::Node(_)) {
                    // Other Pods may have been unschedulable because of the reservation.
                    self.wake(&Change::left(decided.pod.clone()));
                }
                if result.is_ok() {
                    info!(pod = %key, %message, "unschedulable");
                    metrics::looked_for_victims(decided.nodes, decided.victims());
                    self.keep_unschedulable(decided, *rejectors, false);
                }
            }
            Action::BindVolumes { pod, node, .. } => match result {
                Ok(_) => {
                    info!(pod = %key, %node, "waits for its volumes");
                    let plugins = [Plugin::VolumeBinding].into_iter().collect();
                    self.keep_unschedulable(decided, plugins, true);
                }
                // Other Pods may have been unschedulable because of this one.
                Err(_) => self.wake(&Change::left(pod.clone())),
            },
            Action::Preempt { victim, node, .. } if result.is_ok() => {
                info!(pod = %key, victim = %victim.meta.key, %node, "preempted");
            }
            Action::Withdraw { nominated, .. } if result.is_ok() => {
                let pod = &nominated.meta.key;
                self.unschedulable.wake_pod(pod, &self.queue);
            }
            Action::Preempt { .. } | Action::Withdraw { .. } => {}
        }
    }

    fn trace(decided: &Decided, outcome: &Outcome<Action>, cascade: &Cascade) {
        let first = decided.steps.first().map(|step| &step.action);
        if let (Some(Action::Bind { node, .. }), 1) = (first, outcome.done) {
            cascade.label("k8s.node.name", node.clone());
        }
    }
}

impl Decided {
    /// Returns the number of Pods that are preempted.
    fn victims(&self) -> usize {
        let actions = self.steps.iter().map(|step| &step.action);
        let preempts = |action: &&Action| matches!(action, Action::Preempt { .. });
        actions.filter(preempts).count()
    }
}

fn object_ref(pod: &PodView) -> ObjectRef {
    pod.meta.key.clone().in_resource(Pod::RESOURCE)
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
        let mut snapshot = Snapshot::take(caches, assumed, pending, ours, inputs);
        snapshot.weights = self.weights;
        for step in plan(&snapshot).steps {
            let key = step.action.pod().meta.key.clone();
            steps.entry(key).or_default().push(step);
        }
        steps
    }

    fn record_binding(
        &self,
        decided: &Decided,
        (pod, node): (&Arc<PodView>, &str),
        result: &Result<Receipt, ApiError>,
    ) {
        let key = &pod.meta.key;
        match result {
            Ok(_) => {
                info!(pod = %key, %node, "bound");
                let attempts = self.unschedulable.attempts(key);
                let (before, since) = attempts.unwrap_or((0, decided.since));
                metrics::placed(before + 1, since);
                self.resolve(pod);
            }
            Err(error) if is_in_doubt(error) => {
                warn!(pod = %key, %error, "the binding may still be made");
                self.assumed.add(pod, node);
            }
            // Other Pods may have been unschedulable because of this one.
            Err(_) => self.wake(&Change::left(pod.clone())),
        }
    }

    /// Returns whether the Pod waits for this scheduler.
    pub fn is_ours(&self, pod: &PodView) -> bool {
        let wants = pod.wants.as_ref();
        wants.is_some_and(|wants| wants.scheduler == self.name)
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

    fn wake(&self, change: &Change) {
        self.unschedulable.wake(change, &self.queue);
    }

    fn keep_unschedulable(&self, decided: &Decided, rejectors: Rejectors, waits: bool) {
        let Decided { pod, observed, .. } = decided;
        let key = &pod.meta.key;
        let refusal = Refusal {
            pod: pod.clone(),
            since: decided.since,
            rejectors,
            waits,
        };
        self.unschedulable.add(refusal, observed, &self.queue);
        // The Pod may have changed before it was added.
        let cached = self
            .caches
            .pods
            .get(key)
            .filter(|now| now.meta.uid == pod.meta.uid);
        if cached.is_none_or(|pod| pod.schedulable().is_none()) {
            self.unschedulable.remove(key);
        }
    }

    /// Removes a Pod that is bound or deleted. If its binding was assumed, its resources may be free now: wakes the others.
    fn resolve(&self, pod: &PodView) {
        self.unschedulable.remove(&pod.meta.key);
        if let Some(binding) = self.assumed.resolve(&pod.meta.key) {
            self.wake(&Change::left(binding.pod));
        }
    }
}

/// Awaits a write. After a panic its outcome is unknown, as after a lost connection.
async fn answered(
    write: impl Future<Output = Result<Receipt, ApiError>>,
) -> Result<Receipt, ApiError> {
    let panicked = |_| Err(ApiError::new(Reason::InternalError, "the write panicked"));
    catch_panic("schedule", write)
        .await
        .unwrap_or_else(panicked)
}

#[cfg(test)]
mod tests {
    use setpoint_controller::client;
    use setpoint_model::Revision;
    use tokio::time::Instant;

    use super::*;
    use crate::pod::Wants;
    use crate::storage::StorageCaches;

    fn scheduler() -> Scheduler {
        let gateway = Client::connect(&client::Settings::default(), "test");
        let gateway = gateway.expect("the address is a URI");
        Scheduler {
            name: "default-scheduler".to_owned(),
            caches: Caches {
                pods: gateway.informer().reader(),
                nodes: gateway.informer().reader(),
                namespaces: gateway.informer().reader(),
                services: gateway.informer().reader(),
                budgets: gateway.informer().reader(),
                storage: StorageCaches {
                    claims: gateway.informer().reader(),
                    volumes: gateway.informer().reader(),
                    classes: gateway.informer().reader(),
                },
            },
            weights: Weights::default(),
            events: Recorder::silent(),
            unschedulable: Unschedulable::default(),
            assumed: Assumed::default(),
            queue: QueueHandle::default(),
        }
    }

    fn bind(pod: &Arc<PodView>) -> Action {
        Action::Bind {
            pod: pod.clone(),
            node: "a".into(),
            score: 0,
        }
    }

    fn decided(pod: &Arc<PodView>, panicked: bool) -> Decided {
        Decided {
            pod: pod.clone(),
            steps: Vec::new(),
            panicked,
            nodes: 1,
            since: Timestamp::UNIX_EPOCH,
            now: Timestamp::UNIX_EPOCH,
            observed: Unschedulable::default().observed(),
        }
    }

    /// Checks C2: a binding that panicked may have been committed.
    #[tokio::test]
    async fn a_binding_that_panics_is_in_doubt() {
        let (scheduler, pod) = (scheduler(), Arc::new(PodView::default()));
        let panicked = answered(async { panic!("while binding") }).await;
        scheduler.record(&decided(&pod, false), &bind(&pod), &panicked);
        assert!(scheduler.assumed.resolve(&pod.meta.key).is_some());
        let bound = answered(async { Ok(Receipt::none()) }).await;
        scheduler.record(&decided(&pod, false), &bind(&pod), &bound);
        assert!(scheduler.assumed.resolve(&pod.meta.key).is_none());
    }

    #[tokio::test]
    async fn pods_of_another_scheduler_and_those_that_have_a_node_are_left_alone() {
        let scheduler = scheduler();
        assert!(scheduler.is_ours(&waiting("default-scheduler")));
        assert!(!scheduler.is_ours(&waiting("other")));
        assert!(!scheduler.is_ours(&PodView::default()));
    }

    fn waiting(scheduler: &str) -> PodView {
        let wants = Wants {
            scheduler: scheduler.into(),
            ..Wants::default()
        };
        PodView {
            meta: Meta {
                key: Key::new("default", "waiting"),
                ..Meta::default()
            },
            wants: Some(Box::new(wants)),
            ..PodView::default()
        }
    }

    fn delta(old: Option<&PodView>, new: Option<&PodView>) -> Delta<PodView> {
        let arc = |pod: &PodView| Arc::new(pod.clone());
        Delta {
            old: old.map(arc),
            new: new.map(arc),
            cause: None,
            revision: Revision::default(),
        }
    }

    /// Checks C6: a Pod with scheduling gates is not reconciled until the last one is removed.
    #[tokio::test]
    async fn a_gated_pod_costs_nothing() {
        let scheduler = scheduler();
        let free = waiting("default-scheduler");
        let mut gated = free.clone();
        gated.wants.as_mut().expect("it waits").gated = true;
        assert!(!scheduler.takes(&gated));
        assert!(!scheduler.needs_decision(&delta(None, Some(&gated))));
        let mut labeled = gated.clone();
        labeled.meta.labels.insert("app".into(), "web".into());
        assert!(!scheduler.needs_decision(&delta(Some(&gated), Some(&labeled))));
        assert!(scheduler.needs_decision(&delta(Some(&gated), Some(&free))));
        assert!(scheduler.needs_decision(&delta(None, Some(&free))));
    }

    /// Checks C1 and F3: a failed binding wakes the Pods that were unschedulable because of it.
    #[tokio::test(start_paused = true)]
    async fn a_binding_that_is_refused_wakes_others_and_one_in_doubt_does_not() {
        let (scheduler, pod) = (scheduler(), Arc::new(PodView::default()));
        let waiting = Arc::new(waiting("default-scheduler"));
        let refuse = || {
            let refusal = Refusal {
                pod: waiting.clone(),
                since: Timestamp::UNIX_EPOCH,
                rejectors: [Plugin::NodeResourcesFit].into_iter().collect(),
                waits: false,
            };
            let observed = scheduler.unschedulable.observed();
            scheduler
                .unschedulable
                .add(refusal, &observed, &scheduler.queue);
        };
        let woken = || scheduler.unschedulable.counts(Instant::now()).0;
        let fail = |reason| {
            refuse();
            let error = Err(ApiError::new(reason, "so"));
            scheduler.record(&decided(&pod, false), &bind(&pod), &error);
            woken()
        };
        assert_eq!(fail(Reason::Timeout), 0, "its room is taken");
        assert_eq!(fail(Reason::Conflict), 1);
        refuse();
        scheduler.resolve(&pod);
        assert_eq!(woken(), 1, "the doubt is resolved");
        refuse();
        let nominate = Action::MarkUnschedulable {
            pod: pod.clone(),
            message: String::new(),
            nomination: Nomination::Node("a".into()),
            rejectors: Rejectors::default(),
            against: Vec::new(),
        };
        let error = Err(ApiError::new(Reason::Conflict, "so"));
        scheduler.record(&decided(&pod, false), &nominate, &error);
        assert_eq!(woken(), 1, "nothing is reserved");
    }

    #[test]
    fn a_pod_without_a_decision_is_done_unless_deciding_panicked() {
        let pod = Arc::new(PodView::default());
        for (panicked, again) in [(false, None), (true, Some(PANICKED))] {
            let plan = Scheduler::plan(&decided(&pod, panicked));
            assert_eq!((plan.steps.len(), plan.again), (0, again));
        }
    }
}
