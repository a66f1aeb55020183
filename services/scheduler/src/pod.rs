//! The scheduler's view of a Pod.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;
use setpoint_controller::View;
use setpoint_model::{HostPort, Key, Meta, Resources, condition, pod};
use setpoint_proto::core::{
    NodeSelectorTerm, Pod, PodSpec, PodStatus, PreferredSchedulingTerm, Toleration,
};

use crate::affinity::Affinity;
use crate::claim_use::ClaimUse;
use crate::spread::Constraint;
use crate::{images, status, unsupported};

/// The fields of a Pod that the scheduler reads: the resources, and the requirements while it has no node.
#[derive(Clone, Debug, Default)]
pub struct PodView {
    /// The metadata.
    pub meta: Meta,
    /// The priority; Pods of higher ones are scheduled first, and may preempt those of lower ones.
    pub priority: i32,
    /// The requested resources.
    pub requests: Resources,
    /// CPU and memory for scores; not zero if none are requested.
    pub nonzero: Resources,
    /// Host ports.
    pub ports: Vec<HostPort>,
    /// Affinity to other Pods, and anti-affinity.
    pub affinity: Option<Box<Affinity>>,
    /// The claims of its volumes.
    pub claims: Vec<ClaimUse>,
    /// The node; `None` while it waits.
    pub node: Option<String>,
    /// The time at which it started on its node.
    pub started: Option<Timestamp>,
    /// Whether it has ended and uses no resources.
    pub ended: bool,
    /// Whether it is being deleted to make room for a Pod of higher priority.
    pub preempted: bool,
    /// The requirements; `None` if it has a node.
    pub wants: Option<Box<Wants>>,
}

/// The requirements of a waiting Pod.
#[derive(Clone, Debug, Default)]
pub struct Wants {
    /// The requirements on the node.
    pub node: NodeWants,
    /// Terms of preferred node affinity.
    pub preferred: Vec<PreferredSchedulingTerm>,
    /// Topology spread constraints.
    pub spread: Vec<Constraint>,
    /// The images of its containers and volumes, in the form of a node's status.
    pub images: Vec<String>,
    /// The number of its containers.
    pub containers: usize,
    /// Whether it never preempts other Pods.
    pub never_preempts: bool,
    /// Whether scheduling gates hold it back.
    pub gated: bool,
    /// The name of the scheduler.
    pub scheduler: String,
    /// The status, to which the condition is added.
    pub status: PodStatus,
}

/// The requirements of a waiting Pod on its node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeWants {
    /// Required labels.
    pub selector: BTreeMap<String, String>,
    /// Terms of required affinity, one of which must match. `None` matches every node, an empty list none.
    pub terms: Option<Vec<NodeSelectorTerm>>,
    /// Tolerated taints.
    pub tolerations: Vec<Toleration>,
    /// Fields with constraints that are not evaluated. No node satisfies them.
    pub unsupported: Vec<&'static str>,
}

/// The order of the queue.
pub type QueueOrder = (Reverse<i32>, Option<Timestamp>, Key);

/// The order in which Pods are spared from preemption.
pub type Importance = (Reverse<i32>, bool, Option<Timestamp>, Key);

impl View for PodView {
    type Object = Pod;

