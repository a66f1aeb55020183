//! Node: its agent may set the status when it creates the Node.

mod annotations;
mod cells;
mod features;

use jiff::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

use setpoint_model::quantity::Amount;
use setpoint_model::{Verb, names};
use setpoint_proto::core::{Node, NodeAddress, Taint};
use setpoint_proto::meta::Quantity;

use super::StoredKind;
use crate::flow_control::PriorityLevel;
use crate::registry::validation::field_errors::Problems;
use crate::registry::validation::field_path::Path;
use crate::registry::validation::ip;
use crate::registry::validation::podspec;

const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

impl StoredKind for Node {
    /// `podCIDR` is the first of `podCIDRs`.
    fn fill_defaults(&mut self) {
        let spec = &mut self.spec;
        if spec.pod_cidr.is_empty() {
            spec.pod_cidr = spec.pod_cidrs.first().cloned().unwrap_or_default();
        } else if spec.pod_cidrs.first() != Some(&spec.pod_cidr) {
            spec.pod_cidrs = vec![spec.pod_cidr.clone()];
        }
    }

    /// Drops the fields of dynamic kubelet configuration, which Kubernetes has removed.
    fn prepare_create(&mut self) {
        self.spec.config_source = None;
        self.status.config = None;
    }

    fn prepare_update(&mut self, old: &Self) {
        self.status = old.status.clone();
        if old.spec.config_source.is_none() {
            self.spec.config_source = None;
        }
    }

    fn prepare_status_update(&mut self, old: &Self) {
        self.spec.clone_from(&old.spec);
        if old.status.config.is_none() {
            self.status.config = None;
        }
    }

    fn validate(&self, problems: &mut Problems) {
        // Kubernetes names the metadata as the path of taints, and programs may rely on it.
        let path = Path::root("metadata");
        validate_taints(&self.spec.taints, &path.field("taints"), problems);
        validate_swap(self, &path.field("nodeSwapStatus"), problems);
        let path = Path::root("spec");
        validate_ranges(&self.spec.pod_cidrs, &path.field("podCIDRs"), problems);
        validate_status(self, problems);
    }

    fn validate_update(&self, old: &Self, problems: &mut Problems) {
        let (path, new, old) = (Path::root("spec"), &self.spec, &old.spec);
        if !old.pod_cidrs.is_empty() && new.pod_cidrs != old.pod_cidrs {
            let detail = "node updates may not change podCIDR except from \"\" to valid";
            problems.forbidden(&path.field("podCIDRs"), detail);
        }
        if !old.provider_id.is_empty() && new.provider_id != old.provider_id {
            let detail = "node updates may not change providerID except from \"\" to valid";
            problems.forbidden(&path.field("providerID"), detail);
        }
        if new.external_id != old.external_id {
            problems.forbidden(&path.field("externalID"), "may not be updated");
        }
        validate_addresses(&self.status.addresses, problems);
    }

    fn validate_status_update(&self, _old: &Self, problems: &mut Problems) {
        validate_status(self, problems);
        validate_addresses(&self.status.addresses, problems);
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        cells::cell(self, column)
    }

    fn priority_level(verb: Verb, _namespace: &str) -> Option<PriorityLevel> {
        let level = PriorityLevel::NodeHigh;
        matches!(verb, Verb::Get | Verb::Create | Verb::Update | Verb::Patch).then_some(level)
    }
}

/// Finds addresses that are listed twice. Creation allows them, as in Kubernetes.
fn validate_addresses(addresses: &[NodeAddress], problems: &mut Problems) {
    let path = Path::root("status");
    let path = path.field("addresses");
    let mut seen = BTreeSet::new();
    for (index, address) in addresses.iter().enumerate() {
        if !seen.insert((&address.r#type, &address.address)) {
            problems.duplicate(&path.index(index), address);
        }
    }
}

fn validate_taints(taints: &[Taint], path: &Path<'_>, problems: &mut Problems) {
    let mut seen = BTreeSet::new();
    for (index, taint) in taints.iter().enumerate() {
        let at = path.index(index);
        let key = taint.key.as_str();
        problems.all_invalid(&at.field("key"), key, names::validate_qualified_name(key));
        let wrong = names::validate_label_value(&taint.value);
        if !wrong.is_empty() {
            problems.invalid(&at.field("value"), &taint.value, wrong.join(";"));
        }
        match taint.effect.as_str() {
            "" => problems.required(&at.field("effect"), ""),
            effect => problems.one_of(&at.field("effect"), effect, EFFECTS),
        }
        if !seen.insert((key, taint.effect.as_str())) {
            let detail = "taints must be unique by key and effect pair";
            problems.duplicate_because(&at, taint, detail);
        }
    }
}

fn validate_ranges(ranges: &[String], path: &Path<'_>, problems: &mut Problems) {
    for (index, range) in ranges.iter().enumerate() {
        ip::validate_range(range, &path.index(index), problems);
    }
    if !ip::are_of_different_families(ranges.iter().map(String::as_str)) {
        let detail = "may specify no more than one CIDR for each IP family";
        problems.invalid(path, ranges, detail);
    }
}

fn validate_status(node: &Node, problems: &mut Problems) {
    let (path, status) = (Path::root("status"), &node.status);
    validate_amounts(&status.capacity, &path.field("capacity"), problems);
    validate_amounts(&status.allocatable, &path.field("allocatable"), problems);
    let features = &status.declared_features;
    features::validate(features, &path.field("declaredFeatures"), problems);
    let path = Path::root("metadata");
    let annotations = &node.metadata.annotations;
    annotations::validate(annotations, &path.field("annotations"), problems);
}

fn validate_swap(node: &Node, path: &Path<'_>, problems: &mut Problems) {
    let swap = node.status.node_info.swap.as_ref();
    if let Some(capacity) = swap.and_then(|swap| swap.capacity)
        && capacity <= 0
    {
        let detail = "must be greater than zero";
        problems.invalid(&path.field("capacity"), capacity, detail);
    }
}

fn validate_amounts(
    amounts: &BTreeMap<String, Quantity>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    for (name, quantity) in amounts {
        let path = path.name(name);
        match Amount::parse(&quantity.string) {
            Err(error) => problems.invalid(&path, quantity, error),
            Ok(amount) => podspec::validate_amount(name, amount, quantity, &path, problems),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks F40: each entry of a long list is looked at once.
    #[test]
    fn as_many_taints_as_fit_into_a_request_are_checked_at_once() {
        let taint = |n: usize| Taint {
            key: format!("t{n}"),
            effect: "NoExecute".into(),
            ..Default::default()
        };
        let mut node = Node::default();
        node.spec.taints = (0..60_000).map(taint).collect();
        let mut problems = Problems::default();
        node.validate(&mut problems);
        assert_eq!(problems.to_string(), "[]");
    }

    #[test]
    fn the_first_range_stands_in_two_places() {
        let mut node = Node::default();
        node.spec.pod_cidr = "10.0.0.0/24".into();
        node.fill_defaults();
        assert_eq!(node.spec.pod_cidrs, ["10.0.0.0/24"]);
        node.spec.pod_cidr.clear();
        node.fill_defaults();
        assert_eq!(node.spec.pod_cidr, "10.0.0.0/24");
    }
}
