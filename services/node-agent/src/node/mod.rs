//! The nodes of this process: identity, capacity, registration, admission of Pods, static Pods, eviction, shutdown and
//! usage.

pub mod admission;
mod conditions;
pub mod eviction;
pub mod heartbeat;
pub mod image_gc;
mod machine;
mod object;
mod pods;
pub mod published;
pub mod reclaim;
pub mod reservation;
mod settings;
pub mod shutdown;
mod state;
pub mod static_pods;
pub mod usage;
pub mod watch;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;

use setpoint_model::Resources;
use setpoint_model::hash::fnv32a;
use setpoint_proto::core;
use setpoint_proto::meta::Quantity;
use setpoint_runtime::Kind;
use setpoint_runtime::cri::Features;

pub use machine::Machine;
pub use object::{annotations, internal_ip, labels, status, taints};
pub use pods::Pods;
pub use settings::{Capacity, Settings};
pub use state::{CRITICAL, NodeState, Pressure};

use crate::node::admission::{NodeCapacity, PodNetwork};
use crate::node::eviction::FileSystems;

/// CPUs of a simulated node, unless set.
const SIMULATED_CPU: &str = "32";
/// Memory of a simulated node, unless set.
const SIMULATED_MEMORY: &str = "256Gi";
/// Disk of a simulated node, unless set.
const SIMULATED_STORAGE: &str = "1Ti";

/// The resources of a node that its agent sets.
pub const OWN: [&str; 4] = ["cpu", "memory", "ephemeral-storage", "pods"];

/// One node of this process.
#[derive(Clone, Debug)]
pub struct Node {
    /// Name, also used as the host name.
    pub name: String,
    /// Allocatable resources and Pod network, for admission.
    pub capacity: NodeCapacity,
    /// The resources of the node, those of [`OWN`].
    pub resources: Arc<BTreeMap<String, Quantity>>,
    /// The amounts of them that Pods can request together.
    pub allocatable: Arc<BTreeMap<String, Quantity>>,
    /// The runtime of its containers.
    pub runtime: Kind,
    /// Internal IP of the node.
    pub ip: IpAddr,
    /// Name of the software that runs its containers; empty for that of the runtime.
    pub runtime_name: String,
    /// Version of the software that runs its containers.
    pub runtime_version: String,
    /// The optional features that the runtime reports.
    pub features: Features,
    /// The directory of its persistent volumes, if it keeps any.
    pub local_path: Option<PathBuf>,
    /// The file systems of the machine whose space counts; `None` if the node is simulated.
    pub disks: Option<FileSystems>,
    /// The reason why the configured runtime was replaced by processes; empty if it was not.
    pub fallback: String,
}

impl Node {
    /// Returns an object of this name for Events. As in the kubelet, its uid is the name.
    pub fn subject(&self) -> core::Node {
        let mut node = core::Node::default();
        node.metadata.uid.clone_from(&self.name);
        node.metadata.name.clone_from(&self.name);
        node
    }

    /// Returns the nodes that the settings ask for.
    ///
    /// # Errors
    /// If the settings reserve more than the machine has.
    pub fn all(
        settings: &Settings,
        instance: &str,
        machine: &Machine,
    ) -> Result<Vec<Self>, String> {
        let base = match settings.node_name.as_str() {
            "" => instance,
            named => named,
        };
        let name = |index: usize| match settings.nodes {
            1 => base.to_owned(),
            _ => format!("{base}-{index}"),
        };
        let first = fnv32a(base.as_bytes());
        let number = |index: usize| first.wrapping_add(u32::try_from(index).unwrap_or_default());
        (0..settings.nodes)
            .map(|index| Self::new(name(index), number(index), settings, machine))
            .collect()
    }

    fn new(
        name: String,
        number: u32,
        settings: &Settings,
        machine: &Machine,
    ) -> Result<Self, String> {
        let resources = resources(settings, machine);
        let allocatable = match settings.runtime {
            // Nothing of the machine is a simulated node's.
            Kind::Simulated => resources.clone(),
            Kind::Process | Kind::Docker | Kind::Cri => {
                reservation::allocatable(settings, &resources)?
            }
        };
        let network = network(settings.runtime, number);
        let capacity = NodeCapacity {
            resources: Resources::of_list(&allocatable),
            pods: settings.capacity.pods,
            network: settings.pod_network.unwrap_or(PodNetwork::new(network)),
        };
        let [a, b, c, _] = network.octets();
        Ok(Self {
            name,
            capacity,
            resources: Arc::new(resources),
            allocatable: Arc::new(allocatable),
            runtime: settings.runtime,
            // Until it is known at which address others reach the agent.
            ip: Ipv4Addr::new(a, b, c, 1).into(),
            runtime_name: String::new(),
            runtime_version: env!("CARGO_PKG_VERSION").to_owned(),
            features: Features::default(),
            local_path: None,
            disks: None,
            fallback: String::new(),
        })
    }
}

