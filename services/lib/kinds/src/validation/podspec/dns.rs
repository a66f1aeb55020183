//! Validation of host names and DNS settings of a Pod.

use setpoint_model::names;
use setpoint_proto::core::{PodDnsConfig, PodSpec};

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::ip;

const POLICIES: &[&str] = &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const NAMESERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
const SEARCH_LIST_MAX: usize = 2048;
/// The longest host name on Linux.
const HOST_NAME_MAX: usize = 64;

/// Validates DNS policy and settings, host names and host aliases.
pub fn validate(spec: &PodSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    errors.one_of_or_empty(&path.field("dnsPolicy"), &spec.dns_policy, POLICIES);
    validate_config(spec, &path.field("dnsConfig"), errors);
    for (name, field) in [(&spec.hostname, "hostname"), (&spec.subdomain, "subdomain")] {
        if !name.is_empty() {
            errors.check(&path.field(field), name, names::validate_dns_label);
        }
    }
    validate_override(spec, &path.field("hostnameOverride"), errors);
    let aliases = path.field("hostAliases");
    for (index, alias) in spec.host_aliases.iter().enumerate() {
        let path = aliases.index(index);
        ip::validate(&alias.ip, &path.field("ip"), errors);
        let path = path.field("hostnames");
        for (index, name) in alias.hostnames.iter().enumerate() {
            errors.check(&path.index(index), name, names::validate_dns_subdomain);
        }
    }
}

fn validate_config(spec: &PodSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let none = spec.dns_policy == "None";
    match &spec.dns_config {
        None if none => {
            errors.required(path, "must provide `dnsConfig` when `dnsPolicy` is None");
        }
        None => {}
        Some(config) if none && config.nameservers.is_empty() => {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.required(&path.field("nameservers"), detail);
        }
        Some(config) => validate_resolution(config, path, errors),
    }
}

fn validate_resolution(config: &PodDnsConfig, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let (at, servers) = (path.field("nameservers"), &config.nameservers);
    if servers.len() > NAMESERVERS_MAX {
        let detail = format!("must not have more than {NAMESERVERS_MAX} nameservers");
        errors.invalid(&at, servers, detail);
    }
    for (index, server) in servers.iter().enumerate() {
        ip::validate(server, &at.index(index), errors);
    }
    validate_searches(&config.searches, &path.field("searches"), errors);
    let at = path.field("options");
    for (index, option) in config.options.iter().enumerate() {
        if option.name.is_empty() {
            errors.required(&at.index(index), "must not be empty");
        }
    }
}

fn validate_searches(searches: &[String], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if searches.len() > SEARCHES_MAX {
        let detail = format!("must not have more than {SEARCHES_MAX} search paths");
        errors.invalid(path, searches, detail);
    }
    if searches.join(" ").len() > SEARCH_LIST_MAX {
        let detail = format!(
            "must not have more than {SEARCH_LIST_MAX} characters (including spaces) in the search list"
        );
        errors.invalid(path, searches, detail);
    }
    for (index, search) in searches.iter().enumerate() {
        let name = search.strip_suffix('.').unwrap_or(search);
        if search != "." {
            errors.check(
                &path.index(index),
                name,
                names::validate_dns_subdomain_with_underscores,
            );
        }
    }
}

fn validate_override(spec: &PodSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let Some(name) = &spec.hostname_override else {
        return;
    };
    if spec.set_hostname_as_fqdn == Some(true) {
        errors.forbidden(path, "may not be specified when setHostnameAsFQDN is true");
    }
    if spec.host_network {
        errors.forbidden(path, "may not be specified when hostNetwork is true");
    }
    if name.len() > HOST_NAME_MAX {
        errors.too_long(path, HOST_NAME_MAX);
    }
    errors.check(path, name, names::validate_dns_subdomain);
}
