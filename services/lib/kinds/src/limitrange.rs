//! LimitRange: defaults and bounds for the resources of each object of its namespace.

pub mod constraint;

use std::collections::{BTreeMap, BTreeSet};

use setpoint_model::amounts::{self, Amounts, Quantities};
use setpoint_model::names;
use setpoint_model::quantity::Amount;
use setpoint_model::resource_name;
use setpoint_proto::core::{LimitRange, LimitRangeItem};

use super::StoredKind;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::podspec;

/// The type of limits of containers.
pub const CONTAINER: &str = "Container";
/// The type of limits of whole Pods.
pub const POD: &str = "Pod";
/// The type of limits of PersistentVolumeClaims.
pub const CLAIM: &str = "PersistentVolumeClaim";

impl StoredKind for LimitRange {
    const CREATES_ON_UPDATE: bool = true;

    fn fill_defaults(&mut self) {
        for item in &mut self.spec.limits {
            let lists = [
                &mut item.max,
                &mut item.min,
                &mut item.default,
                &mut item.default_request,
                &mut item.max_limit_request_ratio,
            ];
            lists.into_iter().for_each(podspec::canonicalise);
            if item.r#type == CONTAINER {
                fill_defaults_of_containers(item);
            }
        }
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let path = FieldPath::root("spec");
        let path = path.field("limits");
        let mut types = BTreeSet::new();
        for (index, item) in self.spec.limits.iter().enumerate() {
            let path = path.index(index);
            validate_type(&item.r#type, &path.field("type"), errors);
            if !types.insert(&item.r#type) {
                errors.duplicate(&path.field("type"), &item.r#type);
            }
            validate_names(item, &path, errors);
            validate_values(item, &path, errors);
        }
    }
}

/// The default limit is the maximum, and the default request is the default limit, or else the minimum.
fn fill_defaults_of_containers(item: &mut LimitRangeItem) {
    fill(&mut item.default, &item.max);
    fill(&mut item.default_request, &item.default);
    fill(&mut item.default_request, &item.min);
}

/// Adds the quantities of `from` that a list does not have.
pub fn fill(list: &mut Quantities, from: &Quantities) {
    for (name, quantity) in from {
        let entry = list.entry(name.clone());
        entry.or_insert_with(|| quantity.clone());
    }
}

fn validate_type(name: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let wrong = names::validate_qualified_name(name);
    let standard = name.contains('/') || [CONTAINER, POD, CLAIM].contains(&name);
    if wrong.is_empty() && !standard {
        let detail = "must be a standard limit type or fully qualified";
        errors.invalid(path, name, detail);
    }
    errors.all_invalid(path, name, wrong);
}

fn validate_names(item: &LimitRangeItem, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let defaults = [
        (&item.default, "default"),
        (&item.default_request, "defaultRequest"),
    ];
    let mut lists = vec![(&item.max, "max"), (&item.min, "min")];
    if item.r#type == POD {
        for (list, field) in defaults {
            if !list.is_empty() {
                let detail = "may not be specified when `type` is 'Pod'";
                errors.forbidden(&path.field(field), detail);
            }
        }
    } else {
        lists.extend(defaults);
    }
    lists.push((&item.max_limit_request_ratio, "maxLimitRequestRatio"));
    for (list, field) in lists {
        let path = path.field(field);
        for name in list.keys() {
            let of_container = [CONTAINER, POD].contains(&item.r#type.as_str());
            match of_container {
                true => podspec::validate_container_resource(name, &path.key(name), errors),
                false => podspec::validate_any_name(name, &path.key(name), errors),
            }
        }
        for (name, quantity) in list {
            if let Err(error) = Amount::parse(&quantity.string) {
                errors.invalid(&path.key(name), quantity, error);
            }
        }
    }
    let bounded = item.min.contains_key("storage") || item.max.contains_key("storage");
    if item.r#type == CLAIM && !bounded {
        let detail =
            "either minimum or maximum storage value is required, but neither was provided";
        errors.required(&path.field("limits"), detail);
    }
}

/// The amounts of an item for one resource.
struct Values<'a> {
    name: &'a str,
    min: Option<Amount>,
    max: Option<Amount>,
    default: Option<Amount>,
    request: Option<Amount>,
    ratio: Option<Amount>,
}

fn validate_values(item: &LimitRangeItem, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let lists = [
        &item.min,
        &item.max,
        &item.default,
        &item.default_request,
        &item.max_limit_request_ratio,
    ];
    let lists = lists.map(amounts::of_list);
    let names: BTreeSet<_> = lists.iter().flat_map(BTreeMap::keys).collect();
    for name in names {
        let [min, max, default, request, ratio] = lists
            .each_ref()
            .map(|list: &Amounts| list.get(name).copied());
        let with_defaults = item.r#type != POD;
        let values = Values {
            name,
            min,
            max,
            default: default.filter(|_| with_defaults),
            request: request.filter(|_| with_defaults),
            ratio,
        };
        values.validate_order(path, errors);
        values.validate_ratio(path, errors);
        values.validate_overcommit(path, errors);
    }
}

impl Values<'_> {
    /// Validates minimum ≤ default request ≤ default limit ≤ maximum.
    fn validate_order(&self, path: &FieldPath<'_>, errors: &mut FieldErrors) {
        let (min, max) = (("min", self.min), ("max", self.max));
        let (default, request) = (("default", self.default), ("default request", self.request));
        let limit = ("default limit", self.default);
        for (lower, upper, field, value) in [
            (min, max, "min", self.min),
            (min, request, "defaultRequest", self.request),
            (request, max, "defaultRequest", self.request),
            (request, limit, "defaultRequest", self.request),
            (min, default, "default", self.min),
            (default, max, "default", self.max),
        ] {
            let (Some(less), Some(more), Some(value)) = (lower.1, upper.1, value) else {
                continue;
            };
            if less > more {
                let detail = format!(
                    "{} value {} is greater than {} value {}",
                    lower.0,
                    less.canonical(),
                    upper.0,
                    more.canonical()
                );
                let path = path.field(field);
                errors.invalid(&path.key(self.name), value.canonical(), detail);
            }
        }
    }

    fn validate_ratio(&self, path: &FieldPath<'_>, errors: &mut FieldErrors) {
        let Some(ratio) = self.ratio else {
            return;
        };
        let path = path.field("maxLimitRequestRatio");
        let (path, text) = (path.key(self.name), ratio.canonical());
        if ratio < Amount::from_value(1) {
            errors.invalid(&path, &text, format!("ratio {text} is less than 1"));
        }
        if let (Some(min), Some(max)) = (self.min, self.max) {
            let possible = constraint::quotient(max, min);
            if constraint::number(ratio) > possible {
                let detail = format!("ratio {text} is greater than max/min = {possible:.6}");
                errors.invalid(&path, &text, detail);
            }
        }
    }

    /// Validates that the defaults of a resource that cannot be overcommitted are equal.
    fn validate_overcommit(&self, path: &FieldPath<'_>, errors: &mut FieldErrors) {
        let overcommits = resource_name::is_native(self.name)
            && !self.name.starts_with(resource_name::HUGE_PAGES);
        if let (Some(default), Some(request)) = (self.default, self.request)
            && !overcommits
            && default != request
        {
            let detail = format!(
                "default value {} must equal to defaultRequest value {} in {}",
                default.canonical(),
                request.canonical(),
                self.name
            );
            let path = path.field("defaultRequest");
            errors.invalid(&path.key(self.name), request.canonical(), detail);
        }
    }
}
