//! Validation of the ports of a Service.

use std::collections::BTreeSet;

use setpoint_model::names;
use setpoint_proto::core::ServiceSpec;
use setpoint_proto::meta::IntOrString;

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::podspec::{PROTOCOLS, check_port_name, validate_port};

/// Validates the ports.
pub(super) fn validate(spec: &ServiceSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if spec.ports.is_empty() && spec.cluster_ips != ["None"] && spec.r#type != "ExternalName" {
        errors.required(path, "");
    }
    let (mut names, mut ports, mut on_nodes) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (index, port) in spec.ports.iter().enumerate() {
        let path = path.index(index);
        let (at, name) = (path.field("name"), port.name.as_str());
        if name.is_empty() && spec.ports.len() > 1 {
            errors.required(&at, "");
        } else if !name.is_empty() {
            errors.check(&at, name, names::validate_dns_label);
            if !names.insert(name) {
                errors.duplicate(&at, name);
            }
        }
        validate_port(port.port, &path.field("port"), errors);
        errors.one_of_or_empty(&path.field("protocol"), &port.protocol, PROTOCOLS);
        validate_target(&port.target_port, &path.field("targetPort"), errors);
        if let Some(protocol) = &port.app_protocol {
            errors.check(
                &path.field("appProtocol"),
                protocol,
                names::validate_qualified_name,
            );
        }
        let at = path.field("nodePort");
        if port.node_port != 0 && spec.r#type == "ClusterIP" {
            errors.forbidden(&at, "may not be used when `type` is 'ClusterIP'");
        }
        if port.node_port != 0 && !on_nodes.insert((&port.protocol, port.node_port)) {
            errors.duplicate(&at, port.node_port);
        }
        if !ports.insert((&port.protocol, port.port)) {
            errors.duplicate(&path, port);
        }
    }
}

fn validate_target(port: &IntOrString, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    match port.as_str() {
        Some(name) => errors.check(path, name, check_port_name),
        None => validate_port(port.int_val, path, errors),
    }
}
