//! Addresses and ports in an update of a Service: allocated ones that the update leaves out are kept, and those that
//! the new type does not need are dropped, unless the update changes them.

use std::collections::{BTreeMap, BTreeSet};

use setpoint_proto::core::{ServicePort, ServiceSpec};

use super::{is_reached_from_outside, uses_health_check, uses_node_ports};

/// Copies the address to the list of addresses.
pub(super) fn mirror_address(spec: &mut ServiceSpec) {
    if !spec.cluster_ip.is_empty() && spec.cluster_ips.is_empty() {
        spec.cluster_ips.push(spec.cluster_ip.clone());
    }
}

/// Keeps the allocated values that the new type needs and the new spec leaves out.
pub(super) fn keep_allocated(new: &mut ServiceSpec, old: &ServiceSpec) {
    if needs_address(new) && needs_address(old) {
        if new.cluster_ip.is_empty() {
            new.cluster_ip.clone_from(&old.cluster_ip);
        }
        if new.cluster_ips.is_empty() {
            new.cluster_ips.clone_from(&old.cluster_ips);
        }
        if new.ip_family_policy.is_none() {
            new.ip_family_policy.clone_from(&old.ip_family_policy);
        }
        if new.ip_families.is_empty() {
            new.ip_families.clone_from(&old.ip_families);
        }
    }
    if uses_node_ports(new) && uses_node_ports(old) {
        keep_node_ports(&mut new.ports, &old.ports);
    }
    if uses_health_check(new) && uses_health_check(old) && new.health_check_node_port == 0 {
        new.health_check_node_port = old.health_check_node_port;
    }
}

/// Makes the two fields of the address agree: a change of one changes the other.
pub(super) fn follow_address(new: &mut ServiceSpec, old: &ServiceSpec) {
    if new.cluster_ip != old.cluster_ip && new.cluster_ips == old.cluster_ips {
        new.cluster_ips.clear();
    }
    mirror_address(new);
}

/// Drops the values that the new type does not need, unless they changed with the type: then they are intended.
pub(super) fn drop_unneeded(new: &mut ServiceSpec, old: &ServiceSpec) {
    if needs_address(old) && !needs_address(new) {
        if (&new.cluster_ip, &new.cluster_ips) == (&old.cluster_ip, &old.cluster_ips) {
            new.cluster_ip.clear();
            new.cluster_ips.clear();
        }
        if new.ip_families == old.ip_families {
            new.ip_families.clear();
        }
        if new.ip_family_policy == old.ip_family_policy {
            new.ip_family_policy = None;
        }
    }
    if has_node_ports(old) && !has_node_ports(new) {
        let known: BTreeSet<_> = old.ports.iter().map(|port| port.node_port).collect();
        let same = |port: &ServicePort| port.node_port == 0 || known.contains(&port.node_port);
        if new.ports.iter().all(same) {
            new.ports.iter_mut().for_each(|port| port.node_port = 0);
        }
    }
    let same_check = new.health_check_node_port == old.health_check_node_port;
    if uses_health_check(old) && !uses_health_check(new) && same_check {
        new.health_check_node_port = 0;
    }
    if old.r#type == "LoadBalancer" && new.r#type != "LoadBalancer" {
        if new.allocate_load_balancer_node_ports == old.allocate_load_balancer_node_ports {
            new.allocate_load_balancer_node_ports = None;
        }
        if new.load_balancer_class == old.load_balancer_class {
            new.load_balancer_class = None;
        }
    }
    let same_policy = new.external_traffic_policy == old.external_traffic_policy;
    if is_reached_from_outside(old) && !is_reached_from_outside(new) && same_policy {
        new.external_traffic_policy.clear();
    }
}

fn needs_address(spec: &ServiceSpec) -> bool {
    spec.r#type != "ExternalName"
}

fn has_node_ports(spec: &ServiceSpec) -> bool {
    ["NodePort", "LoadBalancer"].contains(&spec.r#type.as_str())
}

/// Gives a port without a node port that of the old port of its name, unless another port has it.
fn keep_node_ports(new: &mut [ServicePort], old: &[ServicePort]) {
    let taken: BTreeSet<_> = new.iter().map(|port| port.node_port).collect();
    let before: BTreeMap<_, _> = old.iter().map(|old| (&old.name, old.node_port)).collect();
    for port in new.iter_mut().filter(|port| port.node_port == 0) {
        let number = before.get(&port.name);
        if let Some(number) = number.filter(|number| !taken.contains(*number)) {
            port.node_port = *number;
        }
    }
}
