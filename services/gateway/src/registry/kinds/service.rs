//! The rules of a Service: its type, its ports, and an address that stays.

mod status;

use std::collections::BTreeSet;

use setpoint_model::names;
use setpoint_proto::core::{Service, ServicePort, ServiceSpec};
use setpoint_proto::meta::IntOrString;

use crate::registry::metadata;
use crate::registry::path::Path;
use crate::registry::problems::Problems;
use crate::registry::strategy::Rules;

const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const AFFINITIES: &[&str] = &["ClientIP", "None"];
const POLICIES: &[&str] = &["Cluster", "Local"];
/// How long a client stays with one Pod: three hours.
const STICKY: i32 = 10_800;

impl Rules for Service {
    fn fill_defaults(&mut self) {
        let spec = &mut self.spec;
        unless_set(&mut spec.session_affinity, "None");
        unless_set(&mut spec.r#type, "ClusterIP");
        if spec.session_affinity == "ClientIP" {
            let config = spec.session_affinity_config.get_or_insert_default();
            let client = config.client_ip.get_or_insert_default();
            client.timeout_seconds.get_or_insert(STICKY);
        }
        spec.ports.iter_mut().for_each(fill_port);
        if spec.r#type == "ExternalName" {
            return;
        }
        spec.internal_traffic_policy
            .get_or_insert_with(|| "Cluster".into());
        if is_exposed(spec) {
            unless_set(&mut spec.external_traffic_policy, "Cluster");
        }
        if spec.r#type == "LoadBalancer" {
            status::fill_defaults(&mut self.status);
            spec.allocate_load_balancer_node_ports.get_or_insert(true);
        }
        spec.ip_family_policy
            .get_or_insert_with(|| "SingleStack".into());
        if spec.ip_families.is_empty() {
            spec.ip_families.push("IPv4".into());
        }
    }

    fn prepare_create(&mut self) {
        self.status = Default::default();
    }

    /// An address that is not named again is kept, as are ports of nodes.
    fn prepare_update(&mut self, old: &Self) {
        self.status = old.status.clone();
        if self.spec.r#type == "ExternalName" || old.spec.r#type == "ExternalName" {
            return;
        }
        if self.spec.cluster_ip.is_empty() {
            self.spec.cluster_ip.clone_from(&old.spec.cluster_ip);
            self.spec.cluster_ips.clone_from(&old.spec.cluster_ips);
        }
        if is_exposed(&self.spec) {
            keep_node_ports(&mut self.spec.ports, &old.spec.ports);
        }
    }

    fn prepare_status_update(&mut self, old: &Self) {
        self.spec.clone_from(&old.spec);
    }

    fn validate_status_update(&self, old: &Self, problems: &mut Problems) {
        let path = Path::root("status");
        let path = path.field("loadBalancer");
        status::validate(self, old, &path.field("ingress"), problems);
    }

    fn check_name(name: &str) -> Vec<String> {
        names::validate_dns_1035_label(name)
    }

    fn validate(&self, problems: &mut Problems) {
        let (path, spec) = (Path::root("spec"), &self.spec);
        problems.one_of(&path.field("type"), &spec.r#type, TYPES);
        problems.one_of(
            &path.field("sessionAffinity"),
            &spec.session_affinity,
            AFFINITIES,
        );
        let external = path.field("externalTrafficPolicy");
        problems.one_of(&external, &spec.external_traffic_policy, POLICIES);
        metadata::validate_labels(&spec.selector, &path.field("selector"), problems);
        if spec.r#type == "ExternalName" {
            let name = spec.external_name.trim_end_matches('.');
            let at = path.field("externalName");
            problems.all_invalid(
                &at,
                &spec.external_name,
                names::validate_dns_subdomain(name),
            );
        } else if spec.ports.is_empty() && spec.cluster_ip != "None" {
            problems.required(&path.field("ports"), "");
        }
        validate_ports(spec, &path.field("ports"), problems);
    }

    fn validate_update(&self, old: &Self, problems: &mut Problems) {
        let (new, old) = (&self.spec, &old.spec);
        let moved = !old.cluster_ip.is_empty() && new.cluster_ip != old.cluster_ip;
        if moved && new.r#type != "ExternalName" && old.r#type != "ExternalName" {
            let path = Path::root("spec");
            let path = path.field("clusterIPs");
            problems.invalid(&path.index(0), &new.cluster_ip, "may not change once set");
        }
    }
}

