//! Rules of a definition: whether they compile, and what they may cost.

use serde_json::json;
use setpoint_cel::{ListType, Node, Program, Rule, max_cardinality};

use super::Tree;
use super::compile::Compiled;
use crate::path::Path;
use crate::violation::Violation;

/// The largest estimated cost of one expression.
const PER_EXPRESSION: u64 = 10_000_000;
/// The largest estimated cost of all expressions of one schema.
const PER_SCHEMA: u64 = 100_000_000;
/// The most expensive rules that are named.
const NAMED: usize = 4;

/// Checks the rules of a schema that is valid otherwise.
pub(crate) fn check(tree: &Tree, node: &Node, path: &Path<'_>) -> Vec<Violation> {
    let mut checker = Checker::default();
    if let Some(failure) = &tree.failure {
        let path = path.field("x-kubernetes-validations");
        return vec![Violation::new(
            crate::violation::Kind::Internal,
            &path,
            None,
            failure.as_str(),
        )];
    }
    let scope = Scope {
        count: Some(1),
        uncorrelated: None,
    };
    checker.node(tree, node, &scope, path);
    checker.total(path);
    checker.found
}

/// The context of a schema.
#[derive(Clone)]
struct Scope {
    /// The largest number of values of the schema in an object. None if there is no limit.
    count: Option<u64>,
    /// The path of the list whose items do not correlate with old ones, if there is one around the schema.
    uncorrelated: Option<String>,
}

#[derive(Default)]
struct Checker {
    found: Vec<Violation>,
    total: u64,
    /// The paths of the most expensive expressions.
    expensive: Vec<(u64, String)>,
}

impl Checker {
    fn node(&mut self, tree: &Tree, node: &Node, scope: &Scope, path: &Path<'_>) {
        let inner = Scope {
            count: scope
                .count
                .zip(factor(node))
                .map(|(count, factor)| count.saturating_mul(factor)),
            uncorrelated: scope.uncorrelated.clone(),
        };
        if let (Some(tree), Some(values)) = (&tree.values, node.values()) {
            self.node(tree, values, &inner, &path.field("additionalProperties"));
        }
        let properties = path.field("properties");
        for (name, tree) in &tree.properties {
            if let Some(child) = node.properties.get(name) {
                self.node(tree, child, &inner, &properties.key(name));
            }
        }
        if let (Some(tree), Some(items)) = (&tree.items, &node.items) {
            let mut inner = inner;
            if node.list_type() != ListType::Map && inner.uncorrelated.is_none() {
                inner.uncorrelated = Some(path.to_string());
            }
            self.node(tree, items, &inner, &path.field("items"));
        }
        let rules = path.field("x-kubernetes-validations");
        for (index, (rule, compiled)) in tree.rules.iter().enumerate() {
            if let Some(compiled) = compiled {
                self.rule(rule, compiled, node, scope, &rules.index(index));
            }
        }
    }

    fn rule(
        &mut self,
        rule: &Rule,
        compiled: &Compiled,
        node: &Node,
        scope: &Scope,
        path: &Path<'_>,
    ) {
        let (rule_path, message_path) = (path.field("rule"), path.field("messageExpression"));
        match &compiled.rule {
            Ok(program) => {
                let count = scope.count;
                let count = count.unwrap_or_else(|| max_cardinality(node));
                let cost = program.cost().saturating_mul(count);
                self.cost(cost, "estimated rule cost", &rule_path);
                self.old_self(rule, program, scope, path);
            }
            Err(error) => self.malformed(&rule_path, rule, error),
        }
        match &compiled.message {
            Some(Ok(program)) => {
                self.cost(
                    program.cost(),
                    "estimated messageExpression cost",
                    &message_path,
                );
            }
            Some(Err(error)) => self.malformed(&message_path, rule, error),
            None => {}
        }
    }

    fn malformed(&mut self, path: &Path<'_>, rule: &Rule, error: &str) {
        let shown = json!({
            "Rule": rule.rule,
            "Message": rule.message,
            "MessageExpression": rule.message_expression,
            "Reason": rule.reason,
            "FieldPath": rule.field_path,
            "OptionalOldSelf": rule.optional_old_self,
        });
        self.found.push(Violation::invalid(path, shown, error));
    }

    fn old_self(&mut self, rule: &Rule, program: &Program, scope: &Scope, path: &Path<'_>) {
        if program.uses_old() {
            if let Some(list) = &scope.uncorrelated {
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
                );
                let path = path.field("rule");
                let violation = Violation::invalid(&path, rule.rule.as_str(), detail);
                self.found.push(violation);
            }
        } else if let Some(optional) = rule.optional_old_self {
            let detail = "may not be set if oldSelf is not used in rule";
            let path = path.field("optionalOldSelf");
            self.found.push(Violation::invalid(&path, optional, detail));
        }
    }

    fn cost(&mut self, cost: u64, name: &str, path: &Path<'_>) {
        if cost > PER_EXPRESSION {
            let detail = exceeded(name, cost, PER_EXPRESSION);
            self.found.push(Violation::forbidden(path, detail));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= PER_SCHEMA / 100 {
            self.expensive.push((cost, path.to_string()));
            self.expensive
                .sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            self.expensive.truncate(NAMED);
        }
    }

    fn total(&mut self, path: &Path<'_>) {
        if self.total <= PER_SCHEMA {
            return;
        }
        for (_, rule) in &self.expensive {
            let detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            self.found
                .push(Violation::forbidden(&Path::new(rule), detail));
        }
        let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let detail = exceeded(name, self.total, PER_SCHEMA);
        self.found.push(Violation::forbidden(path, detail));
    }
}

/// Returns how many values a value has. None if there is no limit.
fn factor(node: &Node) -> Option<u64> {
    let limit = match node.schema_type.as_str() {
        "object" if node.additional_properties.is_some() => node.bounds.max_properties?,
        "array" => node.bounds.max_items?,
        _ => 1,
    };
    Some(u64::try_from(limit).unwrap_or(0))
}

fn exceeded(name: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = match factor {
        large if large > 100.0 => "more than 100x".to_owned(),
        small if small < 1.5 => format!("{small:.6}x"),
        other => format!("{other:.1}x"),
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}
