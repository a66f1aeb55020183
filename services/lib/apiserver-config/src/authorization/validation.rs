//! The validation of a document, in upstream's words (`apis/apiserver/validation`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use setpoint_cel::go;
use setpoint_kinds::validation::field_errors::FieldErrors;
use setpoint_kinds::validation::field_path::FieldPath;
use setpoint_model::names;

use super::document::{self, ConnectionInfo, Document};
use super::{Authorizer, Configuration, Kind, MatchConditions, Version, Webhook};

/// The types of authorizers.
const TYPES: [&str; 5] = ["AlwaysAllow", "AlwaysDeny", "Node", "RBAC", WEBHOOK];
/// The type that may be there more than once.
const WEBHOOK: &str = "Webhook";
/// The longest timeout.
const LONGEST: Duration = Duration::from_secs(30);
const AUTHORIZED_TTL: Duration = Duration::from_secs(5 * 60);
const UNAUTHORIZED_TTL: Duration = Duration::from_secs(30);

/// Validates a document, and compiles its expressions.
pub(super) fn configuration(document: &Document) -> Result<Configuration, String> {
    let (mut errors, root) = (FieldErrors::default(), FieldPath::root("authorizers"));
    if document.authorizers.is_empty() {
        errors.required(&root, "at least one authorization mode must be defined");
    }
    let (mut seen, mut authorizers) = (Seen::default(), Vec::new());
    for (index, one) in document.authorizers.iter().enumerate() {
        authorizers.extend(authorizer(one, &mut seen, &root.index(index), &mut errors));
    }
    match errors.count() {
        0 => Ok(Configuration { authorizers }),
        _ => Err(errors.to_string()),
    }
}

/// The types and names of the authorizers so far.
#[derive(Default)]
struct Seen<'d> {
    types: BTreeSet<&'d str>,
    names: BTreeSet<&'d str>,
}

fn authorizer<'d>(
    given: &'d document::Authorizer,
    seen: &mut Seen<'d>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) -> Option<Authorizer> {
    let (of_type, kind) = (path.field("type"), given.r#type.as_str());
    if kind.is_empty() {
        errors.required(&of_type, "");
        return None;
    }
    if !TYPES.contains(&kind) {
        errors.unsupported(&of_type, kind, &TYPES);
        return None;
    }
    if !seen.types.insert(kind) && kind != WEBHOOK {
        errors.duplicate(&of_type, kind);
        return None;
    }
    validate_name(&given.name, seen, &path.field("name"), errors);
    let at = path.field("webhook");
    let kind = match (kind, &given.webhook) {
        (WEBHOOK, Some(given)) => Kind::Webhook(Box::new(webhook(given, path, errors))),
        (WEBHOOK, None) => {
            errors.required(&at, "required when type=Webhook");
            return None;
        }
        (kind, given) => {
            if given.is_some() {
                errors.invalid(&at, "non-null", "may only be specified when type=Webhook");
            }
            match kind {
                "AlwaysAllow" => Kind::AlwaysAllow,
                "AlwaysDeny" => Kind::AlwaysDeny,
                "Node" => Kind::Node,
                _ => Kind::Rbac,
            }
        }
    };
    let name = given.name.clone();
    Some(Authorizer { name, kind })
}

fn validate_name<'d>(
    name: &'d str,
    seen: &mut Seen<'d>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let is_new = seen.names.insert(name);
    let wrong = names::validate_dns_subdomain(name);
    if name.is_empty() {
        errors.required(path, "");
    } else if !is_new {
        errors.duplicate(path, name);
    } else if !wrong.is_empty() {
        let detail = format!("authorizer name is invalid: {}", wrong.join(", "));
        errors.invalid(path, name, detail);
    }
}

