//! The kinds of admissionregistration.k8s.io. The gateway evaluates policies and calls webhooks.

mod binding;
mod mutating;
mod policy;
mod rule;
mod validating;
pub(super) mod webhook;

use setpoint_model::names;
use setpoint_proto::admissionregistration::MatchCondition;

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::warnings::Warnings;

const FAILURE_POLICIES: &[&str] = &["Fail", "Ignore"];
const MATCH_POLICIES: &[&str] = &["Equivalent", "Exact"];
const REINVOCATION_POLICIES: &[&str] = &["IfNeeded", "Never"];
const MOST_CONDITIONS: usize = 64;

/// Warns of the name of an object that is reserved for those that the API server reads from files.
fn warn_of_name(name: &str, warnings: &mut Warnings) {
    if name.ends_with(".static.k8s.io") {
        let path = FieldPath::root("metadata");
        let text = r#"names ending with ".static.k8s.io" are reserved for static manifest-based configurations and cannot be managed via the API"#;
        warnings.about(&path.field("name"), text);
    }
}

/// Returns the problems of a label as of RFC 1035, for example a version.
pub(super) fn validate_dns_1035_label(label: &str) -> Vec<String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = label.as_bytes();
    let valid = bytes.first().is_some_and(u8::is_ascii_lowercase)
        && bytes.last().is_some_and(|last| plain(*last))
        && bytes.iter().all(|byte| plain(*byte) || *byte == b'-');
    let mut problems = Vec::new();
    if label.len() > 63 {
        problems.push("must be no more than 63 characters".into());
    }
    if !valid {
        problems.push("a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')".into());
    }
    problems
}

/// Validates conditions except for their expressions.
fn validate_conditions(
    conditions: &[MatchCondition],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    errors.at_most(path, conditions.len(), MOST_CONDITIONS);
    for (index, condition) in conditions.iter().enumerate() {
        let at = path.index(index);
        errors.not_empty(&at.field("expression"), condition.expression.trim());
        let check = names::validate_qualified_name;
        errors.check_required(&at.field("name"), &condition.name, check);
        let mut before = conditions[..index].iter();
        if !condition.name.is_empty() && before.any(|one| one.name == condition.name) {
            errors.duplicate(&at.field("name"), &condition.name);
        }
    }
}
