//! NetworkPolicy: ports and peers are complete; it is for ingress, and for egress if it has rules for it, by default.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;
use setpoint_proto::networking::{
    IpBlock, NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec,
};

use super::{StoredKind, template};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::podspec::{check_port_name, validate_port};
use crate::validation::warnings::{Warnings, warn_of_range};
use crate::validation::{ip, label_selector};

const PROTOCOLS: &[&str] = &["TCP", "UDP", "SCTP"];
const TYPES: &[&str] = &["Ingress", "Egress"];

impl StoredKind for NetworkPolicy {
    const COUNTS_GENERATIONS: bool = true;

    fn fill_defaults(&mut self) {
        let spec = &mut self.spec;
        if spec.policy_types.is_empty() {
            spec.policy_types.push("Ingress".into());
            if !spec.egress.is_empty() {
                spec.policy_types.push("Egress".into());
            }
        }
        let ingress = spec.ingress.iter_mut().flat_map(|rule| &mut rule.ports);
        let egress = spec.egress.iter_mut().flat_map(|rule| &mut rule.ports);
        for port in ingress.chain(egress) {
            port.protocol.get_or_insert_with(|| "TCP".into());
        }
    }

    fn intent_changed(&self, old: &Self) -> bool {
        self.spec != old.spec
    }

    fn validate_create(&self, errors: &mut FieldErrors) {
        validate(&self.spec, &BTreeSet::new(), errors);
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        validate(&self.spec, &ranges(&old.spec), errors);
    }

    fn warn(&self, _old: Option<&Self>, warnings: &mut Warnings) {
        let path = FieldPath::root("spec");
        let at = path.field("ingress");
        for (index, rule) in self.spec.ingress.iter().enumerate() {
            warn_of_peers(&rule.from, &at.index(index).field("from"), warnings);
        }
        let at = path.field("egress");
        for (index, rule) in self.spec.egress.iter().enumerate() {
            warn_of_peers(&rule.to, &at.index(index).field("to"), warnings);
        }
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        let selector = Some(&self.spec.pod_selector);
        (column == "Pod-Selector").then(|| template::selector(selector))
    }
}

/// Warns of the ranges of peers.
fn warn_of_peers(peers: &[NetworkPolicyPeer], path: &FieldPath<'_>, warnings: &mut Warnings) {
    for (index, peer) in peers.iter().enumerate() {
        let Some(block) = &peer.ip_block else {
            continue;
        };
        let path = path.index(index);
        let path = path.field("ipBlock");
        warn_of_range(&block.cidr, &path.field("cidr"), warnings);
        let at = path.field("except");
        for (index, range) in block.except.iter().enumerate() {
            warn_of_range(range, &at.index(index), warnings);
        }
    }
}

/// Returns the ranges of all peers.
fn ranges(spec: &NetworkPolicySpec) -> BTreeSet<&str> {
    let from = spec.ingress.iter().flat_map(|rule| &rule.from);
    let to = spec.egress.iter().flat_map(|rule| &rule.to);
    let blocks = from.chain(to).filter_map(|peer| peer.ip_block.as_ref());
    let ranges = blocks.flat_map(|block| block.except.iter().chain([&block.cidr]));
    ranges.map(String::as_str).collect()
}

/// Validates the spec. Ranges among `known` are accepted: they may be older than a rule.
fn validate(spec: &NetworkPolicySpec, known: &BTreeSet<&str>, errors: &mut FieldErrors) {
    let path = FieldPath::root("spec");
    let at = path.field("podSelector");
    label_selector::validate(Some(&spec.pod_selector), &at, errors);
    let at = path.field("ingress");
    for (index, rule) in spec.ingress.iter().enumerate() {
        let at = at.index(index);
        validate_ports(&rule.ports, &at.field("ports"), errors);
        validate_peers(&rule.from, known, &at.field("from"), errors);
    }
    let at = path.field("egress");
    for (index, rule) in spec.egress.iter().enumerate() {
        let at = at.index(index);
        validate_ports(&rule.ports, &at.field("ports"), errors);
        validate_peers(&rule.to, known, &at.field("to"), errors);
    }
    let (at, types) = (path.field("policyTypes"), &spec.policy_types);
    if types.len() > TYPES.len() {
        let detail = "may not specify more than two policyTypes";
        return errors.invalid(&at, types, detail);
    }
    for (index, one) in types.iter().enumerate() {
        errors.one_of(&at.index(index), one.as_str(), TYPES);
    }
}

fn validate_ports(ports: &[NetworkPolicyPort], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        let protocol = port.protocol.as_deref();
        errors.one_of(&path.field("protocol"), protocol, PROTOCOLS);
        validate_range_of_ports(port, &path, errors);
    }
}

fn validate_range_of_ports(
    port: &NetworkPolicyPort,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let (at, end_at) = (path.field("port"), path.field("endPort"));
    let Some(start) = &port.port else {
        if let Some(end) = port.end_port {
            let detail = "may not be specified when `port` is not specified";
            errors.invalid(&end_at, end, detail);
        }
        return;
    };
    if let Some(name) = start.as_str() {
        if let Some(end) = port.end_port {
            let detail = "may not be specified when `port` is non-numeric";
            errors.invalid(&end_at, end, detail);
        }
        return errors.check(&at, name, check_port_name);
    }
    validate_port(start.int_val, &at, errors);
    if let Some(end) = port.end_port {
        if end < start.int_val {
            let detail = "must be greater than or equal to `port`";
            errors.invalid(&end_at, start.int_val, detail);
        }
        validate_port(end, &end_at, errors);
    }
}

fn validate_peers(
    peers: &[NetworkPolicyPeer],
    known: &BTreeSet<&str>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    for (index, peer) in peers.iter().enumerate() {
        let path = path.index(index);
        let (pods, namespaces) = (peer.pod_selector.as_ref(), peer.namespace_selector.as_ref());
        label_selector::validate(pods, &path.field("podSelector"), errors);
        label_selector::validate(namespaces, &path.field("namespaceSelector"), errors);
        let selects = pods.is_some() || namespaces.is_some();
        match &peer.ip_block {
            None if !selects => errors.required(&path, "must specify a peer"),
            None => {}
            Some(block) => {
                validate_block(block, known, &path.field("ipBlock"), errors);
                if selects {
                    let detail = "may not specify both ipBlock and another peer";
                    errors.forbidden(&path, detail);
                }
            }
        }
    }
}

fn validate_block(
    block: &IpBlock,
    known: &BTreeSet<&str>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("cidr");
    if block.cidr.is_empty() {
        return errors.required(&at, "");
    }
    let mut validate = |text: &str, at: &FieldPath<'_>| {
        if !known.contains(text) {
            ip::validate_range(text, at, errors);
        }
        ip::parse_range(text)
    };
    let Some(whole) = validate(&block.cidr, &at) else {
        return;
    };
    let at = path.field("except");
    let mut outside = Vec::new();
    for (index, text) in block.except.iter().enumerate() {
        let part = validate(text, &at.index(index));
        if part.is_some_and(|part| !ip::is_strictly_within(part, whole)) {
            outside.push((index, text));
        }
    }
    for (index, text) in outside {
        let detail = "must be a strict subset of `cidr`";
        errors.invalid(&at.index(index), text, detail);
    }
}
