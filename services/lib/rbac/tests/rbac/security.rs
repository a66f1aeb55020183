//! Compares the table "Who may write what" of `SECURITY.md` with the roles of services and controllers.

use std::collections::{BTreeMap, BTreeSet};

use setpoint_model::users::PREFIX;
use setpoint_proto::rbac::PolicyRule;
use setpoint_rbac::bootstrap::setpoint::{WRITERS, cluster_roles, roles};

const DOCUMENT: &str = include_str!("../../../../../SECURITY.md");
const TITLE: &str = "## Who may write what";

/// The rows for the roles of more than one writer: their writer in the table, and the name of the role.
const SHARED: [(&str, &str); 2] = [
    ("controller-manager, for its informers", "informers"),
    ("every process", "replicas"),
];

/// Returns the last cell of each row, by the first.
fn table() -> BTreeMap<String, String> {
    let (_, section) = DOCUMENT.split_once(TITLE).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| "));
    let cells = rows.map(|row| row.trim_matches('|').split('|').map(str::trim));
    let cells = cells.map(|mut cells| (cells.next().unwrap(), cells.next_back().unwrap()));
    let rows: Vec<_> = cells
        .map(|(writer, may)| (writer.to_owned(), may.to_owned()))
        .collect();
    let table: BTreeMap<_, _> = rows.iter().cloned().collect();
    assert_eq!(table.len(), rows.len(), "a writer has two rows");
    table
}

/// Returns what each role allows, as the table has it, without the rules of elections, which are the same for all.
fn allowed() -> BTreeMap<String, String> {
    let mut texts = BTreeMap::<String, Vec<String>>::new();
    for role in cluster_roles() {
        let rules = role.rules.iter().map(|rule| text(rule, ""));
        texts
            .entry(writer(&role.metadata.name))
            .or_default()
            .extend(rules);
    }
    for role in roles() {
        let (name, namespace) = (writer(&role.metadata.name), &role.metadata.namespace);
        let rules = role
            .rules
            .iter()
            .filter(|rule| !is_of_election(rule, &name, namespace));
        let rules: Vec<_> = rules.map(|rule| text(rule, namespace)).collect();
        texts.entry(name).or_default().extend(rules);
    }
    let texts = texts.into_iter();
    texts
        .map(|(writer, rules)| (writer, rules.join("; ")))
        .collect()
}

fn writer(role: &str) -> String {
    let name = role.strip_prefix(PREFIX).unwrap();
    let shared = SHARED.iter().find(|(_, shared)| *shared == name);
    shared.map_or(name, |(writer, _)| writer).to_owned()
}

fn is_of_election(rule: &PolicyRule, name: &str, namespace: &str) -> bool {
    let is_own = rule.resource_names == [name] && rule.verbs == ["get", "update", "watch"];
    let is_new = rule.resource_names.is_empty() && rule.verbs == ["create"];
    namespace == "setpoint-system" && rule.resources == ["leases"] && (is_own || is_new)
}

/// Returns a rule as `kubectl describe` names its resources.
fn text(rule: &PolicyRule, namespace: &str) -> String {
    let verbs = rule.verbs.join(" ");
    let mut resources = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            let (plural, part) = resource.split_once('/').unwrap_or((resource, ""));
            let group = if group.is_empty() {
                String::new()
            } else {
                format!(".{group}")
            };
            let part = if part.is_empty() {
                String::new()
            } else {
                format!("/{part}")
            };
            resources.push(format!("{plural}{group}{part}"));
        }
    }
    let mut text = format!("`{verbs}` {}", resources.join(" "));
    if !rule.resource_names.is_empty() {
        text += &format!(" named {}", rule.resource_names.join(" "));
    }
    if !namespace.is_empty() {
        text += &format!(" in {namespace}");
    }
    // In a table, a star would begin emphasis.
    text.replace('*', "\\*")
}

#[test]
fn the_table_lists_what_each_role_allows_and_nothing_else() {
    let table = table();
    let rows = allowed().into_iter();
    let missing = rows.filter(|(writer, may)| table.get(writer) != Some(may));
    let missing: Vec<_> = missing
        .map(|(writer, may)| format!("{writer}: {may}"))
        .collect();
    assert!(missing.is_empty(), "other cells:\n{}", missing.join("\n"));
    let granted = table.iter().filter(|(_, may)| may.starts_with('`'));
    let granted: BTreeSet<_> = granted.map(|(writer, _)| writer).collect();
    assert_eq!(granted, allowed().keys().collect());
}

#[test]
fn every_service_and_controller_has_a_row() {
    let table = table();
    for writer in WRITERS {
        let has_row = |row: &String| row == writer || row.starts_with(&format!("{writer}:"));
        assert!(table.keys().any(has_row), "{writer}");
    }
    for other in ["users", "setpoint"] {
        assert!(table.contains_key(other), "{other}");
    }
}
