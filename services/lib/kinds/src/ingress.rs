//! Ingress: rules with complete backends; the default IngressClass is set at creation.

mod validation;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;
use setpoint_proto::networking::{Ingress, IngressRule};

use super::{StoredKind, status};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::warnings::{Warnings, warn_of_address};

/// The annotation with the class in old versions of Kubernetes.
pub const CLASS: &str = "kubernetes.io/ingress.class";
/// The number of hosts that the cell of the rules shows.
const SHOWN: usize = 3;

impl StoredKind for Ingress {
    status::status_items!();

    fn validate_create(&self, errors: &mut FieldErrors) {
        validation::validate(&self.spec, None, errors);
        let annotation = self.metadata.annotations.get(CLASS);
        if let (Some(annotation), Some(class)) = (annotation, &self.spec.ingress_class_name)
            && annotation != class
        {
            let path = FieldPath::root("annotations");
            let detail = "must match `ingressClassName` when both are specified";
            errors.invalid(&path.field(CLASS), annotation, detail);
        }
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        validation::validate(&self.spec, Some(&old.spec), errors);
    }

    fn validate_status_update(&self, old: &Self, errors: &mut FieldErrors) {
        validation::validate_status(&self.status, &old.status, errors);
    }

    fn warn(&self, old: Option<&Self>, warnings: &mut Warnings) {
        let has_annotation = self.metadata.annotations.contains_key(CLASS);
        if old.is_none() && has_annotation && self.spec.ingress_class_name.is_none() {
            warnings.add(format!(
                "annotation {CLASS:?} is deprecated, please use 'spec.ingressClassName' instead"
            ));
        }
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
        let class = self.spec.ingress_class_name.as_deref();
        Some(match column {
            "Class" => class.unwrap_or("<none>").into(),
            "Hosts" => hosts(&self.spec.rules).into(),
            "Address" => {
                let given = self.status.load_balancer.ingress.iter();
                let given = given.map(|one| {
                    if one.ip.is_empty() {
                        &one.hostname
                    } else {
                        &one.ip
                    }
                });
                let given: BTreeSet<_> = given.filter(|one| !one.is_empty()).cloned().collect();
                given.into_iter().collect::<Vec<_>>().join(",").into()
            }
            "Ports" if self.spec.tls.is_empty() => "80".into(),
            "Ports" => "80, 443".into(),
            _ => return None,
        })
    }
}

/// Returns the first hosts of the rules, and the number of the other rules, as a cell.
fn hosts(rules: &[IngressRule]) -> String {
    let named = rules
        .iter()
        .enumerate()
        .filter(|(_, rule)| !rule.host.is_empty());
    let shown: Vec<_> = named.take(SHOWN).collect();
    let hosts: Vec<_> = shown.iter().map(|(_, rule)| rule.host.as_str()).collect();
    match shown.last() {
        None => "*".into(),
        Some((last, _)) if shown.len() == SHOWN && last + 1 < rules.len() => {
            format!("{} + {} more...", hosts.join(","), rules.len() - SHOWN)
        }
        Some(_) => hosts.join(","),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cell_has_three_hosts() {
        let rules = |hosts: &[&str]| -> Vec<_> {
            let rule = |host: &&str| IngressRule {
                host: (*host).to_owned(),
                ..Default::default()
            };
            hosts.iter().map(rule).collect()
        };
        assert_eq!(hosts(&rules(&[])), "*");
        assert_eq!(hosts(&rules(&["", "a"])), "a");
        assert_eq!(hosts(&rules(&["a", "b", "c"])), "a,b,c");
        assert_eq!(hosts(&rules(&["a", "b", "c", "d"])), "a,b,c + 1 more...");
    }
}
