//! Endpoints: addresses that a Service may forward to, and ports with names.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::names;
use setpoint_proto::core::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints};

use super::StoredKind;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::podspec::{PROTOCOLS, validate_port};
use crate::validation::warnings::{Warnings, warn_of_address};
use crate::validation::{ip, set_default};

/// The label that names the controller.
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
/// The number of entries that the cell of a list shows.
const SHOWN: usize = 3;

impl StoredKind for Endpoints {
    const CREATES_ON_UPDATE: bool = true;
    const DEPRECATION: Option<&'static str> = Some("v1.33+; use discovery.k8s.io/v1 EndpointSlice");

    fn fill_defaults(&mut self) {
        for port in self.subsets.iter_mut().flat_map(|subset| &mut subset.ports) {
            set_default(&mut port.protocol, "TCP");
        }
    }

    fn validate_create(&self, errors: &mut FieldErrors) {
        validate_subsets(&self.subsets, errors);
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        // Unchanged subsets are accepted: they may be older than a rule.
        if self.subsets != old.subsets {
            validate_subsets(&self.subsets, errors);
        }
    }

    /// Does not warn the controller, which writes addresses in their canonical form.
    fn warn(&self, _old: Option<&Self>, warnings: &mut Warnings) {
        let manager = self.metadata.labels.get(MANAGED_BY);
        if manager.is_some_and(|manager| manager == "endpoint-controller") {
            return;
        }
        let path = FieldPath::root("subsets");
        for (index, subset) in self.subsets.iter().enumerate() {
            let path = path.index(index);
            warn_of_addresses(&subset.addresses, &path.field("addresses"), warnings);
            let at = path.field("notReadyAddresses");
            warn_of_addresses(&subset.not_ready_addresses, &at, warnings);
        }
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        (column == "Endpoints").then(|| match self.subsets.is_empty() {
            true => "<none>".into(),
            false => shortened(self.subsets.iter().flat_map(addresses)).into(),
        })
    }
}

fn warn_of_addresses(addresses: &[EndpointAddress], path: &FieldPath<'_>, warnings: &mut Warnings) {
    for (index, address) in addresses.iter().enumerate() {
        warn_of_address(&address.ip, &path.index(index).field("ip"), warnings);
    }
}

fn validate_subsets(subsets: &[EndpointSubset], errors: &mut FieldErrors) {
    let path = FieldPath::root("subsets");
    for (index, subset) in subsets.iter().enumerate() {
        validate_subset(subset, &path.index(index), errors);
    }
}

fn validate_subset(subset: &EndpointSubset, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let (ready, others) = (&subset.addresses, &subset.not_ready_addresses);
    if ready.is_empty() && others.is_empty() {
        errors.required(path, "must specify `addresses` or `notReadyAddresses`");
    }
    for (addresses, field) in [(ready, "addresses"), (others, "notReadyAddresses")] {
        let path = path.field(field);
        for (index, address) in addresses.iter().enumerate() {
            validate_address(address, &path.index(index), errors);
        }
    }
    let path = path.field("ports");
    for (index, port) in subset.ports.iter().enumerate() {
        validate_endpoint_port(port, subset.ports.len() > 1, &path.index(index), errors);
    }
}

fn validate_address(address: &EndpointAddress, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let at = path.field("ip");
    ip::validate(&address.ip, &at, errors);
    if !address.hostname.is_empty() {
        let at = path.field("hostname");
        errors.check(&at, &address.hostname, names::validate_dns_label);
    }
    if let Some(node) = &address.node_name {
        errors.check(&path.field("nodeName"), node, names::validate_dns_subdomain);
    }
    ip::validate_endpoint(&address.ip, &at, errors);
}

fn validate_endpoint_port(
    port: &EndpointPort,
    is_one_of_several: bool,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("name");
    match port.name.as_str() {
        "" if is_one_of_several => errors.required(&at, ""),
        "" => {}
        name => errors.check(&at, name, names::validate_dns_label),
    }
    validate_port(port.port, &path.field("port"), errors);
    let at = path.field("protocol");
    match port.protocol.as_str() {
        "" => errors.required(&at, ""),
        protocol => errors.one_of(&at, protocol, PROTOCOLS),
    }
    if let Some(protocol) = &port.app_protocol {
        let at = path.field("appProtocol");
        errors.check(&at, protocol, names::validate_qualified_name);
    }
}

/// Returns the ready addresses of a subset, each with each port.
fn addresses(subset: &EndpointSubset) -> Vec<String> {
    let addresses = || subset.addresses.iter().map(|address| &address.ip);
    if subset.ports.is_empty() {
        return addresses().cloned().collect();
    }
    let of_port = |port: &EndpointPort| {
        let port = port.port;
        addresses().map(move |ip| match ip.contains(':') {
            true => format!("[{ip}]:{port}"),
            false => format!("{ip}:{port}"),
        })
    };
    subset.ports.iter().flat_map(of_port).collect()
}

/// Returns the first entries of a list, and the number of the others, as a cell.
pub(super) fn shortened(entries: impl Iterator<Item = String>) -> String {
    let mut entries = entries.fuse();
    let shown: Vec<_> = entries.by_ref().take(SHOWN).collect();
    match (shown.join(","), entries.count()) {
        (shown, 0) => shown,
        (shown, more) => format!("{shown} + {more} more..."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cell_has_three_addresses() {
        let mut endpoints = Endpoints::default();
        let cell = |endpoints: &Endpoints| endpoints.cell("Endpoints", Timestamp::UNIX_EPOCH);
        assert_eq!(cell(&endpoints), Some("<none>".into()));
        let address = |ip: &str| EndpointAddress {
            ip: ip.into(),
            ..Default::default()
        };
        endpoints.subsets = vec![EndpointSubset {
            addresses: vec![address("10.0.0.1"), address("2001:db8::1")],
            ..Default::default()
        }];
        assert_eq!(cell(&endpoints), Some("10.0.0.1,2001:db8::1".into()));
        let port = |port| EndpointPort {
            port,
            ..Default::default()
        };
        endpoints.subsets[0].ports = vec![port(80), port(443)];
        let expected = "10.0.0.1:80,[2001:db8::1]:80,10.0.0.1:443 + 1 more...";
        assert_eq!(cell(&endpoints), Some(expected.into()));
    }
}
