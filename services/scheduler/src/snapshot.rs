//! Snapshot: the nodes with their used resources, and the Pods of a scheduling cycle.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use setpoint_controller::{Inputs, Reader};
use setpoint_model::{HostPort, Key, Resources};

use crate::anti_affinity::Existing;
use crate::assumed::Assumed;
use crate::node::NodeView;
use crate::pod::PodView;
use crate::score::Siblings;

/// The inputs of the decisions of a scheduling cycle.
#[derive(Debug)]
pub struct Snapshot {
    /// All nodes, by name.
    pub nodes: Vec<NodeInfo>,
    /// The Pods to schedule, in the order of the queue.
    pub pending: Vec<Arc<PodView>>,
    /// The nodes of the assumed bindings of pending Pods. Their resources are not included in the nodes.
    pub assumed: HashMap<Key, String>,
    /// The required anti-affinity of the Pods on the nodes.
    pub existing: Vec<Existing>,
    /// The seed that breaks ties between nodes.
    pub seed: u64,
    /// The time of the observation.
    pub now: Timestamp,
}

/// A node and its used resources.
#[derive(Clone, Debug)]
pub struct NodeInfo {
    /// The node.
    pub view: Arc<NodeView>,
    /// The requested resources of its Pods.
    pub used: Resources,
    /// The CPU and memory of its Pods, for scores.
    pub nonzero: Resources,
    /// The host ports of its Pods.
    pub ports: Vec<HostPort>,
    /// The number of its Pods.
    pub pods: i64,
    /// The number of its Pods by controller, of controllers with pending Pods.
    pub siblings: Siblings,
}

impl NodeInfo {
    /// Returns the node without Pods.
    pub fn new(view: Arc<NodeView>) -> Self {
        Self {
            view,
            used: Resources::default(),
            nonzero: Resources::default(),
            ports: Vec::new(),
            pods: 0,
            siblings: Siblings::new(),
        }
    }

    /// Adds a Pod to the node.
    pub fn take(&mut self, pod: &PodView) {
        self.charge(pod);
        if let Some(owner) = &pod.meta.owner {
            self.count_sibling(&owner.uid);
        }
    }

    fn charge(&mut self, pod: &PodView) {
        self.used.add(&pod.requests);
        self.nonzero.add(&pod.nonzero);
        self.ports.extend_from_slice(&pod.ports);
        self.pods = self.pods.saturating_add(1);
    }

    fn count_sibling(&mut self, owner: &str) {
        let count = self.siblings.entry(owner.to_owned()).or_default();
        *count = count.saturating_add(1);
    }

    /// Returns the number of Pods of the same controller on the node.
    pub fn siblings(&self, pod: &PodView) -> i64 {
        let owner = pod.meta.owner.as_ref();
        let count = owner.and_then(|owner| self.siblings.get(&owner.uid));
        count.copied().unwrap_or_default()
    }
}

impl Snapshot {
    /// Takes a snapshot of the caches. A Pod with an assumed binding counts as bound, unless it is pending.
    pub fn take(
        nodes: &Reader<NodeView>,
        pods: &Reader<PodView>,
        assumed: &Assumed,
        pending: Vec<Arc<PodView>>,
        inputs: Inputs,
    ) -> Self {
        let mut infos: Vec<_> = nodes.list().into_iter().map(NodeInfo::new).collect();
        infos.sort_by(|a, b| a.view.name().cmp(b.view.name()));
        let all = pods.list();
        let placed = all
            .iter()
            .filter_map(|pod| Some((pod.occupies()?.to_owned(), pod.clone())));
        let unresolved = assumed.unresolved(|key| pods.get(key)).into_iter();
        let (retried, assumed): (Vec<_>, Vec<_>) = unresolved.partition(|binding| {
            let same = |pod: &Arc<PodView>| pod.meta.key == binding.pod.meta.key;
            pending.iter().any(same)
        });
        let assumed = assumed.into_iter();
        let existing = place(
            &mut infos,
            placed.chain(assumed.map(|binding| (binding.node, binding.pod))),
            &pending,
        );
        Self {
            nodes: infos,
            pending: in_order(pending),
            existing,
            assumed: retried
                .into_iter()
                .map(|binding| (binding.pod.meta.key.clone(), binding.node))
                .collect(),
            seed: inputs.seed,
            now: inputs.now,
        }
    }
}