    fn of(pod: Pod) -> Self {
        let ended = pod::is_terminal(&pod);
        let node = Some(pod.spec.node_name.clone()).filter(|node| !node.is_empty());
        let meta = Meta::of(&pod.metadata);
        let started = pod.status.start_time.as_ref();
        let preempted = condition::get(&pod.status.conditions, pod::DISRUPTION_TARGET);
        let preempted = preempted.is_some_and(|target| {
            target.status == condition::TRUE && target.reason == status::PREEMPTION
        });
        Self {
            priority: pod.spec.priority.unwrap_or_default(),
            requests: Resources::held_by(&pod),
            nonzero: Resources::assumed_of_pod(&pod),
            ports: HostPort::of_pod(&pod.spec),
            affinity: Affinity::of(&pod.spec, &meta),
            claims: ClaimUse::of_pod(&pod.spec, &meta.key.name),
            started: started.and_then(|started| started.timestamp()),
            ended,
            preempted: preempted && meta.deleting,
            wants: (node.is_none() && !ended)
                .then(|| Box::new(Wants::of(pod.spec, pod.status, &meta))),
            node,
            meta,
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Wants {
    fn of(spec: PodSpec, status: PodStatus, meta: &Meta) -> Self {
        let unsupported = unsupported::constraints(&spec);
        let (spread, images) = (Constraint::of_pod(&spec, meta), images::of_pod(&spec));
        let affinity = spec.affinity.and_then(|affinity| affinity.node_affinity);
        let affinity = affinity.unwrap_or_default();
        let required = affinity.required_during_scheduling_ignored_during_execution;
        Self {
            node: NodeWants {
                selector: spec.node_selector,
                terms: required.map(|required| required.node_selector_terms),
                tolerations: spec.tolerations,
                unsupported,
            },
            preferred: affinity.preferred_during_scheduling_ignored_during_execution,
            spread,
            images,
            containers: spec.containers.len() + spec.init_containers.len(),
            never_preempts: spec.preemption_policy.as_deref() == Some("Never"),
            gated: !spec.scheduling_gates.is_empty(),
            scheduler: spec.scheduler_name,
            status,
        }
    }

    /// Returns the node that is reserved for the Pod.
    pub fn nominated(&self) -> Option<&str> {
        Some(&*self.status.nominated_node_name).filter(|node| !node.is_empty())
    }
}

impl PodView {
    /// Returns the requirements if the Pod needs a decision: it has no node, is not gated and is not being deleted.
    pub fn schedulable(&self) -> Option<&Wants> {
        let wants = self.wants.as_deref().filter(|wants| !wants.gated);
        wants.filter(|_| !self.meta.deleting)
    }

    /// Returns the node whose resources it uses; `None` if it uses none.
    pub fn occupies(&self) -> Option<&str> {
        self.node.as_deref().filter(|_| !self.ended)
    }

    /// Returns the node that is reserved for it while it waits.
    pub fn nominated(&self) -> Option<&str> {
        self.schedulable()?.nominated()
    }

    /// Returns whether a node that did not fit `earlier` may fit now. The status does not matter.
    pub fn asks_otherwise_than(&self, earlier: &Self) -> bool {
        let asks = |pod: &Self| {
            let wants = pod.wants.as_ref();
            wants.map(|wants| (wants.gated, wants.node.clone()))
        };
        self.meta.uid != earlier.meta.uid
            || self.meta.labels != earlier.meta.labels
            || self.requests != earlier.requests
            || asks(self) != asks(earlier)
    }

    /// Returns the rank in the queue: by priority, then by age.
    pub fn queue_order(&self) -> QueueOrder {
        let key = self.meta.key.clone();
        (Reverse(self.priority), self.meta.created, key)
    }

    /// Returns the rank in the order in which Pods are spared: by priority, then by the time since which they run.
    pub fn importance(&self) -> Importance {
        let key = self.meta.key.clone();
        let (priority, started) = (Reverse(self.priority), self.started);
        (priority, started.is_none(), started, key)
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::{Affinity, NodeAffinity, NodeSelector, PodSchedulingGate};

    use super::*;

    fn pod(phase: &str, node: &str) -> Pod {
        let mut pod = Pod::default();
        pod.metadata.name = "web".into();
        pod.status.phase = phase.into();
        pod.spec.node_name = node.into();
        pod
    }

    #[test]
    fn a_pod_occupies_its_node_until_it_has_ended() {
        let waiting = PodView::of(pod("Pending", ""));
        assert!(waiting.wants.is_some() && waiting.occupies().is_none());
        let running = PodView::of(pod("Running", "a"));
        assert!(running.wants.is_none());
        assert_eq!(running.occupies(), Some("a"));
        assert!(PodView::of(pod("Failed", "a")).occupies().is_none());
        let ended = PodView::of(pod("Succeeded", ""));
        assert!(ended.wants.is_none() && ended.schedulable().is_none());
    }

    #[test]
    fn a_gated_pod_and_one_that_is_going_need_no_decision() {
        let mut gated = pod("Pending", "");
        assert!(PodView::of(gated.clone()).schedulable().is_some());
        gated.spec.scheduling_gates = vec![PodSchedulingGate::default()];
        assert!(PodView::of(gated).schedulable().is_none());
        let mut going = PodView::of(pod("Pending", ""));
        going.meta.deleting = true;
        assert!(going.schedulable().is_none());
    }

    #[test]
    fn a_waiting_pod_asks_for_what_its_spec_says() {
        let mut pod = pod("Pending", "");
        pod.spec.priority = Some(7);
        pod.spec.scheduler_name = "other".into();
        pod.spec.affinity = Some(Affinity {
            node_affinity: Some(NodeAffinity {
                required_during_scheduling_ignored_during_execution: Some(NodeSelector::default()),
                ..Default::default()
            }),
            ..Default::default()
        });
        pod.spec.resource_claims = vec![Default::default()];
        let view = PodView::of(pod);
        assert_eq!(view.queue_order().0, Reverse(7));
        assert_eq!(view.priority, 7);
        let wants = view.wants.expect("it waits");
        assert_eq!(&*wants.scheduler, "other");
        assert_eq!(wants.node.terms, Some(Vec::new()));
        assert_eq!(wants.node.unsupported, ["spec.resourceClaims"]);
    }

    /// Checks C6: a change of the requirements causes another attempt, a change of the status does not.
    #[test]
    fn a_pod_asks_otherwise_when_its_decision_may_change() {
        let before = PodView::of(pod("Pending", ""));
        let changed = |change: fn(&mut PodView)| {
            let mut after = before.clone();
            change(&mut after);
            after.asks_otherwise_than(&before)
        };
        assert!(changed(|pod| pod.meta.uid = "other".into()));
        assert!(changed(|pod| pod.requests.millicpu = 5));
        assert!(changed(|pod| {
            pod.meta.labels.insert("app".into(), "web".into());
        }));
        assert!(changed(|pod| pod.wants = None));
        assert!(changed(|pod| {
            pod.wants.as_mut().expect("it waits").gated = true;
        }));
        assert!(changed(|pod| {
            let wants = pod.wants.as_mut().expect("it waits");
            wants.node.tolerations.push(Toleration::default());
        }));
        assert!(!changed(|pod| {
            pod.wants.as_mut().expect("it waits").status.phase = "Running".into();
        }));
    }

    #[test]
    fn a_pod_is_preempted_while_it_is_deleted_for_another() {
        let mut victim = pod("Running", "a");
        status::mark_as_victim(&mut victim, "default-scheduler", Timestamp::UNIX_EPOCH);
        assert!(!PodView::of(victim.clone()).preempted, "not deleted yet");
        victim.metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH.into());
        assert!(PodView::of(victim.clone()).preempted);
        victim.status.conditions[0].reason = "EvictionByEvictionAPI".into();
        assert!(!PodView::of(victim).preempted);
    }

    #[test]
    fn pods_of_high_priority_and_those_that_run_longest_are_the_most_important() {
        let pod = |name: &str, priority, started: Option<i64>| PodView {
            meta: Meta {
                key: Key::new("default", name),
                ..Meta::default()
            },
            priority,
            started: started.map(|second| Timestamp::from_second(second).expect("a time")),
            ..PodView::default()
        };
        let mut pods = [
            pod("not-started", 1, None),
            pod("lower", 0, Some(1)),
            pod("younger", 1, Some(9)),
            pod("older", 1, Some(1)),
        ];
        pods.sort_by_key(PodView::importance);
        let names = pods.map(|pod| pod.meta.key.name);
        assert_eq!(names, ["older", "younger", "not-started", "lower"]);
    }
}
