//! ResourceQuota: bounds of the resources that all objects of its namespace use together.
//!
//! A write that uses more of a resource adds to `status.used` in its own transaction, so that the bounds hold with any
//! number of gateways. What is no longer used is returned by the resourcequota-controller, which counts what exists.

mod scope;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::amounts::Quantities;
use setpoint_model::quantity::Amount;
use setpoint_proto::core::{ResourceQuota, ResourceQuotaSpec};
use setpoint_proto::meta::Quantity;

use super::{StoredKind, status};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::podspec;
use crate::validation::warnings::Warnings;

/// The resources with bounds of both requests and limits.
const LIMITED: [&str; 4] = ["cpu", "memory", "storage", "ephemeral-storage"];

impl StoredKind for ResourceQuota {
    const RETURNS_DELETED: bool = true;

    status::status_items!(uncounted);

    fn fill_defaults(&mut self) {
        podspec::canonicalise(&mut self.spec.hard);
        podspec::canonicalise(&mut self.status.hard);
        podspec::canonicalise(&mut self.status.used);
    }

    fn prepare_status_update(&mut self, old: &Self) {
        self.spec.clone_from(&old.spec);
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let path = FieldPath::root("spec");
        validate_amounts(&self.spec.hard, &path.field("hard"), errors);
        scope::validate(&self.spec, &path, errors);
    }

    fn warn(&self, old: Option<&Self>, warnings: &mut Warnings) {
        for resource in LIMITED.iter().filter(|_| old.is_none()) {
            warn_of_limit(&self.spec.hard, resource, warnings);
        }
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        fn scopes(spec: &ResourceQuotaSpec) -> BTreeSet<&String> {
            spec.scopes.iter().collect()
        }
        if scopes(&self.spec) != scopes(&old.spec) {
            let path = FieldPath::root("spec");
            let path = path.field("scopes");
            errors.invalid(&path, &self.spec.scopes, "field is immutable");
        }
    }

    fn validate_status_update(&self, _old: &Self, errors: &mut FieldErrors) {
        let path = FieldPath::root("status");
        validate_amounts(&self.status.hard, &path.field("hard"), errors);
        validate_amounts(&self.status.used, &path.field("used"), errors);
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        let of_limits = match column {
            "Request" => false,
            "Limit" => true,
            _ => return None,
        };
        let (hard, used) = (&self.status.hard, &self.status.used);
        let hard = hard.iter();
        let hard = hard.filter(|(name, _)| name.starts_with("limits.") == of_limits);
        let parts = hard.map(|(name, hard)| {
            let used = used.get(name).map_or("0", |used| used.string.as_str());
            format!("{name}: {used}/{hard}")
        });
        Some(parts.collect::<Vec<_>>().join(", ").into())
    }
}

/// Warns of requests of a resource that may be more than its limits.
fn warn_of_limit(hard: &BTreeMap<String, Quantity>, resource: &str, warnings: &mut Warnings) {
    let amount = |name: String| {
        let quantity = &hard.get(&name)?.string;
        Some((name, Amount::parse(quantity).ok()?))
    };
    let has_short_name = ["cpu", "memory"].contains(&resource);
    let short = || amount(resource.to_owned()).filter(|_| has_short_name);
    let request = amount(format!("requests.{resource}")).or_else(short);
    let limit = amount(format!("limits.{resource}"));
    if let (Some((of_requests, request)), Some((of_limits, limit))) = (request, limit)
        && request > limit
    {
        let (request, limit) = (request.canonical(), limit.canonical());
        warnings.add(format!(
            "ResourceQuota {of_requests} ({request}) should be less than {of_limits} ({limit})"
        ));
    }
}

fn validate_amounts(amounts: &Quantities, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (name, quantity) in amounts {
        let path = path.key(name);
        podspec::validate_any_name(name, &path, errors);
        if name == "storage" {
            errors.invalid(&path, name, "must be a standard resource for quota");
        }
        match Amount::parse(&quantity.string) {
            Err(error) => errors.invalid(&path, quantity, error),
            Ok(amount) => podspec::validate_amount(name, amount, quantity, &path, errors),
        }
    }
}
