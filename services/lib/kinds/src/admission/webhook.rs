//! ValidatingWebhookConfiguration and MutatingWebhookConfiguration: webhooks that accept, reject or change requests.

use http::Uri;
use jiff::Timestamp;
use serde_json::Value;
use setpoint_model::names;
use setpoint_proto::admissionregistration::{
    MatchCondition, MutatingWebhookConfiguration, RuleWithOperations,
    ValidatingWebhookConfiguration, WebhookClientConfig,
};

use super::{
    FAILURE_POLICIES, MATCH_POLICIES, REINVOCATION_POLICIES, rule, validate_conditions,
    validate_dns_1035_label, warn_of_name,
};
use crate::StoredKind;
use crate::expressions::compile_conditions;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::label_selector;
use crate::validation::warnings::Warnings;

const SIDE_EFFECTS: &[&str] = &["None", "NoneOnDryRun"];
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const DEFAULT_TIMEOUT: i32 = 10;
const DEFAULT_PORT: i32 = 443;

/// The items of [`StoredKind`] of a configuration; its two kinds of webhooks differ in one field, the `$reinvocation`
/// policy.
macro_rules! configuration_items {
    ($($reinvocation:ident)?) => {
        const COUNTS_GENERATIONS: bool = true;
        const ALLOWS_UNCONDITIONAL_UPDATE: bool = false;

        fn fill_defaults(&mut self) {
            for hook in &mut self.webhooks {
                hook.failure_policy.get_or_insert_with(|| "Fail".into());
                hook.match_policy.get_or_insert_with(|| "Equivalent".into());
                hook.namespace_selector.get_or_insert_default();
                hook.object_selector.get_or_insert_default();
                hook.timeout_seconds.get_or_insert(DEFAULT_TIMEOUT);
                $(hook.$reinvocation.get_or_insert_with(|| "Never".into());)?
                hook.rules.iter_mut().for_each(rule::fill_defaults);
                if let Some(service) = &mut hook.client_config.service {
                    service.port.get_or_insert(DEFAULT_PORT);
                }
            }
        }

        fn intent_changed(&self, old: &Self) -> bool {
            self.webhooks != old.webhooks
        }

        fn validate(&self, errors: &mut FieldErrors) {
            let path = FieldPath::root("webhooks");
            for (index, hook) in self.webhooks.iter().enumerate() {
                let at = path.index(index);
                let mut before = self.webhooks[..index].iter();
                if !hook.name.is_empty() && before.any(|one| one.name == hook.name) {
                    errors.duplicate(&at.field("name"), &hook.name);
                }
                validate_name(&hook.name, &at.field("name"), errors);
                validate_rules(&hook.rules, &at.field("rules"), errors);
                let policy = hook.failure_policy.as_deref();
                errors.one_of(&at.field("failurePolicy"), policy, FAILURE_POLICIES);
                let policy = hook.match_policy.as_deref();
                errors.one_of(&at.field("matchPolicy"), policy, MATCH_POLICIES);
                $(
                    let policy = hook.$reinvocation.as_deref();
                    errors.one_of(&at.field("reinvocationPolicy"), policy, REINVOCATION_POLICIES);
                )?
                let effects = hook.side_effects.as_deref();
                validate_side_effects(effects, &at.field("sideEffects"), errors);
                validate_timeout(hook.timeout_seconds, &at.field("timeoutSeconds"), errors);
                let selector = hook.namespace_selector.as_ref();
                label_selector::validate(selector, &at.field("namespaceSelector"), errors);
                let selector = hook.object_selector.as_ref();
                label_selector::validate(selector, &at.field("objectSelector"), errors);
                validate_client(&hook.client_config, &at.field("clientConfig"), errors);
                let conditions = at.field("matchConditions");
                validate_conditions(&hook.match_conditions, &conditions, errors);
                validate_expressions(&hook.match_conditions, &conditions, errors);
                let versions = at.field("admissionReviewVersions");
                let missing = "must specify one of v1, v1beta1";
                validate_versions(&hook.admission_review_versions, missing, &versions, errors);
            }
        }

        fn warn(&self, _old: Option<&Self>, warnings: &mut Warnings) {
            warn_of_name(&self.metadata.name, warnings);
        }

        fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
            (column == "Webhooks").then(|| self.webhooks.len().into())
        }
    };
}

impl StoredKind for ValidatingWebhookConfiguration {
    configuration_items!();
}

impl StoredKind for MutatingWebhookConfiguration {
    configuration_items!(reinvocation_policy);
}

fn validate_name(name: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let problems = names::validate_dns_subdomain(name);
    if name.is_empty() {
        errors.required(path, "");
    } else if !problems.is_empty() {
        errors.invalid(path, name, problems.join(","));
    } else if name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        errors.invalid(path, name, detail);
    }
}

