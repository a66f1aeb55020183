//! Admits Pods to the nodes of this process: checks that they fit and assigns their addresses.

#![warn(clippy::arithmetic_side_effects)]

use std::collections::{BTreeSet, HashMap};
use std::net::Ipv4Addr;

use parking_lot::Mutex;
use setpoint_model::pod::{self, Requests};
use setpoint_model::{HostPort, Key};
use setpoint_proto::core::PodSpec;
use setpoint_proto::{ApiError, Reason};

use crate::rejection::{InsufficientResource, Rejection};

/// The address of an admitted Pod, `None` of one that fits and is to be admitted, or the reason of its rejection.
pub type AdmitResult = Result<Option<Ipv4Addr>, Rejection>;

/// What a Pod takes from its node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// CPU and memory.
    pub requests: Requests,
    /// Host ports.
    pub ports: Vec<HostPort>,
}

impl Demand {
    /// Returns the demand of a Pod with this spec.
    pub fn of(spec: &PodSpec) -> Self {
        Self {
            requests: pod::requests(spec),
            ports: HostPort::of_pod(spec),
        }
    }
}

/// The allocatable resources of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeCapacity {
    /// CPU and memory.
    pub requests: Requests,
    /// Maximum number of Pods.
    pub pods: usize,
    /// The /24 network of the Pods: host 1 is the node, 2 to 254 are for Pods.
    pub network: Ipv4Addr,
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
}

struct NodeAllocation {
    capacity: NodeCapacity,
    used: Used,
    /// The host ports of admitted Pods; a port of several restored Pods is listed several times.
    ports: Vec<HostPort>,
    hosts: BTreeSet<u8>,
}

/// Sum of requests. A request may be any 64-bit number; 128 bits hold any sum of them, so that a subtraction exactly
/// reverses its addition.
#[derive(Clone, Copy, Default)]
struct Used {
    millicpu: i128,
    memory: i128,
}

impl Used {
    fn add(&mut self, requests: Requests) {
        self.millicpu = self.millicpu.saturating_add(requests.millicpu.into());
        self.memory = self.memory.saturating_add(requests.memory.into());
    }

    fn subtract(&mut self, requests: Requests) {
        self.millicpu = self.millicpu.saturating_sub(requests.millicpu.into());
        self.memory = self.memory.saturating_sub(requests.memory.into());
    }
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
        let allocation = |capacity| NodeAllocation {
            capacity,
            used: Used::default(),
            ports: Vec::new(),
            hosts: BTreeSet::new(),
        };
        let nodes = nodes
            .into_iter()
            .map(|(name, capacity)| (name, allocation(capacity)))
            .collect();
        let pods = HashMap::new();
        Self {
            allocations: Mutex::new(Allocations { nodes, pods }),
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
        if allocations.address_of(pod, uid).is_none() {
            allocations.insert(pod, uid, node, demand, ip);
        }
    }

