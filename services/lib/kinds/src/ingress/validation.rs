//! Validation of the rules, backends and hosts of an Ingress.

use setpoint_model::names;
use setpoint_proto::core::TypedLocalObjectReference;
use setpoint_proto::networking::{
    HttpIngressPath, IngressBackend, IngressRule, IngressServiceBackend, IngressSpec,
    IngressStatus, IngressTls,
};

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::ip;
use crate::validation::podspec::{check_port_name, validate_port};

const PATH_TYPES: &[&str] = &["Exact", "ImplementationSpecific", "Prefix"];
const FORBIDDEN_IN_PATHS: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
const FORBIDDEN_ENDS_OF_PATHS: [&str; 2] = ["/..", "/."];
const WILDCARD: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// Validates the spec. If a name of a Secret in `old` is invalid, the names of Secrets are not validated.
pub(super) fn validate(spec: &IngressSpec, old: Option<&IngressSpec>, errors: &mut FieldErrors) {
    let path = FieldPath::root("spec");
    if spec.rules.is_empty() && spec.default_backend.is_none() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.invalid(&path, &spec.rules, detail);
    }
    if let Some(backend) = &spec.default_backend {
        validate_backend(backend, &path.field("defaultBackend"), errors);
    }
    let at = path.field("rules");
    for (index, rule) in spec.rules.iter().enumerate() {
        validate_rule(rule, &at.index(index), errors);
    }
    let has_invalid_names = old.is_some_and(|old| {
        let mut all = old.tls.iter();
        all.any(|tls| !secret_problems(&tls.secret_name).is_empty())
    });
    let at = path.field("tls");
    for (index, tls) in spec.tls.iter().enumerate() {
        validate_tls(tls, !has_invalid_names, &at.index(index), errors);
    }
    if let Some(class) = &spec.ingress_class_name {
        let at = path.field("ingressClassName");
        errors.check(&at, class, names::validate_dns_subdomain);
    }
}

/// Validates a change of the status. Addresses of `old` are not validated again.
pub(super) fn validate_status(new: &IngressStatus, old: &IngressStatus, errors: &mut FieldErrors) {
    let path = FieldPath::root("status");
    let path = path.field("loadBalancer");
    let path = path.field("ingress");
    let known = |ip: &str| old.load_balancer.ingress.iter().any(|one| one.ip == ip);
    for (index, one) in new.load_balancer.ingress.iter().enumerate() {
        let path = path.index(index);
        if !one.ip.is_empty() && !known(&one.ip) {
            ip::validate(&one.ip, &path.field("ip"), errors);
        }
        if one.hostname.is_empty() {
            continue;
        }
        let at = path.field("hostname");
        errors.check(&at, &one.hostname, names::validate_dns_subdomain);
        if ip::parse(&one.hostname).is_some() {
            let detail = "must be a DNS name, not an IP address";
            errors.invalid(&at, &one.hostname, detail);
        }
    }
}

fn secret_problems(name: &str) -> Vec<String> {
    match name {
        "" => Vec::new(),
        name => names::validate_dns_subdomain(name),
    }
}

fn validate_tls(
    tls: &IngressTls,
    with_secret: bool,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("hosts");
    for (index, host) in tls.hosts.iter().enumerate() {
        errors.check(&at.index(index), host, check_host);
    }
    if with_secret {
        errors.check(&path.field("secretName"), &tls.secret_name, secret_problems);
    }
}

/// Returns the problems of a host, which may start with a wildcard.
fn check_host(host: &str) -> Vec<String> {
    if !host.contains('*') {
        return names::validate_dns_subdomain(host);
    }
    let rest = host.strip_prefix("*.").map(names::validate_dns_subdomain);
    match rest.is_some_and(|problems| problems.is_empty()) {
        true => Vec::new(),
        false => vec![WILDCARD.to_owned()],
    }
}

fn validate_rule(rule: &IngressRule, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let at = path.field("host");
    if !rule.host.is_empty() {
        if ip::parse(&rule.host).is_some() {
            errors.invalid(&at, &rule.host, "must be a DNS name, not an IP address");
        }
        errors.check(&at, &rule.host, check_host);
    }
    let Some(http) = &rule.ingress_rule_value.http else {
        return;
    };
    let path = path.field("http");
    let path = path.field("paths");
    if http.paths.is_empty() {
        errors.required(&path, "");
    }
    for (index, one) in http.paths.iter().enumerate() {
        validate_path(one, &path.index(index), errors);
    }
}

fn validate_path(path: &HttpIngressPath, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    let (text, of) = (path.path.as_str(), at.field("path"));
    let Some(path_type) = path.path_type.as_deref() else {
        return errors.required(&at.field("pathType"), "pathType must be specified");
    };
    errors.one_of(&at.field("pathType"), path_type, PATH_TYPES);
    let is_exact = ["Exact", "Prefix"].contains(&path_type);
    let may_be_empty = !is_exact && text.is_empty();
    if PATH_TYPES.contains(&path_type) && !text.starts_with('/') && !may_be_empty {
        errors.invalid(&of, text, "must be an absolute path");
    }
    if is_exact {
        for part in FORBIDDEN_IN_PATHS
            .iter()
            .filter(|part| text.contains(**part))
        {
            errors.invalid(&of, text, format!("must not contain '{part}'"));
        }
        for end in FORBIDDEN_ENDS_OF_PATHS
            .iter()
            .filter(|end| text.ends_with(**end))
        {
            errors.invalid(&of, text, format!("cannot end with '{end}'"));
        }
    }
    validate_backend(&path.backend, &at.field("backend"), errors);
}

fn validate_backend(backend: &IngressBackend, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    match (&backend.resource, &backend.service) {
        (Some(_), Some(_)) => {
            errors.invalid(path, "", "cannot set both resource and service backends");
        }
        (Some(resource), None) => validate_resource(resource, &path.field("resource"), errors),
        (None, Some(service)) => validate_service(service, path, errors),
        (None, None) => errors.invalid(path, "", "resource or service backend is required"),
    }
}

fn validate_resource(
    resource: &TypedLocalObjectReference,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    if let Some(group) = &resource.api_group {
        errors.check(
            &path.field("apiGroup"),
            group,
            names::validate_dns_subdomain,
        );
    }
    let check = names::validate_path_segment;
    errors.check_required(&path.field("kind"), &resource.kind, check);
    errors.check_required(&path.field("name"), &resource.name, check);
}

fn validate_service(
    service: &IngressServiceBackend,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("service");
    let name = service.name.as_str();
    errors.check_required(&at.field("name"), name, names::validate_dns_label);
    let (at, port) = (at.field("port"), &service.port);
    match (port.name.as_str(), port.number) {
        ("", 0) => errors.required(path, "port name or number is required"),
        ("", number) => validate_port(number, &at.field("number"), errors),
        (name, 0) => errors.check(&at.field("name"), name, check_port_name),
        _ => errors.invalid(path, "", "cannot set both port name & port number"),
    }
}
