//! Service: defaults and validation by type, and allocated addresses and ports.

mod address;
mod cells;
mod change;
pub mod families;
mod port;
mod status;
mod traffic;
mod warnings;

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::names;
use setpoint_proto::core::{Service, ServicePort, ServiceSpec};
use setpoint_proto::meta::IntOrString;

use super::StoredKind;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::warnings::{Warnings, warn_of_address};
use crate::validation::{metadata, set_default};

const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
/// The default session affinity, in seconds: three hours.
const DEFAULT_AFFINITY_TIMEOUT: i32 = 10_800;

impl StoredKind for Service {
    const CREATES_ON_UPDATE: bool = true;
    const RETURNS_DELETED: bool = true;

    fn fill_defaults(&mut self) {
        let spec = &mut self.spec;
        set_default(&mut spec.session_affinity, "None");
        set_default(&mut spec.r#type, "ClusterIP");
        fill_affinity(spec);
        spec.ports.iter_mut().for_each(fill_port);
        if is_reached_from_outside(spec) {
            set_default(&mut spec.external_traffic_policy, "Cluster");
        }
        if spec.r#type == "ExternalName" {
            return;
        }
        spec.internal_traffic_policy
            .get_or_insert_with(|| "Cluster".into());
        if spec.r#type == "LoadBalancer" {
            status::fill_defaults(&mut self.status);
            spec.allocate_load_balancer_node_ports.get_or_insert(true);
        }
    }

    fn prepare_create(&mut self) {
        self.status = Default::default();
        change::mirror_address(&mut self.spec);
    }

    fn prepare_update(&mut self, old: &Self) {
        self.status = old.status.clone();
        change::keep_allocated(&mut self.spec, &old.spec);
        change::follow_address(&mut self.spec, &old.spec);
        change::drop_unneeded(&mut self.spec, &old.spec);
        if self.spec.r#type != "LoadBalancer" {
            self.status.load_balancer = Default::default();
        }
    }

    fn prepare_status_update(&mut self, old: &Self) {
        self.spec.clone_from(&old.spec);
    }

    fn check_name(name: &str) -> Vec<String> {
        names::validate_dns_label(name)
    }

    fn validate_create(&self, errors: &mut FieldErrors) {
        validate(self, &Self::default(), errors);
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        validate(self, old, errors);
        let (path, new, old) = (FieldPath::root("spec"), &self.spec, &old.spec);
        address::validate_update(new, old, &path, errors);
        traffic::validate_update(new, old, &path, errors);
    }

    fn validate_status_update(&self, old: &Self, errors: &mut FieldErrors) {
        let path = FieldPath::root("status");
        let path = path.field("loadBalancer");
        status::validate(self, old, &path.field("ingress"), errors);
    }

    fn warn(&self, _old: Option<&Self>, warnings: &mut Warnings) {
        warnings::warn(self, warnings);
    }

    fn warn_of_status(&self, warnings: &mut Warnings) {
        let path = FieldPath::root("status");
        let path = path.field("loadBalancer");
        let ingress = &self.status.load_balancer.ingress;
        for (index, one) in ingress.iter().enumerate() {
            warn_of_address(&one.ip, &path.field("ingress").index(index), warnings);
        }
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        cells::cell(self, column)
    }
}

/// Validates a Service. Addresses and ranges of `old` are accepted: they may be older than a rule.
fn validate(new: &Service, old: &Service, errors: &mut FieldErrors) {
    let (path, spec) = (FieldPath::root("spec"), &new.spec);
    errors.one_of_or_empty(&path.field("type"), &spec.r#type, TYPES);
    if spec.r#type == "ExternalName" {
        validate_external_name(spec, &path, errors);
    } else {
        address::validate(spec, &old.spec.cluster_ips, &path, errors);
    }
    port::validate(spec, &path.field("ports"), errors);
    metadata::validate_labels(&spec.selector, &path.field("selector"), errors);
    traffic::validate(new, old, &path, errors);
}

fn fill_affinity(spec: &mut ServiceSpec) {
    match spec.session_affinity.as_str() {
        "None" => spec.session_affinity_config = None,
        "ClientIP" => {
            let config = spec.session_affinity_config.get_or_insert_default();
            let client = config.client_ip.get_or_insert_default();
            client
                .timeout_seconds
                .get_or_insert(DEFAULT_AFFINITY_TIMEOUT);
        }
        _ => {}
    }
}

fn fill_port(port: &mut ServicePort) {
    set_default(&mut port.protocol, "TCP");
    let unset = |target: &IntOrString| target.as_str().map_or(target.int_val == 0, str::is_empty);
    if unset(&port.target_port) {
        port.target_port = IntOrString::int(port.port);
    }
}

/// Returns whether the Service is reached through ports of the nodes.
pub fn uses_node_ports(spec: &ServiceSpec) -> bool {
    match spec.r#type.as_str() {
        "NodePort" => true,
        "LoadBalancer" => spec.allocate_load_balancer_node_ports != Some(false),
        _ => false,
    }
}

/// Returns whether a load balancer checks each node for Pods of the Service.
pub fn uses_health_check(spec: &ServiceSpec) -> bool {
    spec.r#type == "LoadBalancer" && spec.external_traffic_policy == "Local"
}

fn is_reached_from_outside(spec: &ServiceSpec) -> bool {
    match spec.r#type.as_str() {
        "NodePort" | "LoadBalancer" => true,
        "ClusterIP" => !spec.external_ips.is_empty(),
        _ => false,
    }
}

/// Validates a Service of type ExternalName, which must have no address in the cluster.
fn validate_external_name(spec: &ServiceSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (set, field) in [
        (!spec.cluster_ips.is_empty(), "clusterIPs"),
        (!spec.ip_families.is_empty(), "ipFamilies"),
        (spec.ip_family_policy.is_some(), "ipFamilyPolicy"),
    ] {
        if set {
            errors.forbidden(
                &path.field(field),
                "may not be set for ExternalName services",
            );
        }
    }
    let (at, name) = (path.field("externalName"), spec.external_name.as_str());
    let name = name.strip_suffix('.').unwrap_or(name);
    errors.check_required(&at, name, names::validate_dns_subdomain);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_port_defaults_to_the_port() {
        let mut service = Service::default();
        service.spec.ports = vec![ServicePort {
            port: 80,
            ..Default::default()
        }];
        service.fill_defaults();
        let spec = service.spec;
        assert_eq!(spec.ports[0].target_port, IntOrString::int(80));
        assert_eq!(spec.ports[0].protocol, "TCP");
        assert_eq!(
            (spec.r#type.as_str(), spec.session_affinity.as_str()),
            ("ClusterIP", "None")
        );
    }
}