fn unless_set(field: &mut String, value: &str) {
    if field.is_empty() {
        value.clone_into(field);
    }
}

/// Is it reached through the nodes' own ports?
pub(in crate::registry) fn is_exposed(spec: &ServiceSpec) -> bool {
    ["NodePort", "LoadBalancer"].contains(&spec.r#type.as_str())
}

fn fill_port(port: &mut ServicePort) {
    unless_set(&mut port.protocol, "TCP");
    let unset = |target: &IntOrString| target.as_str().map_or(target.int_val == 0, str::is_empty);
    if unset(&port.target_port) {
        port.target_port = IntOrString::int(port.port);
    }
}

fn keep_node_ports(new: &mut [ServicePort], old: &[ServicePort]) {
    for port in new.iter_mut().filter(|port| port.node_port == 0) {
        let same = |old: &&ServicePort| (old.port, &old.protocol) == (port.port, &port.protocol);
        if let Some(before) = old.iter().find(same) {
            port.node_port = before.node_port;
        }
    }
}

fn validate_ports(spec: &ServiceSpec, path: &Path<'_>, problems: &mut Problems) {
    let mut seen = BTreeSet::new();
    let mut names_seen = BTreeSet::new();
    for (index, port) in spec.ports.iter().enumerate() {
        let path = path.index(index);
        let name = path.field("name");
        if port.name.is_empty() && spec.ports.len() > 1 {
            problems.required(&name, "");
        } else if !port.name.is_empty() {
            problems.all_invalid(&name, &port.name, names::validate_dns_label(&port.name));
            if !names_seen.insert(port.name.as_str()) {
                problems.duplicate(&name, &port.name);
            }
        }
        if !(1..=65535).contains(&port.port) {
            let detail = "must be between 1 and 65535, inclusive";
            problems.invalid(&path.field("port"), port.port, detail);
        }
        problems.one_of(&path.field("protocol"), &port.protocol, PROTOCOLS);
        if !seen.insert((port.port, port.protocol.as_str())) {
            problems.duplicate(&path, port);
        }
        if port.node_port != 0 && !is_exposed(spec) {
            let detail = format!("may not be used when `type` is '{}'", spec.r#type);
            problems.forbidden(&path.field("nodePort"), detail);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(ports: &[i32]) -> Service {
        let mut service = Service::default();
        service.spec.ports = ports
            .iter()
            .map(|port| ServicePort {
                port: *port,
                name: format!("p{port}"),
                ..Default::default()
            })
            .collect();
        service.fill_defaults();
        service
    }

    fn complaints(service: &Service) -> String {
        let mut problems = Problems::default();
        service.validate(&mut problems);
        problems.to_string()
    }

    #[test]
    fn a_port_leads_to_the_same_port_unless_said_otherwise() {
        let spec = service(&[80]).spec;
        assert_eq!(spec.ports[0].target_port, IntOrString::int(80));
        assert_eq!(spec.ports[0].protocol, "TCP");
        assert_eq!(
            (spec.r#type.as_str(), spec.session_affinity.as_str()),
            ("ClusterIP", "None")
        );
        assert_eq!(spec.ip_families, ["IPv4"]);
    }

    #[test]
    fn ports_are_checked() {
        assert_eq!(complaints(&service(&[80, 443])), "[]");
        assert_eq!(complaints(&service(&[])), "spec.ports: Required value");
        assert!(complaints(&service(&[80, 80])).contains("spec.ports[1].name: Duplicate value"));
        let mut plain = service(&[80]);
        plain.spec.ports[0].node_port = 30_000;
        assert_eq!(
            complaints(&plain),
            "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"
        );
        assert!(!Service::check_name("1a").is_empty());
    }

    #[test]
    fn an_address_stays() {
        let mut old = service(&[80]);
        old.spec.cluster_ip = "10.96.0.7".into();
        let mut new = service(&[81]);
        new.prepare_update(&old);
        assert_eq!(new.spec.cluster_ip, "10.96.0.7");
        new.spec.cluster_ip = "10.96.0.8".into();
        let mut problems = Problems::default();
        new.validate_update(&old, &mut problems);
        assert!(problems.to_string().contains("may not change once set"));
    }
}