/// Returns the resources of a node: those that the settings name, else those of the machine, or of a simulated node.
fn resources(settings: &Settings, machine: &Machine) -> BTreeMap<String, Quantity> {
    let choose = |set: &str, simulated: &str, real: &str| match (set, settings.runtime) {
        ("", Kind::Simulated) => simulated.to_owned(),
        ("", Kind::Process | Kind::Docker | Kind::Cri) => real.to_owned(),
        (set, _) => set.to_owned(),
    };
    let set = &settings.capacity;
    let amounts = [
        choose(&set.cpu, SIMULATED_CPU, &machine.cpu),
        choose(&set.memory, SIMULATED_MEMORY, &machine.memory),
        choose(&set.ephemeral_storage, SIMULATED_STORAGE, &machine.storage),
        set.pods.to_string(),
    ];
    let named = OWN.into_iter().zip(amounts);
    let named = named.map(|(name, amount)| (name.to_owned(), Quantity::new(amount)));
    named.collect()
}

/// Returns the Pod network of a node without a range of its own, derived from a hash of its name. Collisions are
/// possible but unlikely.
///
/// Processes share the machine's network, where every address in 127/8 is the machine itself, so that a Pod's address
/// leads to its ports. The first 256 networks are left out; `localhost` is among them.
fn network(runtime: Kind, number: u32) -> Ipv4Addr {
    let [_, _, high, low] = number.to_be_bytes();
    match runtime {
        Kind::Process => Ipv4Addr::new(127, high.max(1), low, 0),
        // An engine and CNI assign addresses of their own; these serve only as keys of admission.
        Kind::Simulated | Kind::Docker | Kind::Cri => Ipv4Addr::new(10, high, low, 0),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use jiff::Timestamp;
    use setpoint_proto::core::NodeStatus;

    use super::*;

    fn nodes(nodes: usize, runtime: Kind) -> Vec<Node> {
        let settings = Settings {
            nodes,
            runtime,
            ..Settings::default()
        };
        let machine = Machine {
            cpu: "2".into(),
            memory: "1024Mi".into(),
            storage: "512Ki".into(),
            ..Machine::default()
        };
        Node::all(&settings, "node-agent-3", &machine).unwrap()
    }

    #[test]
    fn one_node_has_the_name_of_its_instance_and_the_size_of_its_machine_without_what_is_reserved()
    {
        let [node] = nodes(1, Kind::Process).try_into().unwrap();
        assert_eq!(node.name, "node-agent-3");
        assert_eq!(node.resources["memory"].string, "1024Mi");
        let thresholds = 100 << 20;
        let Resources {
            millicpu, memory, ..
        } = node.capacity.resources;
        assert_eq!((millicpu, memory), (2000, (1 << 30) - thresholds));
        let network = node.capacity.network.address(0);
        assert!(network.is_loopback() && network.octets()[1] > 0);
    }

    /// Checks E8 and RF12.
    #[test]
    fn a_node_reports_the_version_of_its_engine_and_that_of_the_server() {
        let [mut node] = nodes(1, Kind::Docker).try_into().unwrap();
        node.runtime_version = "20.10.24".to_owned();
        let (machine, state) = (Machine::default(), NodeState::default());
        let reported = NodeStatus::default();
        let now = Timestamp::UNIX_EPOCH;
        let status = super::status(&node, &machine, "10.1.2.3:80", &state, &reported, now);
        let info = status.node_info;
        assert_eq!(info.container_runtime_version, "docker://20.10.24");
        let server = setpoint_model::version::git_version(env!("CARGO_PKG_VERSION"));
        assert_eq!(info.kubelet_version, server);
    }

    /// Checks RF5: status.hostIP is the InternalIP.
    #[test]
    fn the_internal_ip_is_the_address_at_which_others_reach_the_agent() {
        for (address, expected) in [
            ("127.0.0.1:10250", Some("127.0.0.1")),
            ("[fd00::1]:10250", Some("fd00::1")),
            ("node-agent:10250", None),
        ] {
            let ip = internal_ip(address).map(|ip| ip.to_string());
            assert_eq!(ip.as_deref(), expected, "{address}");
        }
    }

    /// Checks K13.
    #[test]
    fn a_node_reports_its_ephemeral_storage() {
        let storage = |settings: &Settings| {
            let machine = Machine {
                storage: "512Ki".into(),
                ..Machine::default()
            };
            let nodes = Node::all(settings, "node", &machine).unwrap();
            let [node] = nodes.try_into().unwrap();
            let storage = node.resources["ephemeral-storage"].string.clone();
            let status = super::status(
                &node,
                &machine,
                "",
                &NodeState::default(),
                &NodeStatus::default(),
                Timestamp::UNIX_EPOCH,
            );
            assert_eq!(status.capacity["ephemeral-storage"].string, storage);
            assert_eq!(status.allocatable["ephemeral-storage"].string, storage);
            storage
        };
        let mut settings = Settings::default();
        settings.eviction.hard.clear();
        assert_eq!(storage(&settings), "512Ki");
        settings.runtime = Kind::Simulated;
        assert_eq!(storage(&settings), SIMULATED_STORAGE);
        settings.capacity.ephemeral_storage = "7Gi".into();
        assert_eq!(storage(&settings), "7Gi");
    }

    /// Admission and the scheduler see the same amounts.
    #[test]
    fn what_is_reserved_is_neither_admitted_nor_reported_as_allocatable() {
        let mut settings = Settings {
            kube_reserved: "cpu=500m,ephemeral-storage=1Gi".into(),
            ..Settings::default()
        };
        settings.capacity.ephemeral_storage = "3Gi".into();
        settings.eviction.hard = "nodefs.available<50%".into();
        let of = |settings: &Settings| {
            let machine = Machine {
                cpu: "2".into(),
                memory: "1Gi".into(),
                ..Machine::default()
            };
            let [node] = Node::all(settings, "node", &machine)?.try_into().unwrap();
            let state = NodeState::default();
            let now = Timestamp::UNIX_EPOCH;
            let status = super::status(&node, &machine, "", &state, &NodeStatus::default(), now);
            assert_eq!(
                Resources::of_list(&status.allocatable),
                node.capacity.resources
            );
            assert_eq!(status.allocatable["pods"].string, "110");
            assert_eq!(&status.allocatable, node.allocatable.as_ref());
            let amounts = |name: &str| {
                let side = |list: &BTreeMap<String, Quantity>| list[name].string.clone();
                (side(&status.capacity), side(&status.allocatable))
            };
            Ok::<_, String>((amounts("cpu"), amounts("ephemeral-storage")))
        };
        let pair = |capacity: &str, allocatable: &str| (capacity.into(), allocatable.into());
        let expected = (pair("2", "1500m"), pair("3Gi", "512Mi"));
        assert_eq!(of(&settings), Ok(expected));
        settings.runtime = Kind::Simulated;
        let expected = (pair("32", "32"), pair("3Gi", "3Gi"));
        assert_eq!(of(&settings), Ok(expected));
        settings.runtime = Kind::Process;
        settings.system_reserved = "cpu=2".into();
        let error = of(&settings).unwrap_err();
        assert!(
            error.starts_with("invalid Node Allocatable configuration. "),
            "{error}"
        );
    }

    #[test]
    fn a_resource_that_others_advertise_stays_and_is_allocatable() {
        let [node] = nodes(1, Kind::Process).try_into().unwrap();
        let mut reported = NodeStatus::default();
        for (name, amount) in [("example.com/gpu", "4"), ("cpu", "64")] {
            let amount = Quantity::new(amount);
            reported.capacity.insert(name.into(), amount);
        }
        let (machine, state) = (Machine::default(), NodeState::default());
        let status = super::status(
            &node,
            &machine,
            "",
            &state,
            &reported,
            Timestamp::UNIX_EPOCH,
        );
        for resources in [status.capacity, status.allocatable] {
            let amount = |name: &str| resources[name].string.as_str();
            assert_eq!((amount("example.com/gpu"), amount("cpu")), ("4", "2"));
        }
    }

    #[test]
    fn several_nodes_have_distinct_names_and_networks() {
        let nodes = nodes(1000, Kind::Simulated);
        let networks: HashSet<_> = nodes.iter().map(|node| node.capacity.network).collect();
        assert_eq!(networks.len(), 1000);
        assert_eq!(nodes[999].name, "node-agent-3-999");
    }
}
