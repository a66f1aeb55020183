//! ClusterRoles whose rules are those of others.

use setpoint_model::Selector;
use setpoint_proto::rbac::{ClusterRole, PolicyRule};

/// Returns the rules of a role that is aggregated from those that its selectors select, each once; `None` for another
/// role. `all` are all ClusterRoles. A selector that is malformed selects nothing.
pub fn aggregate(role: &ClusterRole, all: &[&ClusterRole]) -> Option<Vec<PolicyRule>> {
    let selectors = &role.aggregation_rule.as_ref()?.cluster_role_selectors;
    let mut others: Vec<_> = all
        .iter()
        .copied()
        .filter(|other| other.metadata.name != role.metadata.name)
        .collect();
    others.sort_by_key(|other| &other.metadata.name);
    let mut rules = Vec::<PolicyRule>::new();
    for selector in selectors {
        let Ok(selector) = Selector::from_label_selector(selector) else {
            continue;
        };
        let selected = others
            .iter()
            .filter(|other| selector.matches(&other.metadata.labels));
        for rule in selected.flat_map(|other| &other.rules) {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
    }
    Some(rules)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use setpoint_proto::meta::LabelSelector;
    use setpoint_proto::rbac::AggregationRule;

    use super::*;

    fn role(name: &str, label: &str, verbs: &[&str]) -> ClusterRole {
        let mut role = ClusterRole::default();
        role.metadata.name = name.into();
        role.metadata.labels.insert(label.into(), "true".into());
        role.rules = verbs.iter().map(|verb| rule(verb)).collect();
        role
    }

    fn rule(verb: &str) -> PolicyRule {
        PolicyRule {
            verbs: vec![verb.into()],
            ..PolicyRule::default()
        }
    }

    fn selector(label: &str) -> LabelSelector {
        LabelSelector {
            match_labels: BTreeMap::from([(label.into(), "true".into())]),
            ..LabelSelector::default()
        }
    }

    #[test]
    fn an_aggregated_role_has_the_rules_of_the_selected_roles_by_selector_and_name() {
        let mut sum = role("sum", "a", &["own"]);
        assert_eq!(aggregate(&sum, &[]), None);
        sum.aggregation_rule = Some(AggregationRule {
            cluster_role_selectors: vec![selector("b"), selector("a")],
        });
        let others = [
            role("z", "a", &["get"]),
            role("y", "a", &["list", "get"]),
            role("x", "b", &["watch"]),
            role("w", "c", &["delete"]),
        ];
        let all: Vec<_> = others.iter().chain([&sum]).collect();
        let expected = ["watch", "list", "get"].map(rule);
        assert_eq!(aggregate(&sum, &all).unwrap(), expected);
    }
}
