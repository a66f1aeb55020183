//! EndpointSlice: addresses of one type, which is immutable, and ports with different names.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::endpointslice::MANAGED_BY;
use setpoint_model::names;
use setpoint_proto::discovery::{Endpoint, EndpointHints, EndpointPort, EndpointSlice};

use super::StoredKind;
use super::endpoints::shortened;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::podspec::PROTOCOLS;
use crate::validation::warnings::{Warnings, warn_of_addresses};
use crate::validation::{ip, metadata};

const ADDRESS_TYPES: &[&str] = &["FQDN", "IPv4", "IPv6"];
const CONTROLLERS: &[&str] = &[
    "endpointslice-controller.k8s.io",
    "endpointslicemirroring-controller.k8s.io",
];
const TOPOLOGY_MAX: usize = 16;
const ADDRESSES_MAX: usize = 100;
const PORTS_MAX: usize = 20_000;
const ENDPOINTS_MAX: usize = 1_000;
const HINTS_MAX: usize = 8;

impl StoredKind for EndpointSlice {
    const COUNTS_GENERATIONS: bool = true;

    fn fill_defaults(&mut self) {
        for port in &mut self.ports {
            port.name.get_or_insert_default();
            port.protocol.get_or_insert_with(|| "TCP".into());
        }
    }

    /// Removes the topology, which the version `v1` of the API does not accept.
    fn prepare_create(&mut self) {
        for endpoint in &mut self.endpoints {
            endpoint.deprecated_topology.clear();
        }
    }

    fn prepare_update(&mut self, old: &Self) {
        if self.endpoints != old.endpoints {
            self.prepare_create();
        }
    }

    fn intent_changed(&self, old: &Self) -> bool {
        self.endpoints != old.endpoints
            || self.ports != old.ports
            || self.address_type != old.address_type
            || self.metadata.labels != old.metadata.labels
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let at = FieldPath::root("addressType");
        match self.address_type.as_str() {
            "" => errors.required(&at, ""),
            of => errors.one_of(&at, of, ADDRESS_TYPES),
        }
        validate_ports(&self.ports, errors);
    }

    fn validate_create(&self, errors: &mut FieldErrors) {
        validate_endpoints(self, errors);
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        // Unchanged endpoints are accepted: they may be older than a rule.
        if self.endpoints != old.endpoints {
            validate_endpoints(self, errors);
        }
        let path = FieldPath::root("addressType");
        errors.immutable(&path, &self.address_type, &old.address_type);
    }

    /// Does not warn the controllers of addresses, which they write in their canonical form.
    fn warn(&self, old: Option<&Self>, warnings: &mut Warnings) {
        if old.is_none() && self.address_type == "FQDN" {
            warnings.add("spec.addressType: FQDN endpoints are deprecated");
        }
        let manager = self.metadata.labels.get(MANAGED_BY);
        if manager.is_some_and(|manager| CONTROLLERS.contains(&manager.as_str())) {
            return;
        }
        let path = FieldPath::root("endpoints");
        for (index, endpoint) in self.endpoints.iter().enumerate() {
            let at = path.index(index);
            warn_of_addresses(&endpoint.addresses, &at.field("addresses"), warnings);
        }
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        let addresses = self.endpoints.iter().flat_map(|one| one.addresses.clone());
        let shown = match column {
            "Ports" => shortened(self.ports.iter().map(port_cell)),
            "Endpoints" => shortened(addresses),
            _ => return None,
        };
        Some(match shown.as_str() {
            "" => "<unset>".into(),
            _ => shown.into(),
        })
    }
}

fn validate_ports(ports: &[EndpointPort], errors: &mut FieldErrors) {
    let path = FieldPath::root("ports");
    errors.at_most(&path, ports.len(), PORTS_MAX);
    if ports.len() > PORTS_MAX {
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        let (at, name) = (path.field("name"), port.name.as_deref().unwrap_or_default());
        if !name.is_empty() {
            errors.check(&at, name, names::validate_dns_label);
        }
        if !seen.insert(name) {
            errors.duplicate(&at, name);
        }
        let at = path.field("protocol");
        match port.protocol.as_deref() {
            None => errors.required(&at, ""),
            protocol => errors.one_of(&at, protocol, PROTOCOLS),
        }
        if let Some(protocol) = &port.app_protocol {
            let at = path.field("appProtocol");
            errors.check(&at, protocol, names::validate_qualified_name);
        }
    }
}