/// Validates a webhook. As upstream, the paths of its fields are those of fields of its authorizer.
fn webhook(given: &document::Webhook, path: &FieldPath<'_>, errors: &mut FieldErrors) -> Webhook {
    let timeout = duration(&given.timeout, &path.field("timeout"), errors);
    let timeout = match timeout {
        None => {
            errors.required(&path.field("timeout"), "");
            LONGEST
        }
        Some(timeout) if timeout > LONGEST => {
            let detail = "must be > 0s and <= 30s";
            errors.invalid(&path.field("timeout"), &given.timeout, detail);
            LONGEST
        }
        Some(timeout) => timeout,
    };
    let authorized = duration(&given.authorized_ttl, &path.field("authorizedTTL"), errors);
    let unauthorized = duration(
        &given.unauthorized_ttl,
        &path.field("unauthorizedTTL"),
        errors,
    );
    let cached = |is_cached: Option<bool>, ttl: Option<Duration>, default: Duration| match is_cached
        .unwrap_or(true)
    {
        true => ttl.unwrap_or(default),
        false => Duration::ZERO,
    };
    let version = one_of(
        &given.subject_access_review_version,
        &["v1", "v1beta1"],
        &path.field("subjectAccessReviewVersion"),
        errors,
    );
    let of_conditions = &given.match_condition_subject_access_review_version;
    let at = path.field("matchConditionSubjectAccessReviewVersion");
    match of_conditions.as_str() {
        "" if !given.match_conditions.is_empty() => {
            errors.required(&at, "required if match conditions are specified");
        }
        given => errors.one_of_or_empty(&at, given, &["v1"]),
    }
    let policy = one_of(
        &given.failure_policy,
        &["NoOpinion", "Deny"],
        &path.field("failurePolicy"),
        errors,
    );
    Webhook {
        authorized_ttl: cached(given.cache_authorized_requests, authorized, AUTHORIZED_TTL),
        unauthorized_ttl: cached(
            given.cache_unauthorized_requests,
            unauthorized,
            UNAUTHORIZED_TTL,
        ),
        timeout,
        version: match version {
            "v1beta1" => Version::V1beta1,
            _ => Version::V1,
        },
        denies_on_failure: policy == "Deny",
        kubeconfig: connection(
            &given.connection_info,
            &path.field("connectionInfo"),
            errors,
        ),
        conditions: MatchConditions::compile(
            &given.match_conditions,
            &path.field("matchConditions"),
            errors,
        ),
    }
}

/// Requires one of some values.
fn one_of<'v>(
    value: &'v str,
    supported: &[&str],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) -> &'v str {
    match value {
        "" => errors.required(path, ""),
        value => errors.one_of(path, value, supported),
    }
    value
}

/// Reads a duration; `None` if it is not set or zero.
fn duration(text: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) -> Option<Duration> {
    if text.is_empty() {
        return None;
    }
    let Some(nanos) = go::duration(text) else {
        errors.invalid(path, text, format!("time: invalid duration {text:?}"));
        return Some(LONGEST);
    };
    match u64::try_from(nanos) {
        Ok(0) => None,
        Ok(nanos) => Some(Duration::from_nanos(nanos)),
        Err(_) => {
            errors.invalid(path, text, "must be > 0s");
            Some(LONGEST)
        }
    }
}

/// Validates how a webhook is reached. Whether its file can be read, its reader says.
fn connection(given: &ConnectionInfo, path: &FieldPath<'_>, errors: &mut FieldErrors) -> PathBuf {
    let (of_type, of_file) = (path.field("type"), path.field("kubeConfigFile"));
    let file = given.kube_config_file.clone().unwrap_or_default();
    match given.r#type.as_str() {
        "" => errors.required(&of_type, ""),
        "KubeConfigFile" if file.is_empty() => errors.required(&of_file, ""),
        "KubeConfigFile" if !Path::new(&file).is_absolute() => {
            errors.invalid(&of_file, &file, "must be an absolute path");
        }
        "KubeConfigFile" => {}
        "InClusterConfig" => {
            let detail = "InClusterConfig is not supported: the API server is no Pod";
            errors.forbidden(&of_type, detail);
        }
        other => errors.unsupported(&of_type, other, &["InClusterConfig", "KubeConfigFile"]),
    }
    file.into()
}

#[cfg(test)]
mod tests;
