//! Admits Pods to the nodes of this process: checks that they fit and assigns their addresses.

#![warn(clippy::arithmetic_side_effects)]

mod node_allocation;
mod pod_network;
mod used;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::Ipv4Addr;

use parking_lot::Mutex;
use setpoint_model::{Key, Resources};
use setpoint_proto::core::PodSpec;
use setpoint_proto::{ApiError, Reason};

use crate::pod::demand::{Allocation, Demand, Pending, Resize};
use crate::pod::rejection::{AdmitResult, Rejection};
use node_allocation::NodeAllocation;

pub use pod_network::PodNetwork;

/// The allocatable resources of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeCapacity {
    /// CPU, memory and ephemeral storage.
    pub resources: Resources,
    /// Maximum number of Pods.
    pub pods: usize,
    /// The addresses of Pods.
    pub network: PodNetwork,
}

/// The admitted Pods of all nodes of this process.
#[derive(Default)]
pub struct Admission {
    allocations: Mutex<Allocations>,
}

#[derive(Default)]
struct Allocations {
    nodes: HashMap<String, NodeAllocation>,
    pods: HashMap<Key, AdmittedPod>,
    /// The Pods whose resize did not fit.
    deferred: BTreeSet<Key>,
}

struct AdmittedPod {
    uid: String,
    node: String,
    demand: Demand,
    host: u8,
}

impl Admission {
    /// Returns an empty record of these nodes.
    pub fn new(nodes: impl IntoIterator<Item = (String, NodeCapacity)>) -> Self {
        let nodes = nodes.into_iter();
        let nodes = nodes.map(|(name, capacity)| (name, NodeAllocation::of(capacity)));
        Self {
            allocations: Mutex::new(Allocations {
                nodes: nodes.collect(),
                ..Allocations::default()
            }),
        }
    }

    /// Sets the resources that others have added to a node, beside those of its capacity.
    pub fn set_added(&self, node: &str, added: BTreeMap<String, i64>) {
        if let Some(allocation) = self.allocations.lock().nodes.get_mut(node) {
            allocation.added = added;
        }
    }

    /// Sets the addresses of the Pods of a node. Pods without a sandbox get others.
    pub fn set_network(&self, node: &str, network: PodNetwork) {
        if let Some(allocation) = self.allocations.lock().nodes.get_mut(node) {
            allocation.capacity.network = network;
        }
    }

    /// Checks a Pod against what is free on its node. Has no side effects.
    pub fn check(&self, pod: &Key, uid: &str, node: &str, demand: &Demand) -> AdmitResult {
        let allocations = self.allocations.lock();
        match allocations.address_of(pod, uid) {
            Some(address) => Ok(Some(address)),
            None => allocations.fits(pod, node, demand).map(|()| None),
        }
    }

    /// Admits a Pod, in place of an earlier one of its name.
    ///
    /// # Errors
    /// `Conflict` if it does not fit any more: another Pod was admitted since it was checked.
    pub fn admit(&self, pod: &Key, uid: &str, node: &str, demand: &Demand) -> Result<(), ApiError> {
        let mut allocations = self.allocations.lock();
        if allocations.address_of(pod, uid).is_none() {
            let fits = allocations.fits(pod, node, demand);
            fits.map_err(|rejection| ApiError::new(Reason::Conflict, rejection.message()))?;
            allocations.remove(pod);
            allocations.insert(pod, uid, node, demand, None);
        }
        Ok(())
    }

    /// Admits a Pod that was admitted before the agent restarted, without checking that it fits.
    pub fn restore(&self, pod: &Key, uid: &str, node: &str, demand: &Demand, ip: Option<Ipv4Addr>) {
        let mut allocations = self.allocations.lock();
        if allocations.is_held(pod) {
            allocations.remove(pod);
        }
        if allocations.address_of(pod, uid).is_none() {
            allocations.insert(pod, uid, node, demand, ip);
        }
    }

    /// Keeps the address of the sandbox of a Pod that is not known yet, until the Pod is [restored](Self::restore) or
    /// released.
    pub fn hold(&self, pod: &Key, uid: &str, node: &str, ip: Option<Ipv4Addr>) {
        let mut allocations = self.allocations.lock();
        allocations.remove(pod);
        allocations.insert(pod, uid, node, &Demand::default(), ip);
        let host = allocations.pods.get(pod).map(|held| held.host);
        if let Some(of_node) = allocations.nodes.get_mut(node) {
            of_node.held.extend(host);
        }
    }