fn validate_rules(rules: &[RuleWithOperations], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (index, rule) in rules.iter().enumerate() {
        rule::validate(rule, &path.index(index), errors);
    }
}

/// Compiles the expressions of conditions. Those that are missing have their errors.
fn validate_expressions(
    conditions: &[MatchCondition],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let compiled = match compile_conditions(conditions) {
        Ok(compiled) => compiled,
        Err(error) => return errors.invalid(path, "", error),
    };
    for (index, (condition, compiled)) in conditions.iter().zip(compiled).enumerate() {
        let source = condition.expression.trim();
        if let Some(error) = compiled.err().filter(|_| !source.is_empty()) {
            errors.invalid(&path.index(index).field("expression"), source, error);
        }
    }
}

fn validate_side_effects(effects: Option<&str>, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    match effects {
        None => errors.required(path, "must specify one of None, NoneOnDryRun"),
        effects => errors.one_of(path, effects, SIDE_EFFECTS),
    }
}

fn validate_timeout(seconds: Option<i32>, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if let Some(seconds) = seconds
        && !(1..=30).contains(&seconds)
    {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.invalid(path, seconds, detail);
    }
}

fn validate_client(client: &WebhookClientConfig, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    match (&client.url, &client.service) {
        (Some(url), None) => validate_url(url, &path.field("url"), errors),
        (None, Some(service)) => {
            let service = Service {
                namespace: &service.namespace,
                name: &service.name,
                path: service.path.as_deref(),
                port: service.port,
            };
            validate_service(&service, &path.field("service"), errors);
        }
        _ => errors.required(path, "exactly one of url or service is required"),
    }
}

/// Requires a URL of https without user, query and fragment.
pub(crate) fn validate_url(url: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    const FORM: &str = "; desired format: https://host[/path]";
    let (whole, fragment) = url.split_once('#').unwrap_or((url, ""));
    let uri: Uri = match whole.parse() {
        Ok(uri) => uri,
        Err(error) => {
            return errors.required(path, &format!("url must be a valid URL: {error}{FORM}"));
        }
    };
    let scheme = uri.scheme_str().unwrap_or_default();
    if scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        errors.invalid(path, scheme, detail);
    }
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    if authority.is_empty() {
        errors.invalid(path, "", format!("host must be specified{FORM}"));
    }
    if let Some((user, _)) = authority.rsplit_once('@') {
        let detail = "user information is not permitted in the URL";
        errors.invalid(path, user, detail);
    }
    if !fragment.is_empty() {
        let detail = "fragments are not permitted in the URL";
        errors.invalid(path, fragment, detail);
    }
    if let Some(query) = uri.query().filter(|query| !query.is_empty()) {
        let detail = "query parameters are not permitted in the URL";
        errors.invalid(path, query, detail);
    }
}

/// The Service of a webhook.
pub struct Service<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
    pub path: Option<&'a str>,
    pub port: Option<i32>,
}

/// Requires a name, a namespace, and a valid port and path.
pub(crate) fn validate_service(
    service: &Service<'_>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    errors.not_empty(&path.field("name"), service.name);
    errors.not_empty(&path.field("namespace"), service.namespace);
    let port = service.port.unwrap_or(DEFAULT_PORT);
    if !(1..=65_535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.invalid(&path.field("port"), port, detail);
    }
    let (url, at) = (service.path.unwrap_or_default(), path.field("path"));
    if ["", "/"].contains(&url) {
        return;
    }
    if url == "//" {
        return errors.invalid(&at, url, "segment[0] may not be empty");
    }
    if !url.starts_with('/') {
        errors.invalid(&at, url, "must start with a '/'");
    }
    let inner = url.strip_prefix('/').unwrap_or(url);
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    for (index, segment) in inner.split('/').enumerate() {
        if segment.is_empty() {
            errors.invalid(&at, url, format!("segment[{index}] may not be empty"));
            continue;
        }
        for problem in names::validate_dns_subdomain(segment) {
            errors.invalid(&at, url, format!("segment[{index}]: {problem}"));
        }
    }
}

/// Requires versions of reviews, one of them known; `missing` is the detail of the error if there are none.
pub(crate) fn validate_versions(
    versions: &[String],
    missing: &str,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if versions.is_empty() {
        return errors.required(path, missing);
    }
    for (index, version) in versions.iter().enumerate() {
        if versions[..index].contains(version) {
            errors.invalid(&path.index(index), version, "duplicate version");
            continue;
        }
        errors.check(&path.index(index), version, validate_dns_1035_label);
    }
    let known = |version: &String| REVIEW_VERSIONS.contains(&version.as_str());
    if !versions.iter().any(known) {
        let detail = "must include at least one of v1, v1beta1";
        errors.invalid(path, versions, detail);
    }
}
