//! The arguments of NodeAffinity.

use serde::{Deserialize, Serialize};
use setpoint_model::placement::NAME_FIELD;
use setpoint_proto::core::{NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm};

use super::super::AddedAffinity;

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    added_affinity: Option<NodeAffinity>,
}

impl Args {
    /// Returns the affinity of the profile.
    pub fn parse(&self, path: &str) -> Result<AddedAffinity, String> {
        let path = format!("{path}.addedAffinity");
        let added = self.added_affinity.clone().unwrap_or_default();
        let required = added.required_during_scheduling_ignored_during_execution;
        let required = required.map(|required| required.node_selector_terms);
        let preferred = added.preferred_during_scheduling_ignored_during_execution;
        let when = "DuringSchedulingIgnoredDuringExecution";
        for (n, term) in required.iter().flatten().enumerate() {
            check_term(
                term,
                &format!("{path}.required{when}.nodeSelectorTerms[{n}]"),
            )?;
        }
        for (n, term) in preferred.iter().enumerate() {
            check_term(
                &term.preference,
                &format!("{path}.preferred{when}[{n}].preference"),
            )?;
        }
        Ok(AddedAffinity {
            required,
            preferred,
        })
    }
}

fn check_term(term: &NodeSelectorTerm, path: &str) -> Result<(), String> {
    for (n, one) in term.match_expressions.iter().enumerate() {
        check_requirement(one, &format!("{path}.matchExpressions[{n}]"))?;
    }
    for (n, one) in term.match_fields.iter().enumerate() {
        let path = format!("{path}.matchFields[{n}]");
        if one.key != NAME_FIELD {
            let key = &one.key;
            return Err(format!(
                "{path}.key: Invalid value: {key:?}: not a valid field selector key"
            ));
        }
        check_requirement(one, &path)?;
    }
    Ok(())
}

fn check_requirement(one: &NodeSelectorRequirement, path: &str) -> Result<(), String> {
    let (operator, values) = (one.operator.as_str(), &one.values);
    let required = |what: &str| Err(format!("{path}.values: Required value: {what}"));
    match (operator, values.as_slice()) {
        ("In" | "NotIn", []) => required("must be specified when `operator` is 'In' or 'NotIn'"),
        ("Exists" | "DoesNotExist", [_, ..]) => Err(format!(
            "{path}.values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        )),
        ("Gt" | "Lt", [value]) if value.parse::<i64>().is_ok() => Ok(()),
        ("Gt" | "Lt", _) => {
            required("must be specified single value when `operator` is 'Lt' or 'Gt'")
        }
        ("In" | "NotIn" | "Exists" | "DoesNotExist", _) => Ok(()),
        _ => Err(format!(
            "{path}.operator: Invalid value: {operator:?}: not a valid selector operator"
        )),
    }
}
