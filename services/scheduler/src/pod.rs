//! The scheduler's view of a Pod.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;
use setpoint_controller::View;
use setpoint_model::{HostPort, Key, Meta, Resources, pod};
use setpoint_proto::core::{NodeSelectorTerm, Pod, PodSpec, PodStatus, Toleration};

use crate::anti_affinity::Term;
use crate::unsupported;

/// The fields of a Pod that the scheduler reads: the resources, and the requirements while it has no node.
#[derive(Clone, Debug, Default)]
pub struct PodView {
    /// The metadata.
    pub meta: Meta,
    /// The requested resources.
    pub requests: Resources,
    /// CPU and memory for scores; not zero if none are requested.
    pub nonzero: Resources,
    /// Host ports.
    pub ports: Vec<HostPort>,
    /// Required anti-affinity; set if it has a node.
    pub repels: Vec<Term>,
    /// The node; `None` while it waits.
    pub node: Option<String>,
    /// Whether it has ended and uses no resources.
    pub ended: bool,
    /// The requirements; `None` if it has a node.
    pub wants: Option<Box<Wants>>,
}

/// The requirements of a waiting Pod.
#[derive(Clone, Debug, Default)]
pub struct Wants {
    /// The requirements on the node.
    pub node: NodeWants,
    /// The priority; higher ones are scheduled first.
    pub priority: i32,
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

impl View for PodView {
    type Object = Pod;

    fn of(pod: Pod) -> Self {
        let ended = pod::is_terminal(&pod);
        let node = Some(pod.spec.node_name.clone()).filter(|node| !node.is_empty());
        Self {
            meta: Meta::of(&pod.metadata),
            requests: Resources::of_pod(&pod.spec),
            nonzero: Resources::assumed_of_pod(&pod.spec),
            ports: HostPort::of_pod(&pod.spec),
            repels: match &node {
                Some(_) => Term::of_pod(&pod.spec, &pod.metadata.namespace),
                None => Vec::new(),
            },
            ended,
            wants: (node.is_none() && !ended).then(|| Box::new(Wants::of(pod.spec, pod.status))),
            node,
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Wants {
    fn of(spec: PodSpec, status: PodStatus) -> Self {
        let unsupported = unsupported::constraints(&spec);
        let affinity = spec.affinity.and_then(|affinity| affinity.node_affinity);
        let required =
            affinity.and_then(|node| node.required_during_scheduling_ignored_during_execution);
        Self {
            node: NodeWants {
                selector: spec.node_selector,
                terms: required.map(|required| required.node_selector_terms),
                tolerations: spec.tolerations,
                unsupported,
            },
            priority: spec.priority.unwrap_or_default(),
            gated: !spec.scheduling_gates.is_empty(),
            scheduler: spec.scheduler_name,
            status,
        }
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
        let priority = self.wants.as_ref().map_or(0, |wants| wants.priority);
        (Reverse(priority), self.meta.created, self.meta.key.clone())
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
        let wants = view.wants.expect("it waits");
        assert_eq!((wants.priority, &*wants.scheduler), (7, "other"));
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
}
