//! Warnings about the spec and the annotations of a Pod or of a template.

mod annotations;
mod container;
mod paths;
mod placement;
mod ports;
mod volumes;

use std::collections::BTreeSet;

use setpoint_proto::core::{Container, Pod, PodSpec, PodTemplateSpec};

use annotations::Annotated;

use crate::validation::field_path::FieldPath;
use crate::validation::warnings::{Warnings, warn_of_address, warn_of_addresses, warn_of_fraction};

/// Warns the creator of a Pod.
pub fn warn_of_pod(pod: &Pod, warnings: &mut Warnings) {
    let (metadata, spec) = (FieldPath::root("metadata"), &pod.spec);
    let is_windows = spec.os.as_ref().is_some_and(|os| os.name == "windows");
    let annotated = Annotated {
        annotations: &pod.metadata.annotations,
        has_app_armor: !is_windows,
        path: metadata.field("annotations"),
    };
    warn(spec, &annotated, &FieldPath::root("spec"), warnings);
}

/// Warns of a template.
pub fn warn_of_template(template: &PodTemplateSpec, path: &FieldPath<'_>, warnings: &mut Warnings) {
    let metadata = path.field("metadata");
    let annotated = Annotated {
        annotations: &template.metadata.annotations,
        has_app_armor: true,
        path: metadata.field("annotations"),
    };
    warn(&template.spec, &annotated, &path.field("spec"), warnings);
}

fn warn(spec: &PodSpec, annotated: &Annotated<'_>, path: &FieldPath<'_>, warnings: &mut Warnings) {
    placement::warn_of_nodes(spec, path, warnings);
    annotated.warn(warnings);
    volumes::warn(&spec.volumes, &path.field("volumes"), warnings);
    paths::warn(&spec.volumes, warnings);
    warn_of_repetitions(spec, path, warnings);
    let overhead = path.field("overhead");
    for resource in ["memory", "ephemeral-storage"] {
        warn_of_fraction(
            spec.overhead.get(resource),
            &overhead.key(resource),
            warnings,
        );
    }
    annotated.warn_of_pod_profile(spec, warnings);
    for_each_container(spec, path, |one, path| {
        annotated.warn_of_profiles(one, spec, warnings);
        container::warn(one, path, warnings);
    });
    ports::warn(spec, path, warnings);
    if spec
        .termination_grace_period_seconds
        .is_some_and(|seconds| seconds < 0)
    {
        let text = "must be >= 0; negative values are invalid and will be treated as 1";
        warnings.about(&path.field("terminationGracePeriodSeconds"), text);
    }
    placement::warn_of_pods(spec, path, warnings);
    warn_of_ips(spec, path, warnings);
}

/// Warns of entries of lists that are maps to clients that apply.
fn warn_of_repetitions(spec: &PodSpec, path: &FieldPath<'_>, warnings: &mut Warnings) {
    let (mut seen, aliases) = (BTreeSet::new(), path.field("hostAliases"));
    for (index, alias) in spec.host_aliases.iter().enumerate() {
        if !seen.insert(alias.ip.as_str()) {
            let text = format!("duplicate ip {:?}", alias.ip);
            warnings.about(&aliases.index(index).field("ip"), text);
        }
    }
    let (mut seen, secrets) = (BTreeSet::new(), path.field("imagePullSecrets"));
    for (index, secret) in spec.image_pull_secrets.iter().enumerate() {
        if !seen.insert(secret.name.as_str()) {
            let text = format!("duplicate name {:?}", secret.name);
            warnings.about(&secrets.index(index).field("name"), text);
        }
    }
    for (index, secret) in spec.image_pull_secrets.iter().enumerate() {
        if secret.name.is_empty() {
            let text = r#"invalid empty name """#;
            warnings.about(&secrets.index(index).field("name"), text);
        }
    }
}

fn warn_of_ips(spec: &PodSpec, path: &FieldPath<'_>, warnings: &mut Warnings) {
    if let Some(dns) = &spec.dns_config {
        let path = path.field("dnsConfig");
        warn_of_addresses(&dns.nameservers, &path.field("nameservers"), warnings);
    }
    let aliases = path.field("hostAliases");
    for (index, alias) in spec.host_aliases.iter().enumerate() {
        warn_of_address(&alias.ip, &aliases.index(index).field("ip"), warnings);
    }
}

/// Calls `visit` with each container that a new Pod or a template may have, and its path, in upstream's order.
fn for_each_container<'s>(
    spec: &'s PodSpec,
    path: &FieldPath<'_>,
    mut visit: impl FnMut(&'s Container, &FieldPath<'_>),
) {
    for (list, field) in [
        (&spec.init_containers, "initContainers"),
        (&spec.containers, "containers"),
    ] {
        let path = path.field(field);
        for (index, container) in list.iter().enumerate() {
            visit(container, &path.index(index));
        }
    }
}
