//! The scheduling cycle: one snapshot and one plan for all waiting Pods; the bindings are concurrent.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::decision_log::Note;
use setpoint_controller::{
    Cascade, Client, Delta, Inputs, Outcome, Plan, QueueHandle, Reader, Receipt, Reconciler,
    Recorder, Step,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::setpoint::Verdict;
use setpoint_proto::{ApiError, Reason};
use setpoint_task::catch_panic;
use tracing::{info, warn};

use crate::act::act;
use crate::assumed::{Assumed, is_in_doubt};
use crate::metrics;
use crate::node::NodeView;
use crate::plan::{Action, plan};
use crate::pod::PodView;
use crate::snapshot::Snapshot;
use crate::unschedulable::{LONGEST_WAIT, Observed, Refusal, Unschedulable};

/// The delay after a decision that panicked.
const PANICKED: Duration = Duration::from_secs(10);

/// The reconciler of Pods without a node.
pub struct Scheduler {
    /// The `spec.schedulerName` of the Pods that it schedules.
    pub name: String,
    /// The Pods.
    pub pods: Reader<PodView>,
    /// The nodes.
    pub nodes: Reader<NodeView>,
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
    /// `None` without a decision.
    step: Option<Step<Action>>,
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
        let pods: Vec<_> = batch.iter().map(|(key, _)| self.pods.get(key)).collect();
        let pending = pods.iter().flatten().filter(|pod| self.is_ours(pod));
        let pending: Vec<_> = pending.cloned().collect();
        let mut steps = HashMap::new();
        if !pending.is_empty() {
            let all = (&self.nodes, &self.pods);
            let snapshot = Snapshot::take(all.0, all.1, &self.assumed, pending, inputs);
            let decided = plan(&snapshot).steps.into_iter();
            steps.extend(decided.map(|step| (step.action.pod().meta.key.clone(), step)));
        }
        let nodes = self.nodes.len();
        let decided = |pod: Arc<PodView>| {
            let step = steps.remove(&pod.meta.key);
            let needed = self.is_ours(&pod) && pod.schedulable().is_some();
            let written = self.pods.written(&pod.meta.key).or(pod.meta.created);
            Decided {
                panicked: needed && step.is_none(),
                step,
                pod,
                nodes,
                since: written.unwrap_or(inputs.now),
                now: inputs.now,
                observed,
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
        plan.steps.extend(decided.step.clone());
        plan.again = match plan.steps.first().map(|step| &step.action) {
            Some(Action::Bind { .. }) => None,
            Some(Action::MarkUnschedulable { .. }) => Some(LONGEST_WAIT),
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
            Action::MarkUnschedulable {
                message, against, ..
            } => {
                let verdict = |(node, reasons): &(String, Vec<_>)| Verdict {
                    node: node.clone(),
                    objections: reasons.iter().map(ToString::to_string).collect(),
                    score: None,
                };
                let verdicts: Vec<_> = against.iter().map(verdict).collect();
                let more = decided.nodes.saturating_sub(verdicts.len());
                note.say("MarkUnschedulable".to_owned(), message, None);
                note.verdicts(verdicts, more);
                note.waits();
            }
        }
    }

    async fn act(
        &self,
        gateway: &Client,
        decided: &Decided,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        answered(act(gateway, &self.events, action, decided.now)).await
    }

    fn record(&self, decided: &Decided, action: &Action, result: &Result<Receipt, ApiError>) {
        metrics::attempted(&self.name, action, result.as_ref().err(), decided.now);
        let key = &decided.pod.meta.key;
        match (result, action) {
            (Ok(_), Action::Bind { node, .. }) => {
                info!(pod = %key, %node, "bound");
                let attempts = self.unschedulable.attempts(key);
                let (before, since) = attempts.unwrap_or((0, decided.since));
                metrics::placed(before + 1, since);
                self.resolve(key);
            }
            (Ok(_), Action::MarkUnschedulable { message, .. }) => {
                info!(pod = %key, %message, "unschedulable");
                self.keep_unschedulable(decided);
            }
            (Err(error), Action::Bind { pod, node, .. }) if is_in_doubt(error) => {
                warn!(pod = %key, %error, "the binding may still be made");
                self.assumed.add(pod, node);
            }
            // Other Pods may have been unschedulable because of this one.
            (Err(_), Action::Bind { .. }) => self.unschedulable.wake(&self.queue),
            (Err(_), Action::MarkUnschedulable { .. }) => {}
        }
    }

    fn status(_: &Decided, _: &Outcome<Action>) -> Option<()> {
        None
    }

    async fn update_status(&self, _: &Client, _: &Decided, (): ()) -> Result<Receipt, ApiError> {
        Ok(Receipt::none())
    }

    fn trace(decided: &Decided, outcome: &Outcome<Action>, cascade: &Cascade) {
        if let (Some(Action::Bind { node, .. }), 1) = (decided.action(), outcome.done) {
            cascade.label("k8s.node.name", node.clone());
        }
    }
}

impl Decided {
    fn action(&self) -> Option<&Action> {
        self.step.as_ref().map(|step| &step.action)
    }
}

impl Scheduler {
    /// Returns whether the Pod waits for this scheduler.
    pub fn is_ours(&self, pod: &PodView) -> bool {
        let wants = pod.wants.as_ref();
        wants.is_some_and(|wants| wants.scheduler == self.name)
    }

    /// Returns whether a changed Pod needs a decision.
    pub fn needs_decision(&self, change: &Delta<PodView>) -> bool {
        let (old, new) = (change.old.as_deref(), change.new.as_deref());
        new.is_some_and(|new| {
            self.is_ours(new) && old.is_none_or(|old| new.asks_otherwise_than(old))
        })
    }

    /// Wakes unschedulable Pods after a change that frees resources, and removes a Pod that needs no decision.
    pub fn pod_changed(&self, change: &Delta<PodView>) {
        let (old, new) = (change.old.as_deref(), change.new.as_deref());
        let Some(pod) = old.or(new) else { return };
        let occupied = old.is_some_and(|old| old.occupies().is_some());
        if occupied && new.is_none_or(|new| new.occupies().is_none()) {
            self.unschedulable.wake(&self.queue);
        }
        match new {
            Some(new) if new.schedulable().is_some() => {}
            Some(new) if new.wants.is_some() => self.unschedulable.remove(&pod.meta.key),
            _ => self.resolve(&pod.meta.key),
        }
    }

    /// Wakes unschedulable Pods if they may fit on the changed node.
    pub fn node_changed(&self, change: &Delta<NodeView>) {
        let old = change.old.as_deref();
        let better = |new: &NodeView| old.is_none_or(|old| new.offers_more_than(old));
        if change.new.as_deref().is_some_and(better) {
            self.unschedulable.wake(&self.queue);
        }
    }

    fn keep_unschedulable(&self, decided: &Decided) {
        let Decided { pod, observed, .. } = decided;
        let key = &pod.meta.key;
        let wants = pod.wants.as_ref();
        let refusal = Refusal {
            since: decided.since,
            resolvable: wants.is_some_and(|wants| wants.node.unsupported.is_empty()),
        };
        self.unschedulable.add(key, refusal, *observed, &self.queue);
        // The Pod may have changed before it was added.
        let cached = self
            .pods
            .get(key)
            .filter(|now| now.meta.uid == pod.meta.uid);
        if cached.is_none_or(|pod| pod.schedulable().is_none()) {
            self.unschedulable.remove(key);
        }
    }

    /// Removes a Pod that is bound or deleted. If its binding was assumed, its resources may be free now: wakes the others.
    fn resolve(&self, pod: &Key) {
        self.unschedulable.remove(pod);
        if self.assumed.resolve(pod) {
            self.unschedulable.wake(&self.queue);
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
    use tokio::time::Instant;

    use super::*;

    fn scheduler() -> Scheduler {
        let gateway = Client::connect(&client::Settings::default(), "test");
        let gateway = gateway.expect("the address is a URI");
        Scheduler {
            name: "default-scheduler".to_owned(),
            pods: gateway.informer().reader(),
            nodes: gateway.informer().reader(),
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

    fn decided(pod: &Arc<PodView>, step: Option<Step<Action>>, panicked: bool) -> Decided {
        Decided {
            pod: pod.clone(),
            step,
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
        scheduler.record(&decided(&pod, None, false), &bind(&pod), &panicked);
        assert!(scheduler.assumed.resolve(&pod.meta.key));
        let bound = answered(async { Ok(Receipt::none()) }).await;
        scheduler.record(&decided(&pod, None, false), &bind(&pod), &bound);
        assert!(!scheduler.assumed.resolve(&pod.meta.key));
    }

    #[tokio::test]
    async fn pods_of_another_scheduler_and_those_that_have_a_node_are_left_alone() {
        let of = |name: &str| PodView {
            wants: Some(Box::new(crate::pod::Wants {
                scheduler: name.into(),
                ..Default::default()
            })),
            ..Default::default()
        };
        let scheduler = scheduler();
        assert!(scheduler.is_ours(&of("default-scheduler")));
        assert!(!scheduler.is_ours(&of("other")));
        assert!(!scheduler.is_ours(&PodView::default()));
    }

    /// Checks C1 and F3: a failed binding wakes the Pods that were unschedulable because of it.
    #[tokio::test(start_paused = true)]
    async fn a_binding_that_is_refused_wakes_others_and_one_in_doubt_does_not() {
        let (scheduler, pod) = (scheduler(), Arc::new(PodView::default()));
        let waiting = Key::new("default", "waiting");
        let refuse = || {
            let refusal = Refusal {
                since: Timestamp::UNIX_EPOCH,
                resolvable: true,
            };
            let observed = scheduler.unschedulable.observed();
            scheduler
                .unschedulable
                .add(&waiting, refusal, observed, &scheduler.queue);
        };
        let woken = || scheduler.unschedulable.counts(Instant::now()).0;
        let fail = |reason| {
            refuse();
            let error = Err(ApiError::new(reason, "so"));
            scheduler.record(&decided(&pod, None, false), &bind(&pod), &error);
            woken()
        };
        assert_eq!(fail(Reason::Timeout), 0, "its room is taken");
        assert_eq!(fail(Reason::Conflict), 1);
        refuse();
        scheduler.resolve(&pod.meta.key);
        assert_eq!(woken(), 1, "the doubt is resolved");
    }

    #[test]
    fn a_pod_without_a_decision_is_done_unless_deciding_panicked() {
        let pod = Arc::new(PodView::default());
        for (panicked, again) in [(false, None), (true, Some(PANICKED))] {
            let plan = Scheduler::plan(&decided(&pod, None, panicked));
            assert_eq!((plan.steps.len(), plan.again), (0, again));
        }
    }
}
