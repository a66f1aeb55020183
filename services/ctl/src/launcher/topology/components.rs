//! The processes of parts of a control plane that have joined. Their names have the address of the machine, since those
//! of replicas are unique in the whole cluster.

use std::net::Ipv4Addr;

use super::{
    AGENT, DNS, PROXY, ProcessSpec, certs, controllers, dns_replica, gateway_process, member,
    program_name,
};
use crate::launcher::component::{Component, Joining};
use crate::launcher::identity::Identity;
use crate::launcher::state_dir::StateDir;

/// The part of the name of a process that has joined between its service and its machine or node.
pub(super) const OF: &str = "-of-";

/// Returns whether a process is one of a part of a control plane that has joined: agents, and what runs beside them,
/// are of a node.
pub fn is_of_machine(name: &str) -> bool {
    let place = name.split_once(OF);
    let place = place.filter(|(service, _)| ![AGENT, PROXY].contains(service));
    place.is_some_and(|(_, machine)| machine.replace('-', ".").parse::<Ipv4Addr>().is_ok())
}

/// Returns an address as it is in names.
pub(super) fn in_names(machine: Ipv4Addr) -> String {
    machine.to_string().replace('.', "-")
}

/// Returns the processes of these parts, and that of their certificates, in stages.
pub fn components(state_dir: &StateDir, parts: &[Component]) -> [Vec<ProcessSpec>; 3] {
    let mut stages = [vec![certs(state_dir)], Vec::new(), Vec::new()];
    for part in parts {
        let [first, middle, last] = &mut stages;
        match part.kind {
            Joining::Etcd => first.push(etcd(state_dir, part)),
            Joining::Gateway => middle.push(gateway(state_dir, part)),
            Joining::Controller => last.extend(replicas(state_dir, part)),
            // They have records of their own.
            Joining::Agent => {}
        }
    }
    stages
}

/// Returns `<service>-of-<address>` without arguments or a certificate, on any free port.
fn bare(service: &'static str, part: &Component) -> ProcessSpec {
    let (program, machine) = (program_name(service), in_names(part.machine));
    ProcessSpec {
        name: format!("{program}{OF}{machine}"),
        ..ProcessSpec::bare(service, 0)
    }
}

fn etcd(state_dir: &StateDir, part: &Component) -> ProcessSpec {
    let existing = ["--initial-cluster-state", "existing"].map(str::to_owned);
    let process = bare("etcd", part);
    member::process(state_dir, &part.plane.spec, process, &part.initial_cluster).args(existing)
}

fn gateway(state_dir: &StateDir, part: &Component) -> ProcessSpec {
    let plane = &part.plane;
    let (port, etcd) = (plane.spec.gateways[0], plane.etcd.join(","));
    let process = bare("gateway", part).with_port(port);
    gateway_process(state_dir, &plane.spec, process, &plane.server, &etcd)
}

/// Returns a replica of each controller, of the scheduler, and of the cluster's DNS, if there is one.
fn replicas(state_dir: &StateDir, part: &Component) -> Vec<ProcessSpec> {
    let spec = &part.plane.spec;
    let replica = |service| {
        let identity = Identity::service(program_name(service));
        bare(service, part).identified(state_dir, identity)
    };
    let dns = spec.dns.iter();
    let dns = dns.map(|port| dns_replica(spec.network, replica(DNS), *port));
    let replicas = controllers(state_dir, spec, |service| std::iter::once(replica(service)));
    let gateways = part.plane.gateways.join(",");
    let clients = replicas.chain(dns);
    clients
        .map(|process| process.client_of(&gateways))
        .collect()
}
