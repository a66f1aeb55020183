//! Checks the expressions of a policy against the types of the objects that it selects. What it finds are warnings: the
//! policy is evaluated all the same.

use std::collections::BTreeMap;

use setpoint_cel::{Environment, Output, Variables, on_compiler_stack};
use setpoint_codec::{Kind, KindTable};
use setpoint_proto::admissionregistration::{
    ExpressionWarning, NamedRuleWithOperations, ValidatingAdmissionPolicySpec,
};
use setpoint_schema::Node;

use super::environment::{Types, of_policy};
use super::schema;

/// The largest number of types that a policy is checked against.
const MOST_TYPES: usize = 10;

/// Returns the warnings about the validations of a policy.
pub fn warnings(spec: &ValidatingAdmissionPolicySpec, kinds: &KindTable) -> Vec<ExpressionWarning> {
    let types = types(spec, kinds);
    let params = spec.param_kind.as_ref();
    let params = params.and_then(|params| kinds.by_kind(&params.api_version, &params.kind));
    let params = params.and_then(schema::of);
    let check = || check(spec, &types, params.as_ref());
    // Without a stack to compile on, nothing is known.
    on_compiler_stack(check).unwrap_or_default()
}

fn check(
    spec: &ValidatingAdmissionPolicySpec,
    types: &[(String, Node)],
    params: Option<&Node>,
) -> Vec<ExpressionWarning> {
    let environments = types.iter().map(|(name, object)| {
        let object = Some(object);
        let mut environment = of_policy(spec.param_kind.is_some(), true, Types { object, params });
        for variable in &spec.variables {
            let (name, source) = (&variable.name, &variable.expression);
            // An error of a variable is one of the expressions that use it.
            let _ = environment.declare(name, source, &mut Variables::default());
        }
        (name.as_str(), environment)
    });
    let environments: Vec<_> = environments.collect();
    let mut found = Vec::new();
    for (index, validation) in spec.validations.iter().enumerate() {
        for (field, source) in [
            ("expression", &validation.expression),
            ("messageExpression", &validation.message_expression),
        ] {
            let warning = mistyped(&environments, source);
            found.extend(warning.map(|warning| ExpressionWarning {
                field_ref: format!("spec.validations[{index}].{field}"),
                warning,
            }));
        }
    }
    found
}

/// Returns the errors of an expression, each with the type of the object that it is an error for.
fn mistyped(environments: &[(&str, Environment<'_>)], source: &str) -> Option<String> {
    if source.is_empty() {
        return None;
    }
    let errors = environments.iter().filter_map(|(name, environment)| {
        let error = environment.compile(source, Output::Any).err()?;
        Some(format!("{name}: {error}\n"))
    });
    let errors: Vec<_> = errors.collect();
    (!errors.is_empty()).then(|| errors.join("\n"))
}

/// Returns the types that the rules name, in the order of their names. Rules with wildcards name none.
fn types(spec: &ValidatingAdmissionPolicySpec, kinds: &KindTable) -> Vec<(String, Node)> {
    let constraints = spec.match_constraints.as_ref();
    let rules = constraints.map_or(&[][..], |resources| &resources.resource_rules);
    let mut found = BTreeMap::new();
    for kind in rules.iter().flat_map(|rule| named(rule, kinds)) {
        if found.len() < MOST_TYPES {
            found.insert((&kind.group, &kind.version, &kind.kind), kind);
        }
    }
    let types = found.into_values().filter_map(|kind| {
        let name = format!("{}/{}, Kind={}", kind.group, kind.version, kind.kind);
        Some((name, schema::of(kind)?))
    });
    types.collect()
}

fn named(rule: &NamedRuleWithOperations, kinds: &KindTable) -> Vec<&'static Kind> {
    let rule = &rule.rule_with_operations.rule;
    let is_open = |names: &[String]| names.iter().any(|name| name.contains('*'));
    if is_open(&rule.api_groups) || is_open(&rule.api_versions) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for group in &rule.api_groups {
        for version in &rule.api_versions {
            let resources = rule.resources.iter();
            let whole = resources.filter(|resource| !resource.contains(['*', '/']));
            found.extend(whole.filter_map(|resource| kinds.by_plural(group, version, resource)));
            if found.len() >= MOST_TYPES {
                return found;
            }
        }
    }
    found
}