fn place(
    nodes: &mut [NodeInfo],
    placed: impl Iterator<Item = (String, Arc<PodView>)>,
    pending: &[Arc<PodView>],
) -> Vec<Existing> {
    let owner = |pod: &PodView| pod.meta.owner.as_ref().map(|owner| owner.uid.clone());
    let families: HashSet<_> = pending.iter().filter_map(|pod| owner(pod)).collect();
    let by_name: HashMap<_, _> = (0..nodes.len())
        .map(|n| (nodes[n].view.name().to_owned(), n))
        .collect();
    let mut existing = Vec::new();
    for (node, pod) in placed {
        // A Pod on a node that does not exist.
        let Some(&n) = by_name.get(&node) else {
            continue;
        };
        nodes[n].charge(&pod);
        if let Some(owner) = owner(&pod).filter(|owner| families.contains(owner)) {
            nodes[n].count_sibling(&owner);
        }
        existing.extend(domains(&pod, &nodes[n].view));
    }
    existing
}

/// Returns the terms of a Pod with their domains; a term whose topology key the node does not have is left out.
fn domains(pod: &PodView, node: &NodeView) -> impl Iterator<Item = Existing> {
    pod.repels.iter().filter_map(|term| {
        Some(Existing {
            term: term.clone(),
            domain: node.labels().get(&term.topology_key)?.clone(),
        })
    })
}

fn in_order(mut pending: Vec<Arc<PodView>>) -> Vec<Arc<PodView>> {
    pending.sort_by_cached_key(|pod| pod.queue_order());
    pending
}

#[cfg(test)]
mod tests {
    use setpoint_model::{Meta, Owner};

    use super::*;
    use crate::anti_affinity::Term;

    fn node(name: &str) -> NodeInfo {
        let mut view = NodeView::default();
        view.meta.key.name = name.into();
        view.meta.labels.insert("zone".into(), "east".into());
        NodeInfo::new(Arc::new(view))
    }

    fn pod(name: &str, owner: &str) -> Arc<PodView> {
        let mut pod = PodView {
            meta: Meta {
                key: Key::new("default", name),
                owner: Some(Owner {
                    uid: owner.into(),
                    ..Default::default()
                }),
                ..Default::default()
            },
            ports: vec![HostPort {
                ip: "0.0.0.0".into(),
                protocol: "TCP".into(),
                port: 80,
            }],
            ..Default::default()
        };
        pod.requests.millicpu = 5;
        pod.nonzero.millicpu = 7;
        Arc::new(pod)
    }

    #[test]
    fn pods_are_charged_to_their_nodes_and_siblings_counted_for_those_that_wait() {
        let mut nodes = vec![node("a"), node("b")];
        let placed = [
            ("b", pod("one", "set")),
            ("b", pod("two", "other")),
            ("gone", pod("three", "set")),
        ];
        let placed = placed.map(|(node, pod)| (node.to_owned(), pod));
        let waiting = pod("waiting", "set");
        let existing = place(
            &mut nodes,
            placed.into_iter(),
            std::slice::from_ref(&waiting),
        );
        assert!(existing.is_empty());
        let b = &nodes[1];
        assert_eq!((b.used.millicpu, b.nonzero.millicpu), (10, 14));
        assert_eq!((b.pods, b.ports.len()), (2, 2));
        assert_eq!(b.siblings(&waiting), 1);
        assert_eq!(b.siblings(&pod("of-none", "none")), 0);
        assert!(!b.siblings.contains_key("other"), "none of it waits");
        assert_eq!((nodes[0].pods, nodes[0].siblings(&waiting)), (0, 0));
        nodes[0].take(&waiting);
        assert_eq!((nodes[0].pods, nodes[0].siblings(&waiting)), (1, 1));
    }

    /// Checks F5.
    #[test]
    fn a_term_holds_in_the_domain_of_its_pods_node() {
        let term = |key: &str| {
            let mut spec = setpoint_proto::core::PodSpec::default();
            let anti = spec.affinity.get_or_insert_default();
            let anti = anti.pod_anti_affinity.get_or_insert_default();
            let required = &mut anti.required_during_scheduling_ignored_during_execution;
            required.push(setpoint_proto::core::PodAffinityTerm {
                topology_key: key.into(),
                ..Default::default()
            });
            Term::of_pod(&spec, "default").remove(0)
        };
        let repelling = Arc::new(PodView {
            repels: vec![term("zone"), term("rack")],
            ..Default::default()
        });
        let placed = std::iter::once(("a".to_owned(), repelling));
        let existing = place(&mut [node("a")], placed, &[]);
        assert_eq!(existing.len(), 1, "the node has no rack");
        assert_eq!(existing[0].term, term("zone"));
        assert_eq!(existing[0].domain, "east");
    }
}