fn validate_endpoints(slice: &EndpointSlice, errors: &mut FieldErrors) {
    let path = FieldPath::root("endpoints");
    errors.at_most(&path, slice.endpoints.len(), ENDPOINTS_MAX);
    if slice.endpoints.len() > ENDPOINTS_MAX {
        return;
    }
    for (index, endpoint) in slice.endpoints.iter().enumerate() {
        validate_endpoint(endpoint, &slice.address_type, &path.index(index), errors);
    }
}

fn validate_endpoint(
    endpoint: &Endpoint,
    address_type: &str,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let (at, addresses) = (path.field("addresses"), &endpoint.addresses);
    if addresses.is_empty() {
        errors.required(&at, "must contain at least 1 address");
    }
    errors.at_most(&at, addresses.len(), ADDRESSES_MAX);
    for (index, address) in addresses.iter().enumerate() {
        validate_address(address, address_type, &at, index, errors);
    }
    if let Some(node) = &endpoint.node_name {
        errors.check(&path.field("nodeName"), node, names::validate_dns_subdomain);
    }
    let (at, topology) = (
        path.field("deprecatedTopology"),
        &endpoint.deprecated_topology,
    );
    errors.at_most(&at, topology.len(), TOPOLOGY_MAX);
    metadata::validate_labels(topology, &at, errors);
    if let Some(hostname) = &endpoint.hostname {
        let at = path.field("hostname");
        errors.check(&at, hostname, names::validate_dns_label);
    }
    if let Some(hints) = &endpoint.hints {
        validate_hints(hints, &path.field("hints"), errors);
    }
}

/// Validates an address of this type; those of unknown types are not validated.
fn validate_address(
    address: &str,
    address_type: &str,
    path: &FieldPath<'_>,
    index: usize,
    errors: &mut FieldErrors,
) {
    let (at, before) = (path.index(index), errors.count());
    let is_v6 = address.contains(':');
    let family = match address_type {
        "IPv4" => {
            ip::validate(address, &at, errors);
            (is_v6, "must be an IPv4 address")
        }
        "IPv6" => {
            errors.check(&at, address, ip::check_canonical);
            (!is_v6, "must be an IPv6 address")
        }
        "FQDN" => return validate_domain(address, &at, errors),
        _ => return,
    };
    if errors.count() > before {
        return;
    }
    if let (true, detail) = family {
        // Upstream names the list, not the entry, as the field.
        errors.invalid(path, address, detail);
    }
    ip::validate_endpoint(address, &at, errors);
}

/// Validates a fully qualified domain name (upstream: `IsFullyQualifiedDomainName`).
fn validate_domain(domain: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if domain.is_empty() {
        return errors.required(path, "");
    }
    let name = domain.strip_suffix('.').unwrap_or(domain);
    let wrong = names::validate_dns_subdomain(name);
    if !wrong.is_empty() {
        return errors.invalid(path, name, wrong.join(","));
    }
    if !name.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        return errors.invalid(path, name, detail);
    }
    let labels = name.split('.');
    let mut wrong = labels.map(|label| (label, names::validate_dns_label(label)));
    if let Some((label, wrong)) = wrong.find(|(_, wrong)| !wrong.is_empty()) {
        errors.invalid(path, label, wrong.join(","));
    }
}

fn validate_hints(hints: &EndpointHints, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let zones = hints.for_zones.iter().map(|zone| zone.name.as_str());
    let nodes = hints.for_nodes.iter().map(|node| node.name.as_str());
    let at = path.field("forZones");
    validate_names(zones, names::validate_label_value, &at, errors);
    if hints.for_zones.len() <= HINTS_MAX {
        let check = names::validate_dns_subdomain;
        validate_names(nodes, check, &path.field("forNodes"), errors);
    }
}

fn validate_names<'h>(
    hints: impl ExactSizeIterator<Item = &'h str>,
    check: fn(&str) -> Vec<String>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    errors.at_most(path, hints.len(), HINTS_MAX);
    if hints.len() > HINTS_MAX {
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, name) in hints.enumerate() {
        let path = path.index(index);
        let at = path.field("name");
        if !seen.insert(name) {
            errors.duplicate(&at, name);
        }
        errors.check(&at, name, check);
    }
}

fn port_cell(port: &EndpointPort) -> String {
    match (port.port, &port.name) {
        (Some(number), _) => number.to_string(),
        (None, Some(name)) => name.clone(),
        (None, None) => "*".into(),
    }
}
