//! FlowSchema: assigns requests to a priority level, by who asks and what for.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::names;
use setpoint_proto::flowcontrol::{
    FlowSchema, GroupSubject, NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule,
    ServiceAccountSubject, Subject, UserSubject,
};

use super::{Paths, StoredKind, flowcontrol, status};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

const EXEMPT: &str = "exempt";
const DEFAULT_PRECEDENCE: i32 = 1000;
const LOWEST_PRECEDENCE: i32 = 10_000;
const METHODS: &[&str] = &["ByNamespace", "ByUser"];
const SUBJECTS: &[&str] = &["Group", "ServiceAccount", "User"];
const VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "proxy",
    "update",
    "watch",
];
const ALL: &str = "*";

impl StoredKind for FlowSchema {
    const STATUS_RESETS: Paths = &[&["spec"], &["metadata"]];
    status::status_items!();

    fn fill_defaults(&mut self) {
        if self.spec.matching_precedence == 0 {
            self.spec.matching_precedence = DEFAULT_PRECEDENCE;
        }
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let (spec, path) = (&self.spec, FieldPath::root("spec"));
        let (precedence, at) = (spec.matching_precedence, path.field("matchingPrecedence"));
        if precedence <= 0 {
            errors.invalid(&at, precedence, "must be a positive value");
        }
        if precedence > LOWEST_PRECEDENCE {
            let detail = format!("must not be greater than {LOWEST_PRECEDENCE}");
            errors.invalid(&at, precedence, detail);
        }
        let name = self.metadata.name.as_str();
        if precedence == 1 && name != EXEMPT {
            let detail = "only the schema named 'exempt' may have matchingPrecedence 1";
            errors.invalid(&at, precedence, detail);
        }
        if let Some(method) = &spec.distinguisher_method {
            let at = path.field("distinguisherMethod");
            errors.one_of(&at.field("type"), method.r#type.as_str(), METHODS);
        }
        let level = path.field("priorityLevelConfiguration");
        match spec.priority_level_configuration.name.as_str() {
            "" => errors.required(&level.field("name"), "must reference a priority level"),
            name => errors.check(&level.field("name"), name, names::validate_dns_subdomain),
        }
        let rules = path.field("rules");
        for (index, rule) in spec.rules.iter().enumerate() {
            validate_rule(rule, &rules.index(index), errors);
        }
        let fixed = flowcontrol::mandatory_schemas().find(|schema| schema.metadata.name == name);
        if fixed.is_some_and(|fixed| fixed.spec != *spec) {
            let detail = format!("spec of '{name}' must equal the fixed value");
            errors.invalid(&path, spec, detail);
        }
    }

    fn validate_status_update(&self, _old: &Self, errors: &mut FieldErrors) {
        let types = self.status.conditions.iter().map(|one| one.r#type.as_str());
        flowcontrol::validate_condition_types(types, errors);
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        let mut conditions = self.status.conditions.iter();
        let dangling = conditions.find(|condition| condition.r#type == "Dangling");
        let status = dangling.map_or("?", |condition| condition.status.as_str());
        (column == "MissingPL").then(|| status.into())
    }
}

fn validate_rule(rule: &PolicyRulesWithSubjects, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let at = path.field("subjects");
    if rule.subjects.is_empty() {
        errors.required(&at, "subjects must contain at least one value");
    }
    for (index, subject) in rule.subjects.iter().enumerate() {
        validate_subject(subject, &at.index(index), errors);
    }
    if rule.resource_rules.is_empty() && rule.non_resource_rules.is_empty() {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.required(path, detail);
    }
    let at = path.field("resourceRules");
    for (index, rule) in rule.resource_rules.iter().enumerate() {
        validate_resource_rule(rule, &at.index(index), errors);
    }
    let at = path.field("nonResourceRules");
    for (index, rule) in rule.non_resource_rules.iter().enumerate() {
        validate_non_resource_rule(rule, &at.index(index), errors);
    }
}

fn validate_subject(subject: &Subject, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let kind = subject.kind.as_str();
    errors.one_of(&path.field("kind"), kind, SUBJECTS);
    if !SUBJECTS.contains(&kind) {
        return;
    }
    for (own, field, is_set) in [
        (
            "ServiceAccount",
            "serviceAccount",
            subject.service_account.is_some(),
        ),
        ("User", "user", subject.user.is_some()),
        ("Group", "group", subject.group.is_some()),
    ] {
        if own != kind && is_set {
            let detail = format!("{field} is forbidden when subject kind is not '{own}'");
            errors.forbidden(&path.field(field), detail);
        }
        if own == kind && !is_set {
            let detail = format!("{field} is required when subject kind is '{own}'");
            errors.required(&path.field(field), &detail);
        }
    }
    match (
        kind,
        &subject.user,
        &subject.group,
        &subject.service_account,
    ) {
        ("User", Some(UserSubject { name }), ..) => {
            errors.not_empty(&path.field("user").field("name"), name);
        }
        ("Group", _, Some(GroupSubject { name }), _) => {
            errors.not_empty(&path.field("group").field("name"), name);
        }
        ("ServiceAccount", _, _, Some(account)) => {
            validate_account(account, &path.field("serviceAccount"), errors);
        }
        _ => {}
    }
}

fn validate_account(
    account: &ServiceAccountSubject,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if account.name != ALL {
        let check = names::validate_dns_subdomain;
        errors.check_required(&path.field("name"), &account.name, check);
    }
    let at = path.field("namespace");
    match account.namespace.as_str() {
        "" => errors.required(&at, "must specify namespace for service account"),
        namespace => errors.check(&at, namespace, names::validate_dns_label),
    }
}

/// Validates a list in which `*` stands alone. Returns whether it has other entries to validate.
fn validate_wildcard(
    list: &[String],
    path: &FieldPath<'_>,
    (missing, others): (&str, &str),
    errors: &mut FieldErrors,
) -> bool {
    if list.is_empty() {
        errors.required(path, missing);
    }
    let has_all = list.iter().any(|entry| entry == ALL);
    if has_all && list.len() > 1 {
        let detail = format!("if '*' is present, must not specify other {others}");
        errors.invalid(path, list, detail);
    }
    !has_all
}

fn validate_verbs(verbs: &[String], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let texts = ("verbs must contain at least one value", "verbs");
    if validate_wildcard(verbs, path, texts, errors)
        && let Some(unknown) = verbs.iter().find(|verb| !VERBS.contains(&verb.as_str()))
    {
        errors.unsupported(path, unknown, VERBS);
    }
}

fn validate_resource_rule(
    rule: &ResourcePolicyRule,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    validate_verbs(&rule.verbs, &path.field("verbs"), errors);
    let missing = "resource rules must supply at least one api group";
    let texts = (missing, "api groups");
    validate_wildcard(&rule.api_groups, &path.field("apiGroups"), texts, errors);
    let missing = "resource rules must supply at least one resource";
    let texts = (missing, "resources");
    validate_wildcard(&rule.resources, &path.field("resources"), texts, errors);
    let at = path.field("namespaces");
    if rule.namespaces.is_empty() && rule.cluster_scope {
        return;
    }
    let missing = "resource rules that are not cluster scoped must supply at least one namespace";
    if validate_wildcard(&rule.namespaces, &at, (missing, "namespaces"), errors) {
        for (index, namespace) in rule.namespaces.iter().enumerate() {
            for problem in names::validate_dns_label(namespace) {
                let intro = "each member of this list must be '*' or a DNS-1123 label; ";
                errors.invalid(&at.index(index), namespace, format!("{intro}{problem}"));
            }
        }
    }
}

fn validate_non_resource_rule(
    rule: &NonResourcePolicyRule,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    validate_verbs(&rule.verbs, &path.field("verbs"), errors);
    let (urls, at) = (&rule.non_resource_ur_ls, path.field("nonResourceURLs"));
    let missing = "nonResourceURLs must contain at least one value";
    if validate_wildcard(urls, &at, (missing, "non-resource URLs"), errors) {
        for (index, url) in urls.iter().enumerate() {
            if let Some(problem) = url_problem(url) {
                errors.invalid(&at.index(index), url, problem);
            }
        }
    }
}

fn url_problem(url: &str) -> Option<&'static str> {
    let wildcards = url.matches('*').count();
    match url {
        "" => Some("must not be empty"),
        "/" => None,
        url if !url.starts_with('/') => Some("must start with slash"),
        url if url.contains(' ') => Some("must not contain white-space"),
        url if url.contains("//") => Some("must not contain double slash"),
        url if wildcards > 1 || (wildcards == 1 && !url.ends_with("/*")) => {
            Some("wildcard can only do suffix matching")
        }
        _ => None,
    }
}
