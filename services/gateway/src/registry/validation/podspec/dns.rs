//! Names and addresses that a Pod has and knows.

use setpoint_model::names;
use setpoint_proto::core::{PodDnsConfig, PodSpec};

use crate::registry::validation::field_errors::Problems;
use crate::registry::validation::field_path::Path;
use crate::registry::validation::ip;

const POLICIES: &[&str] = &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const NAMESERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
const SEARCH_LIST_MAX: usize = 2048;
/// The longest name that a Linux host can have.
const HOST_NAME_MAX: usize = 64;

/// Finds what is wrong with the names of a Pod and with how it resolves others'.
pub fn validate(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    problems.one_of(&path.field("dnsPolicy"), &spec.dns_policy, POLICIES);
    validate_config(spec, &path.field("dnsConfig"), problems);
    for (name, field) in [(&spec.hostname, "hostname"), (&spec.subdomain, "subdomain")] {
        if !name.is_empty() {
            problems.all_invalid(&path.field(field), name, names::validate_dns_label(name));
        }
    }
    validate_override(spec, &path.field("hostnameOverride"), problems);
    let aliases = path.field("hostAliases");
    for (index, alias) in spec.host_aliases.iter().enumerate() {
        let path = aliases.index(index);
        ip::validate(&alias.ip, &path.field("ip"), problems);
        let path = path.field("hostnames");
        for (index, name) in alias.hostnames.iter().enumerate() {
            let wrong = names::validate_dns_subdomain(name);
            problems.all_invalid(&path.index(index), name, wrong);
        }
    }
}

fn validate_config(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    let none = spec.dns_policy == "None";
    match &spec.dns_config {
        None if none => {
            problems.required(path, "must provide `dnsConfig` when `dnsPolicy` is None");
        }
        None => {}
        Some(config) if none && config.nameservers.is_empty() => {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            problems.required(&path.field("nameservers"), detail);
        }
        Some(config) => validate_resolution(config, path, problems),
    }
}

fn validate_resolution(config: &PodDnsConfig, path: &Path<'_>, problems: &mut Problems) {
    let (at, servers) = (path.field("nameservers"), &config.nameservers);
    if servers.len() > NAMESERVERS_MAX {
        let detail = format!("must not have more than {NAMESERVERS_MAX} nameservers");
        problems.invalid(&at, servers, detail);
    }
    for (index, server) in servers.iter().enumerate() {
        ip::validate(server, &at.index(index), problems);
    }
    validate_searches(&config.searches, &path.field("searches"), problems);
    let at = path.field("options");
    for (index, option) in config.options.iter().enumerate() {
        if option.name.is_empty() {
            problems.required(&at.index(index), "must not be empty");
        }
    }
}

fn validate_searches(searches: &[String], path: &Path<'_>, problems: &mut Problems) {
    if searches.len() > SEARCHES_MAX {
        let detail = format!("must not have more than {SEARCHES_MAX} search paths");
        problems.invalid(path, searches, detail);
    }
    if searches.join(" ").len() > SEARCH_LIST_MAX {
        let detail = format!(
            "must not have more than {SEARCH_LIST_MAX} characters (including spaces) in the search list"
        );
        problems.invalid(path, searches, detail);
    }
    for (index, search) in searches.iter().enumerate() {
        let name = search.strip_suffix('.').unwrap_or(search);
        if search != "." {
            let wrong = names::validate_dns_subdomain_with_underscores(name);
            problems.all_invalid(&path.index(index), name, wrong);
        }
    }
}

fn validate_override(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    let Some(name) = &spec.hostname_override else {
        return;
    };
    if spec.set_hostname_as_fqdn == Some(true) {
        problems.forbidden(path, "may not be specified when setHostnameAsFQDN is true");
    }
    if spec.host_network {
        problems.forbidden(path, "may not be specified when hostNetwork is true");
    }
    if name.len() > HOST_NAME_MAX {
        problems.too_long(path, HOST_NAME_MAX);
    }
    problems.all_invalid(path, name, names::validate_dns_subdomain(name));
}
