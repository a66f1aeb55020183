//! Records the resources, host ports and addresses of one node that its Pods have.

#![warn(clippy::arithmetic_side_effects)]

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use setpoint_model::resource_name::is_extended;
use setpoint_model::{HostPort, Resources};

use super::used::{Used, amounts};
use super::{AdmittedPod, NodeCapacity};
use crate::pod::demand::Demand;
use crate::pod::rejection::{InsufficientResource, Rejection};

/// The resources of a node, and what the Pods that are admitted to it have of them.
pub struct NodeAllocation {
    /// The allocatable resources, the number of Pods and the addresses of the node.
    pub capacity: NodeCapacity,
    /// The resources that others have added to the node, by name.
    pub added: BTreeMap<String, i64>,
    /// The sum of the requests of admitted Pods.
    pub used: Used,
    /// The host ports of admitted Pods; a port of several restored Pods is listed several times.
    ports: Vec<HostPort>,
    /// The last parts of their addresses.
    hosts: BTreeSet<u8>,
    /// Those of `hosts` that are kept for Pods which are not known yet, and do not count.
    pub held: BTreeSet<u8>,
}

impl NodeAllocation {
    /// Returns that of a node without Pods.
    pub fn of(capacity: NodeCapacity) -> Self {
        Self {
            capacity,
            added: BTreeMap::new(),
            used: Used::default(),
            ports: Vec::new(),
            hosts: BTreeSet::new(),
            held: BTreeSet::new(),
        }
    }

    /// Checks whether a Pod fits once `former` has left.
    pub fn fits(&self, demand: &Demand, former: Option<&AdmittedPod>) -> Result<(), Rejection> {
        self.has_resources(&demand.requests, former)
            .map_err(Rejection::Insufficient)?;
        match self.has_ports(&demand.ports, former) {
            true => Ok(()),
            false => Err(Rejection::HostPort),
        }
    }

    fn has_ports(&self, ports: &[HostPort], former: Option<&AdmittedPod>) -> bool {
        let left = |port: &&HostPort| former.is_none_or(|pod| !pod.demand.ports.contains(port));
        let taken: Vec<_> = self.ports.iter().filter(left).collect();
        let mut ports = ports.iter();
        !ports.any(|port| taken.iter().any(|other| port.conflicts_with(other)))
    }

    /// Checks whether a Pod fits once `former` has left, in the order of the kubelet: the number of Pods, then
    /// resources.
    fn has_resources(
        &self,
        requests: &Resources,
        former: Option<&AdmittedPod>,
    ) -> Result<(), InsufficientResource> {
        let mut used = self.used.clone();
        former.inspect(|former| used.subtract(&former.demand.requests));
        let pods = count(self.hosts.len()).saturating_sub(count(self.held.len()));
        let former = former.filter(|former| !self.held.contains(&former.host));
        let pods = pods.saturating_sub(former.is_some().into());
        suffices("pods", 1, pods.into(), count(self.capacity.pods))?;
        amounts(requests).try_for_each(|(name, requested)| match self.capacity_of(name) {
            Some(capacity) => suffices(name, requested, used.of(name), capacity),
            None => Ok(()),
        })
    }

    /// Checks whether a Pod of the node fits with other requests: first on a node without other Pods.
    pub fn fits_resized(
        &self,
        requests: &Resources,
        admitted: &AdmittedPod,
    ) -> Result<(), InsufficientResource> {
        let resources = &self.capacity.resources;
        suffices("cpu", requests.millicpu, 0, resources.millicpu)?;
        suffices("memory", requests.memory, 0, resources.memory)?;
        self.has_resources(requests, Some(admitted))
    }

    /// Returns the allocatable amount of a resource. As in the kubelet, an extended resource that the node does not
    /// have is none of its own, and not checked.
    fn capacity_of(&self, name: &str) -> Option<i64> {
        let resources = &self.capacity.resources;
        let known = amounts(resources).find(|(known, _)| *known == name);
        let known = known.map(|(_, amount)| amount);
        let known = known.or_else(|| self.added.get(name).copied());
        known.or_else(|| (!is_extended(name)).then_some(0))
    }

    /// Adds a Pod, at this address if it is one of the node that no other Pod has. Returns the last part of the
    /// address that it has.
    pub fn allocate(&mut self, demand: &Demand, ip: Option<Ipv4Addr>) -> u8 {
        self.used.add(&demand.requests);
        self.ports.extend_from_slice(&demand.ports);
        let network = self.capacity.network;
        let previous = ip
            .and_then(|ip| network.host(ip))
            .filter(|host| !self.hosts.contains(host));
        let free = || (2..=network.last).find(|host| !self.hosts.contains(host));
        // 255 is shared by all Pods beyond the 253rd, which only `restore` admits.
        let host = previous.or_else(free).unwrap_or(u8::MAX);
        self.hosts.insert(host);
        host
    }

    /// Removes a Pod.
    pub fn release(&mut self, pod: &AdmittedPod) {
        self.used.subtract(&pod.demand.requests);
        for port in &pod.demand.ports {
            let listed = self.ports.iter().position(|other| other == port);
            listed.map(|index| self.ports.swap_remove(index));
        }
        self.hosts.remove(&pod.host);
        self.held.remove(&pod.host);
    }

    /// Returns the address with this last part.
    pub fn address(&self, host: u8) -> Ipv4Addr {
        self.capacity.network.address(host)
    }
}

/// Checks that a node has as much of a resource as a Pod requests beside those that use it.
fn suffices(
    resource: &str,
    requested: i64,
    used: i128,
    capacity: i64,
) -> Result<(), InsufficientResource> {
    if requested <= 0 || used.saturating_add(requested.into()) <= capacity.into() {
        return Ok(());
    }
    Err(InsufficientResource {
        resource: resource.to_owned(),
        requested,
        used: i64::try_from(used).unwrap_or(i64::MAX),
        capacity,
    })
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
