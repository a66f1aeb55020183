//! Snapshot: the nodes with their Pods, and the Pods of a scheduling cycle.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use setpoint_controller::{Inputs, Reader};
use setpoint_model::{HostPort, Key, Resources};

use crate::affinity::Namespaces;
use crate::assumed::Assumed;
use crate::budget::BudgetView;
use crate::namespace::NamespaceView;
use crate::node::NodeView;
use crate::pod::PodView;
use crate::service::ServiceView;
use crate::storage::{Storage, StorageCaches};

/// The inputs of the decisions of a scheduling cycle.
#[derive(Debug)]
pub struct Snapshot {
    /// All nodes, by name.
    pub nodes: Vec<NodeInfo>,
    /// The Pods of each node.
    pub pods: Vec<Vec<Arc<PodView>>>,
    /// The Pods to schedule, in the order of the queue.
    pub pending: Vec<Arc<PodView>>,
    /// The nodes of the assumed bindings of pending Pods. Their resources are not included in the nodes.
    pub assumed: HashMap<Key, String>,
    /// The Pods for which room is reserved on a node.
    pub nominated: Vec<Arc<PodView>>,
    /// The labels of the namespaces.
    pub namespaces: Namespaces,
    /// The Services of each namespace.
    pub services: HashMap<String, Vec<Arc<ServiceView>>>,
    /// The PodDisruptionBudgets.
    pub budgets: Vec<Arc<BudgetView>>,
    /// The claims of the Pods to schedule, with their volumes and classes.
    pub storage: Storage,
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
    /// The lowest priority of its Pods.
    pub lowest: i32,
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
            lowest: i32::MAX,
        }
    }

    /// Adds a Pod to the node.
    pub fn take(&mut self, pod: &PodView) {
        self.used.add(&pod.requests);
        self.nonzero.add(&pod.nonzero);
        self.ports.extend_from_slice(&pod.ports);
        self.pods = self.pods.saturating_add(1);
        self.lowest = self.lowest.min(pod.priority);
    }
}

/// The caches that a scheduling cycle reads.
pub struct Caches {
    /// The Pods.
    pub pods: Reader<PodView>,
    /// The nodes.
    pub nodes: Reader<NodeView>,
    /// The namespaces.
    pub namespaces: Reader<NamespaceView>,
    /// The Services.
    pub services: Reader<ServiceView>,
    /// The PodDisruptionBudgets.
    pub budgets: Reader<BudgetView>,
    /// Claims, volumes and StorageClasses.
    pub storage: StorageCaches,
}

impl Snapshot {
    /// Returns a snapshot of nodes, and of Pods with the names of their nodes.
    pub fn new(
        mut nodes: Vec<Arc<NodeView>>,
        placed: impl IntoIterator<Item = (String, Arc<PodView>)>,
        pending: Vec<Arc<PodView>>,
    ) -> Self {
        nodes.sort_by(|a, b| a.name().cmp(b.name()));
        let mut snapshot = Self {
            pods: vec![Vec::new(); nodes.len()],
            nodes: nodes.into_iter().map(NodeInfo::new).collect(),
            pending: in_order(pending),
            assumed: HashMap::new(),
            nominated: Vec::new(),
            namespaces: Namespaces::new(),
            services: HashMap::new(),
            budgets: Vec::new(),
            storage: Storage::default(),
            seed: 0,
            now: Timestamp::UNIX_EPOCH,
        };
        for (node, pod) in placed {
            // The node of a Pod may not exist.
            if let Some(node) = snapshot.index(&node) {
                snapshot.nodes[node].take(&pod);
                snapshot.pods[node].push(pod);
            }
        }
        snapshot
    }

    /// Takes a snapshot of the caches. A Pod with an assumed binding counts as bound, unless it is pending. Room is
    /// reserved for the nominated Pods among `ours`.
    pub fn take(
        caches: &Caches,
        assumed: &Assumed,
        pending: Vec<Arc<PodView>>,
        ours: impl Fn(&PodView) -> bool,
        inputs: Inputs,
    ) -> Self {
        let all = caches.pods.list();
        let placed = all
            .iter()
            .filter_map(|pod| Some((pod.occupies()?.to_owned(), pod.clone())));
        let unresolved = assumed.unresolved(|key| caches.pods.get(key)).into_iter();
        let (retried, assumed): (Vec<_>, Vec<_>) = unresolved.partition(|binding| {
            let same = |pod: &Arc<PodView>| pod.meta.key == binding.pod.meta.key;
            pending.iter().any(same)
        });
        let assumed = assumed.into_iter();
        let placed = placed.chain(assumed.map(|binding| (binding.node, binding.pod)));
        let nominated = all
            .iter()
            .filter(|pod| pod.nominated().is_some() && ours(pod));
        Self {
            nominated: nominated.cloned().collect(),
            assumed: retried
                .into_iter()
                .map(|binding| (binding.pod.meta.key.clone(), binding.node))
                .collect(),
            namespaces: labels(&caches.namespaces),
            services: by_namespace(&caches.services),
            budgets: caches.budgets.list(),
            storage: caches.storage.take(&pending, &all),
            seed: inputs.seed,
            now: inputs.now,
            ..Self::new(caches.nodes.list(), placed, pending)
        }
    }

    /// Returns the index of a node.
    pub fn index(&self, node: &str) -> Option<usize> {
        let found = self
            .nodes
            .binary_search_by(|info| info.view.name().cmp(node));
        found.ok()
    }
}

fn labels(namespaces: &Reader<NamespaceView>) -> Namespaces {
    let mut labels = BTreeMap::new();
    namespaces.for_each(|namespace, _| {
        let meta = &namespace.meta;
        labels.insert(meta.key.name.clone(), meta.labels.clone());
    });
    labels
}

fn by_namespace(services: &Reader<ServiceView>) -> HashMap<String, Vec<Arc<ServiceView>>> {
    let mut by_namespace: HashMap<String, Vec<_>> = HashMap::new();
    for service in services.list() {
        let namespace = service.meta.key.namespace.clone();
        by_namespace.entry(namespace).or_default().push(service);
    }
    by_namespace
}

fn in_order(mut pending: Vec<Arc<PodView>>) -> Vec<Arc<PodView>> {
    pending.sort_by_cached_key(|pod| pod.queue_order());
    pending
}

#[cfg(test)]
mod tests {
    use setpoint_model::Meta;

    use super::*;

    fn node(name: &str) -> Arc<NodeView> {
        let mut view = NodeView::default();
        view.meta.key.name = name.into();
        Arc::new(view)
    }

    fn pod(name: &str) -> Arc<PodView> {
        let mut pod = PodView {
            meta: Meta {
                key: Key::new("default", name),
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

    /// Checks C4: a Pod whose node is not known, as after a stale list, is charged to no other node.
    #[test]
    fn pods_are_charged_to_their_nodes() {
        let placed = [("b", pod("one")), ("b", pod("two")), ("gone", pod("three"))];
        let placed = placed.map(|(node, pod)| (node.to_owned(), pod));
        let snapshot = Snapshot::new(vec![node("b"), node("a")], placed, Vec::new());
        let [a, b] = &snapshot.nodes[..] else {
            panic!("two nodes")
        };
        assert_eq!((a.view.name(), a.pods, snapshot.pods[0].len()), ("a", 0, 0));
        assert_eq!((b.used.millicpu, b.nonzero.millicpu), (10, 14));
        assert_eq!((b.pods, b.ports.len(), snapshot.pods[1].len()), (2, 2, 2));
        assert_eq!(
            (snapshot.index("b"), snapshot.index("gone")),
            (Some(1), None)
        );
    }
}
