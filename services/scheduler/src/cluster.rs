//! The cluster as it becomes while a plan is made: each decision includes those before it.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use setpoint_model::Key;

use crate::counts::Counts;
use crate::group::Group;
use crate::pod::PodView;
use crate::snapshot::{NodeInfo, Snapshot};
use crate::storage::Choice;
use crate::terms::PlacedTerms;
use crate::topology::{Domains, Topology};

/// The nodes with the Pods that are on them or will be, and indexes that are made when they are asked for.
pub struct Cluster<'a> {
    /// The snapshot that the plan began with.
    pub snapshot: &'a Snapshot,
    /// The nodes with their used resources.
    pub nodes: Vec<NodeInfo>,
    /// The Pods of each node.
    pub pods: Vec<Vec<Arc<PodView>>>,
    /// The affinity and anti-affinity of the Pods.
    pub terms: PlacedTerms,
    /// The numbers of disruptions that are left of each budget of the snapshot.
    pub allowances: Vec<i64>,
    /// The volumes that the plan reserves.
    pub taken_volumes: HashSet<String>,
    /// The nodes that the plan selects for claims.
    pub selected_nodes: HashMap<Key, String>,
    /// The Pods that the plan preempts.
    pub victims: HashSet<Key>,
    /// The Pods without a node for which room is reserved, by node.
    nominated: HashMap<usize, Vec<Arc<PodView>>>,
    topology: RefCell<Topology>,
    counts: RefCell<Counts>,
    images: RefCell<HashMap<String, Option<Arc<Vec<i64>>>>>,
}

impl<'a> Cluster<'a> {
    /// Returns the cluster of a snapshot.
    pub fn new(snapshot: &'a Snapshot) -> Self {
        let mut nominated: HashMap<usize, Vec<_>> = HashMap::new();
        for pod in &snapshot.nominated {
            if let Some(node) = pod.nominated().and_then(|name| snapshot.index(name)) {
                nominated.entry(node).or_default().push(pod.clone());
            }
        }
        let mut cluster = Self {
            snapshot,
            nodes: snapshot.nodes.clone(),
            pods: snapshot.pods.clone(),
            terms: PlacedTerms::default(),
            allowances: snapshot
                .budgets
                .iter()
                .map(|budget| budget.allowed)
                .collect(),
            taken_volumes: HashSet::new(),
            selected_nodes: HashMap::new(),
            victims: HashSet::new(),
            nominated,
            topology: RefCell::default(),
            counts: RefCell::default(),
            images: RefCell::default(),
        };
        for (node, pods) in snapshot.pods.iter().enumerate() {
            pods.iter().for_each(|pod| cluster.terms.add(node, pod));
        }
        cluster
    }

    /// Adds a Pod to a node.
    pub fn place(&mut self, node: usize, pod: &Arc<PodView>) {
        self.withdraw(&pod.meta.key);
        self.nodes[node].take(pod);
        self.terms.add(node, pod);
        let namespaces = &self.snapshot.namespaces;
        self.counts.get_mut().add(node, pod, namespaces);
        self.pods[node].push(pod.clone());
    }

    /// Reserves volumes, and selects a node for claims without any.
    pub fn take_volumes(&mut self, node: usize, choices: &[Choice]) {
        let node = self.nodes[node].view.name();
        for choice in choices {
            match &choice.volume {
                Some(view) => _ = self.taken_volumes.insert(view.volume.name().to_owned()),
                None => {
                    let claim = choice.claim.claim.meta.key.clone();
                    self.selected_nodes.insert(claim, node.to_owned());
                }
            }
        }
    }

    /// Reserves room for a Pod on a node, in place of an earlier reservation.
    pub fn nominate(&mut self, node: usize, pod: &Arc<PodView>) {
        self.withdraw(&pod.meta.key);
        self.nominated.entry(node).or_default().push(pod.clone());
    }

    /// Ends the reservation of a Pod.
    pub fn withdraw(&mut self, pod: &Key) {
        self.nominated.retain(|_, pods| {
            pods.retain(|nominated| nominated.meta.key != *pod);
            !pods.is_empty()
        });
    }

    /// Returns the Pods for which room on a node is reserved.
    pub fn nominated(&self, node: usize) -> &[Arc<PodView>] {
        self.nominated.get(&node).map_or(&[], Vec::as_slice)
    }

    /// Returns the domains of a topology key.
    pub fn domains(&self, key: &str) -> Arc<Domains> {
        self.topology.borrow_mut().domains(key, &self.nodes)
    }

    /// Returns the number of Pods of a group on each node.
    pub fn count(&self, group: &Group) -> Arc<Vec<i64>> {
        let namespaces = &self.snapshot.namespaces;
        let mut counts = self.counts.borrow_mut();
        counts.of(group, &self.pods, namespaces)
    }

    /// Returns the size of an image on each node, scaled by the share of the nodes that have it; `None` if no node has
    /// it.
    pub fn image(&self, name: &str) -> Option<Arc<Vec<i64>>> {
        if let Some(known) = self.images.borrow().get(name) {
            return known.clone();
        }
        let size = |node: &NodeInfo| node.view.images.get(name).copied();
        let having = self
            .nodes
            .iter()
            .filter(|node| size(node).is_some())
            .count();
        let share = having as f64 / self.nodes.len().max(1) as f64;
        let scaled = |node: &NodeInfo| (size(node).unwrap_or_default() as f64 * share) as i64;
        let sizes =
            (having > 0).then(|| Arc::new(self.nodes.iter().map(scaled).collect::<Vec<_>>()));
        let mut images = self.images.borrow_mut();
        images.insert(name.to_owned(), sizes.clone());
        sizes
    }
}