    /// Releases the resources and the address of the Pod with this uid.
    pub fn release(&self, pod: &Key, uid: &str) {
        let mut allocations = self.allocations.lock();
        if allocations.address_of(pod, uid).is_some() {
            allocations.remove(pod);
        }
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

impl NodeAllocation {
    fn fits(&self, demand: &Demand, former: Option<&AdmittedPod>) -> Result<(), Rejection> {
        self.has_resources(demand.requests, former)
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

    fn has_resources(
        &self,
        requests: Requests,
        former: Option<&AdmittedPod>,
    ) -> Result<(), InsufficientResource> {
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let (capacity, mut used) = (&self.capacity, self.used);
        former.inspect(|former| used.subtract(former.demand.requests));
        let pods = count(self.hosts.len()).saturating_sub(former.is_some().into());
        [
            (
                "cpu",
                requests.millicpu,
                used.millicpu,
                capacity.requests.millicpu,
            ),
            (
                "memory",
                requests.memory,
                used.memory,
                capacity.requests.memory,
            ),
            ("pods", 1, pods.into(), count(capacity.pods)),
        ]
        .into_iter()
        .find(|(_, requested, used, capacity)| {
            *requested > 0 && used.saturating_add((*requested).into()) > (*capacity).into()
        })
        .map_or(Ok(()), |(resource, requested, used, capacity)| {
            Err(InsufficientResource {
                resource,
                requested,
                used: i64::try_from(used).unwrap_or(i64::MAX),
                capacity,
            })
        })
    }

    fn allocate(&mut self, demand: &Demand, ip: Option<Ipv4Addr>) -> u8 {
        self.used.add(demand.requests);
        self.ports.extend_from_slice(&demand.ports);
        let previous = ip
            .map(|ip| ip.octets()[3])
            .filter(|host| !self.hosts.contains(host));
        let free = || (2..=254).find(|host| !self.hosts.contains(host));
        // 255 is shared by all Pods beyond the 253rd, which only `restore` admits.
        let host = previous.or_else(free).unwrap_or(u8::MAX);
        self.hosts.insert(host);
        host
    }

    fn release(&mut self, pod: &AdmittedPod) {
        self.used.subtract(pod.demand.requests);
        for port in &pod.demand.ports {
            let listed = self.ports.iter().position(|other| other == port);
            listed.map(|index| self.ports.swap_remove(index));
        }
        self.hosts.remove(&pod.host);
    }

    fn address(&self, host: u8) -> Ipv4Addr {
        let [a, b, c, _] = self.capacity.network.octets();
        Ipv4Addr::new(a, b, c, host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission() -> Admission {
        let capacity = NodeCapacity {
            requests: Requests {
                millicpu: 1000,
                memory: 1000,
            },
            pods: 3,
            network: Ipv4Addr::new(10, 1, 2, 0),
        };
        Admission::new([("node".to_owned(), capacity)])
    }

    fn demand(millicpu: i64, memory: i64) -> Demand {
        Demand {
            requests: Requests { millicpu, memory },
            ports: Vec::new(),
        }
    }

    fn admit(admission: &Admission, name: &str, millicpu: i64) -> Result<[u8; 4], String> {
        let demand = demand(millicpu, 1);
        let key = Key::new("a", name);
        let check = || admission.check(&key, name, "node", &demand);
        let admitted = admission.admit(&key, name, "node", &demand);
        let checked = check().map_err(|rejection| rejection.reason());
        assert_eq!(admitted.is_ok(), checked.is_ok());
        checked.map(|ip| ip.expect("it is admitted").octets())
    }

    #[test]
    fn a_check_takes_nothing() {
        let (admission, key) = (admission(), Key::new("a", "web"));
        let most = demand(1000, 1000);
        for uid in ["1", "2"] {
            assert_eq!(admission.check(&key, uid, "node", &most), Ok(None));
        }
        admission.admit(&key, "1", "node", &most).unwrap();
        let successor = admission.check(&key, "2", "node", &most);
        assert_eq!(successor, Ok(None), "it takes the place of its namesake");
        admission.admit(&key, "2", "node", &most).unwrap();
        admission.release(&key, "1");
        assert_eq!(admit(&admission, "other", 1), Err("OutOfcpu".into()));
    }

    /// Checks N8.
    #[test]
    fn a_pod_that_does_not_fit_is_rejected_until_another_is_released() {
        let admission = admission();
        assert_eq!(admit(&admission, "first", 600), Ok([10, 1, 2, 2]));
        assert_eq!(admit(&admission, "second", 600), Err("OutOfcpu".into()));
        assert_eq!(admit(&admission, "third", 400), Ok([10, 1, 2, 3]));
        admission.release(&Key::new("a", "first"), "first");
        assert_eq!(admit(&admission, "second", 600), Ok([10, 1, 2, 2]));
    }

    /// Checks N8.
    #[test]
    fn a_node_admits_no_more_than_its_maximum_of_pods() {
        let admission = admission();
        let admitted = ["a", "b", "c", "d"].map(|name| admit(&admission, name, 0).is_ok());
        assert_eq!(admitted, [true, true, true, false]);
    }

    #[test]
    fn admitting_a_pod_again_returns_the_same_address() {
        let admission = admission();
        assert_eq!(
            admit(&admission, "first", 600),
            admit(&admission, "first", 600)
        );
    }

    /// Checks F13.
    #[test]
    fn requests_of_any_size_neither_overflow_nor_leak() {
        let admission = admission();
        let most = demand(i64::MAX, i64::MAX);
        for name in ["a", "b"] {
            admission.restore(&Key::new("a", name), name, "node", &most, None);
        }
        assert_eq!(admit(&admission, "new", 1), Err("OutOfcpu".into()));
        for name in ["a", "b"] {
            admission.release(&Key::new("a", name), name);
        }
        assert!(admit(&admission, "new", 1000).is_ok());
        assert!(admit(&admission, "newer", i64::MAX).is_err());
    }

    #[test]
    fn a_restored_pod_keeps_its_address_even_if_it_no_longer_fits() {
        let admission = admission();
        let ip = Ipv4Addr::new(10, 1, 2, 77);
        admission.restore(
            &Key::new("a", "old"),
            "old",
            "node",
            &demand(5000, 0),
            Some(ip),
        );
        assert_eq!(admit(&admission, "old", 5000), Ok(ip.octets()));
        assert_eq!(admit(&admission, "new", 1), Err("OutOfcpu".into()));
    }

    /// Checks F5.
    #[test]
    fn a_host_port_of_a_node_is_of_one_pod() {
        let admission = admission();
        let check = |name: &str, port: i32| {
            let demand = Demand {
                ports: vec![HostPort {
                    ip: "0.0.0.0".into(),
                    protocol: "TCP".into(),
                    port,
                }],
                ..Demand::default()
            };
            let key = Key::new("a", name);
            let checked = admission.check(&key, name, "node", &demand);
            let admitted = admission.admit(&key, name, "node", &demand);
            assert_eq!(checked.is_ok(), admitted.is_ok());
            checked.map(drop)
        };
        assert_eq!(check("first", 8080), Ok(()));
        assert_eq!(check("first", 8080), Ok(()), "its own port");
        assert_eq!(check("second", 8080), Err(Rejection::HostPort));
        assert_eq!(check("third", 8081), Ok(()));
        admission.release(&Key::new("a", "first"), "first");
        assert_eq!(check("second", 8080), Ok(()));
    }
}
