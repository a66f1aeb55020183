//! Node: its agent may set the status when it creates the Node.

mod annotations;
mod cells;

use jiff::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

use setpoint_model::names;
use setpoint_model::quantity::Amount;
use setpoint_proto::core::{Node, NodeAddress, Taint};
use setpoint_proto::meta::Quantity;

use super::StoredKind;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::ip;
use crate::validation::podspec;
use crate::validation::warnings::{Warnings, warn_of_range};

/// The longest name of a feature.
const FEATURE_MAX: usize = 253;
const FEATURE_FORM: &str = "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes";

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

    fn validate(&self, errors: &mut FieldErrors) {
        // Kubernetes names the metadata as the path of taints, and programs may rely on it.
        let path = FieldPath::root("metadata");
        validate_taints(&self.spec.taints, &path.field("taints"), errors);
        validate_swap(self, &path.field("nodeSwapStatus"), errors);
        let path = FieldPath::root("spec");
        validate_ranges(&self.spec.pod_cidrs, &path.field("podCIDRs"), errors);
        validate_status(self, errors);
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        let (path, new, old) = (FieldPath::root("spec"), &self.spec, &old.spec);
        if !old.pod_cidrs.is_empty() && new.pod_cidrs != old.pod_cidrs {
            let detail = "node updates may not change podCIDR except from \"\" to valid";
            errors.forbidden(&path.field("podCIDRs"), detail);
        }
        if !old.provider_id.is_empty() && new.provider_id != old.provider_id {
            let detail = "node updates may not change providerID except from \"\" to valid";
            errors.forbidden(&path.field("providerID"), detail);
        }
        if new.external_id != old.external_id {
            errors.forbidden(&path.field("externalID"), "may not be updated");
        }
        validate_addresses(&self.status.addresses, errors);
    }

    fn validate_status_update(&self, _old: &Self, errors: &mut FieldErrors) {
        validate_status(self, errors);
        validate_addresses(&self.status.addresses, errors);
    }

    fn warn(&self, _old: Option<&Self>, warnings: &mut Warnings) {
        let (path, spec) = (FieldPath::root("spec"), &self.spec);
        if spec.config_source.is_some() {
            warnings.about(&path.field("configSource"), "the feature is removed");
        }
        if !spec.external_id.is_empty() {
            let text = "this field is deprecated, and is unused by Kubernetes";
            warnings.about(&path.field("externalID"), text);
        }
        let at = path.field("podCIDRs");
        for (index, range) in spec.pod_cidrs.iter().enumerate() {
            warn_of_range(range, &at.index(index), warnings);
        }
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        cells::cell(self, column)
    }
}

/// Finds addresses that are listed twice. Creation allows them, as in Kubernetes.
fn validate_addresses(addresses: &[NodeAddress], errors: &mut FieldErrors) {
    let path = FieldPath::root("status");
    let path = path.field("addresses");
    let mut seen = BTreeSet::new();
    for (index, address) in addresses.iter().enumerate() {
        if !seen.insert((&address.r#type, &address.address)) {
            errors.duplicate(&path.index(index), address);
        }
    }
}

fn validate_taints(taints: &[Taint], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for (index, taint) in taints.iter().enumerate() {
        let at = path.index(index);
        let key = taint.key.as_str();
        errors.check(&at.field("key"), key, names::validate_qualified_name);
        let wrong = names::validate_label_value(&taint.value);
        if !wrong.is_empty() {
            errors.invalid(&at.field("value"), &taint.value, wrong.join(";"));
        }
        match taint.effect.as_str() {
            "" => errors.required(&at.field("effect"), ""),
            effect => errors.one_of_or_empty(&at.field("effect"), effect, podspec::TAINT_EFFECTS),
        }
        if !seen.insert((key, taint.effect.as_str())) {
            let detail = "taints must be unique by key and effect pair";
            errors.duplicate_with_detail(&at, taint, detail);
        }
    }
}

fn validate_ranges(ranges: &[String], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (index, range) in ranges.iter().enumerate() {
        ip::validate_range(range, &path.index(index), errors);
    }
    if !ip::are_of_different_families(ranges.iter().map(String::as_str)) {
        let detail = "may specify no more than one CIDR for each IP family";
        errors.invalid(path, ranges, detail);
    }
}

fn validate_status(node: &Node, errors: &mut FieldErrors) {
    let (path, status) = (FieldPath::root("status"), &node.status);
    validate_amounts(&status.capacity, &path.field("capacity"), errors);
    validate_amounts(&status.allocatable, &path.field("allocatable"), errors);
    let features = &status.declared_features;
    validate_features(features, &path.field("declaredFeatures"), errors);
    let path = FieldPath::root("metadata");
    let annotations = &node.metadata.annotations;
    annotations::validate(annotations, &path.field("annotations"), errors);
}

/// Validates the features that a node agent declares: their names, and that the list is sorted without duplicates.
fn validate_features(features: &[String], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let mut last: Option<&String> = None;
    for (index, feature) in features.iter().enumerate() {
        let path = path.index(index);
        if last == Some(feature) {
            errors.duplicate(&path, feature);
        } else if last > Some(feature) {
            errors.invalid(&path, feature, "list must be sorted alphabetically");
        }
        last = Some(feature);
        let rule = match feature.len() > FEATURE_MAX {
            true => format!("must be no more than {FEATURE_MAX} characters"),
            false if is_feature(feature) => continue,
            false => FEATURE_FORM.to_owned(),
        };
        let detail = format!("invalid feature name {feature:?}: {rule}");
        errors.invalid(&path, feature, detail);
    }
}

fn is_feature(name: &str) -> bool {
    let plain = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphabetic())
            && part.bytes().all(|letter| letter.is_ascii_alphanumeric())
    };
    name.starts_with(|first: char| first.is_ascii_uppercase()) && name.split('/').all(plain)
}

fn validate_swap(node: &Node, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let swap = node.status.node_info.swap.as_ref();
    if let Some(capacity) = swap.and_then(|swap| swap.capacity)
        && capacity <= 0
    {
        let detail = "must be greater than zero";
        errors.invalid(&path.field("capacity"), capacity, detail);
    }
}

fn validate_amounts(
    amounts: &BTreeMap<String, Quantity>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    for (name, quantity) in amounts {
        let path = path.name(name);
        match Amount::parse(&quantity.string) {
            Err(error) => errors.invalid(&path, quantity, error),
            Ok(amount) => podspec::validate_amount(name, amount, quantity, &path, errors),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks F40: the time is linear in the number of taints.
    #[test]
    fn validating_many_taints_is_fast() {
        let taint = |n: usize| Taint {
            key: format!("t{n}"),
            effect: "NoExecute".into(),
            ..Default::default()
        };
        let mut node = Node::default();
        node.spec.taints = (0..60_000).map(taint).collect();
        let mut errors = FieldErrors::default();
        node.validate(&mut errors);
        assert_eq!(errors.to_string(), "[]");
    }

    #[test]
    fn pod_cidr_is_the_first_of_pod_cidrs() {
        let mut node = Node::default();
        node.spec.pod_cidr = "10.0.0.0/24".into();
        node.fill_defaults();
        assert_eq!(node.spec.pod_cidrs, ["10.0.0.0/24"]);
        node.spec.pod_cidr.clear();
        node.fill_defaults();
        assert_eq!(node.spec.pod_cidr, "10.0.0.0/24");
    }
}