    /// Returns the resize of an admitted Pod, and the resources that are allocated to it; `None` if these are the ones
    /// that its spec asks for. One that does not fit is remembered until another Pod leaves room.
    pub fn resize_of(&self, pod: &Key, uid: &str, spec: &PodSpec) -> Option<(Allocation, Resize)> {
        let mut allocations = self.allocations.lock();
        let admitted = allocations.pods.get(pod);
        let admitted = admitted.filter(|admitted| admitted.uid == uid)?;
        if admitted.demand.allocation.is_of(spec) {
            return None;
        }
        let demand = Demand::of(spec);
        let node = allocations.nodes.get(&admitted.node)?;
        let fits = node.fits_resized(&demand.requests, admitted);
        let verdict = fits.map_err(|lack| Pending::of(&lack));
        let allocated = admitted.demand.allocation.clone();
        if verdict.is_err() {
            allocations.deferred.insert(pod.clone());
        }
        Some((allocated, Resize { demand, verdict }))
    }

    /// Allocates the resources of a resize. Returns the Pods whose resize may fit now.
    ///
    /// # Errors
    /// `Conflict` if it does not fit any more.
    pub fn resize(&self, pod: &Key, uid: &str, demand: &Demand) -> Result<Vec<Key>, ApiError> {
        let mut allocations = self.allocations.lock();
        let Allocations {
            nodes,
            pods,
            deferred,
        } = &mut *allocations;
        let admitted = pods.get_mut(pod).filter(|admitted| admitted.uid == uid);
        let Some(admitted) = admitted else {
            return Ok(Vec::new());
        };
        if let Some(node) = nodes.get_mut(&admitted.node) {
            let fits = node.fits_resized(&demand.requests, admitted);
            fits.map_err(|lack| ApiError::new(Reason::Conflict, lack.message()))?;
            node.used.subtract(&admitted.demand.requests);
            node.used.add(&demand.requests);
        }
        admitted.demand.requests.clone_from(&demand.requests);
        admitted.demand.allocation.clone_from(&demand.allocation);
        Ok(std::mem::take(deferred).into_iter().collect())
    }

    /// Releases the resources and the address of the Pod with this uid. Returns the Pods whose resize may fit now.
    pub fn release(&self, pod: &Key, uid: &str) -> Vec<Key> {
        let mut allocations = self.allocations.lock();
        if allocations.address_of(pod, uid).is_none() {
            return Vec::new();
        }
        allocations.remove(pod);
        let deferred = std::mem::take(&mut allocations.deferred);
        deferred.into_iter().filter(|other| other != pod).collect()
    }
}

impl Allocations {
    /// Checks whether a Pod fits once an earlier one of its name has left.
    fn fits(&self, pod: &Key, node: &str, demand: &Demand) -> Result<(), Rejection> {
        let Some(allocation) = self.nodes.get(node) else {
            return Ok(());
        };
        let former = self.pods.get(pod).filter(|former| former.node == node);
        allocation.fits(demand, former)
    }

    fn is_held(&self, pod: &Key) -> bool {
        let admitted = self.pods.get(pod);
        let node = |admitted: &AdmittedPod| self.nodes.get(&admitted.node);
        admitted.is_some_and(|admitted| {
            node(admitted).is_some_and(|node| node.held.contains(&admitted.host))
        })
    }

    fn address_of(&self, pod: &Key, uid: &str) -> Option<Ipv4Addr> {
        let admitted = self.pods.get(pod).filter(|admitted| admitted.uid == uid)?;
        Some(self.nodes.get(&admitted.node)?.address(admitted.host))
    }

    fn insert(&mut self, pod: &Key, uid: &str, node: &str, demand: &Demand, ip: Option<Ipv4Addr>) {
        let Some(allocation) = self.nodes.get_mut(node) else {
            return;
        };
        let host = allocation.allocate(demand, ip);
        let (uid, node, demand) = (uid.to_owned(), node.to_owned(), demand.clone());
        self.pods.insert(
            pod.clone(),
            AdmittedPod {
                uid,
                node,
                demand,
                host,
            },
        );
    }

    fn remove(&mut self, pod: &Key) {
        let Some(admitted) = self.pods.remove(pod) else {
            return;
        };
        if let Some(allocation) = self.nodes.get_mut(&admitted.node) {
            allocation.release(&admitted);
        }
    }
}

#[cfg(test)]
mod tests;
