//! Tests of the scheduling cycle without a gateway.

use setpoint_controller::client;
use setpoint_model::Revision;
use setpoint_proto::Reason;
use tokio::time::Instant;

use super::outcome::answered;
use super::*;
use crate::plugin::{Plugin, PluginSet};
use crate::pod::Wants;
use crate::status::Nomination;
use crate::storage::StorageCaches;
use crate::unschedulable::Refusal;

fn scheduler() -> Scheduler {
    let gateway = Client::connect(&client::Settings::default(), "test");
    let gateway = gateway.expect("the address is a URI");
    Scheduler {
        profiles: Profiles::default(),
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
                csi_nodes: gateway.informer().reader(),
            },
        },
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
            profile: Arc::default(),
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
        rejectors: PluginSet::default(),
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
