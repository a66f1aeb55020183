//! Host ports of Pods.

use setpoint_proto::core::{ContainerPort, PodSpec};

use crate::pod::running_containers;

/// A host port, which one Pod of a node can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// The address; `ANY` for all addresses of the node.
    pub ip: String,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// The number.
    pub port: i32,
}

/// All addresses.
const ANY: &str = "0.0.0.0";

impl HostPort {
    /// Returns the host ports of the containers and sidecars of a Pod. Those of init containers are not reserved.
    pub fn of_pod(spec: &PodSpec) -> Vec<Self> {
        running_containers(spec)
            .flat_map(|container| &container.ports)
            .filter(|port| port.host_port > 0)
            .map(Self::of)
            .collect()
    }

    fn of(port: &ContainerPort) -> Self {
        let or = |text: &str, default: &str| match text {
            "" => default.to_owned(),
            text => text.to_owned(),
        };
        Self {
            ip: or(&port.host_ip, ANY),
            protocol: or(&port.protocol, "TCP"),
            port: port.host_port,
        }
    }

    /// Returns whether the ports conflict.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        (self.port, &self.protocol) == (other.port, &other.protocol)
            && (self.ip == other.ip || self.ip == ANY || other.ip == ANY)
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::Container;

    use super::*;

    fn port(ip: &str, protocol: &str, host_port: i32) -> ContainerPort {
        ContainerPort {
            host_ip: ip.into(),
            protocol: protocol.into(),
            host_port,
            container_port: 80,
            ..Default::default()
        }
    }

    fn conflict(a: (&str, &str, i32), b: (&str, &str, i32)) -> bool {
        let of = |(ip, protocol, number)| HostPort::of(&port(ip, protocol, number));
        let (a, b) = (of(a), of(b));
        assert_eq!(a.conflicts_with(&b), b.conflicts_with(&a));
        a.conflicts_with(&b)
    }

    /// Checks F5.
    #[test]
    fn ports_conflict_by_number_protocol_and_address() {
        assert!(conflict(("", "", 8080), ("", "TCP", 8080)));
        assert!(conflict(
            ("127.0.0.1", "TCP", 8080),
            ("0.0.0.0", "TCP", 8080)
        ));
        assert!(conflict(("127.0.0.1", "UDP", 53), ("127.0.0.1", "UDP", 53)));
        assert!(!conflict(
            ("127.0.0.1", "TCP", 8080),
            ("127.0.0.2", "TCP", 8080)
        ));
        assert!(!conflict(("", "TCP", 53), ("", "UDP", 53)));
        assert!(!conflict(("", "TCP", 8080), ("", "TCP", 8081)));
    }

    #[test]
    fn a_pod_has_the_ports_of_its_containers_and_sidecars() {
        let container = |ports: &[i32]| Container {
            ports: ports.iter().map(|&number| port("", "", number)).collect(),
            ..Default::default()
        };
        let spec = PodSpec {
            containers: vec![container(&[1, 0]), container(&[2])],
            init_containers: vec![
                container(&[3]),
                Container {
                    restart_policy: Some("Always".into()),
                    ..container(&[4])
                },
            ],
            ..Default::default()
        };
        let ports: Vec<_> = HostPort::of_pod(&spec)
            .iter()
            .map(|port| port.port)
            .collect();
        assert_eq!(ports, [1, 2, 4]);
    }
}
