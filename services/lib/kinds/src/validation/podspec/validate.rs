//! Validation of the spec of a Pod.

use std::collections::{BTreeMap, BTreeSet};

use setpoint_model::names;
use setpoint_model::pod::is_sidecar;
use setpoint_proto::core::{
    Container, Pod, PodResourceClaim, PodSpec, ResourceRequirements, VolumeSource,
};

use super::container::{self, PodContext};
use super::{
    annotations, dns, ephemeral, resources, scheduling, security, system, volume, windows,
};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::metadata;

const RESTART_POLICIES: &[&str] = &["Always", "OnFailure", "Never"];
const PREEMPTION_POLICIES: &[&str] = &["PreemptLowerPriority", "Never"];
const SYSTEMS: &[&str] = &["linux", "windows"];

/// Validates a Pod.
pub fn validate_pod(pod: &Pod, errors: &mut FieldErrors) {
    let (meta, path, spec) = (
        FieldPath::root("metadata"),
        FieldPath::root("spec"),
        &pod.spec,
    );
    let at = meta.field("annotations");
    annotations::validate(&pod.metadata.annotations, spec, &at, errors);
    if pod.metadata.annotations.contains_key(annotations::MIRROR) {
        for _ in &spec.resource_claims {
            let detail = "static pods do not support resource claims";
            errors.forbidden(&FieldPath::root(""), detail);
        }
    }
    validate_spec(spec, Some(&pod.metadata.name), &path, errors);
    for_each_container(spec, &path, |container, _, path| {
        validate_image(container, path, errors);
    });
    validate_tokens(spec, &path.field("volumes"), errors);
    let images = spec
        .volumes
        .iter()
        .map(|volume| &volume.volume_source.image);
    for (index, image) in images.enumerate() {
        if image
            .as_ref()
            .is_some_and(|image| image.reference.is_empty())
        {
            let path = path.field("volumes");
            let path = path.index(index);
            errors.required(&path.field("image").field("reference"), "");
        }
    }
}

/// Validates the image of a container. Those of templates are validated when Pods are created.
pub fn validate_image(container: &Container, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if container.image.trim() != container.image {
        let detail = "must not have leading or trailing whitespace";
        errors.invalid(&path.field("image"), &container.image, detail);
    }
}

/// Forbids projected service account tokens without a service account.
fn validate_tokens(spec: &PodSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if !spec.service_account_name.is_empty() {
        return;
    }
    for (index, volume) in spec.volumes.iter().enumerate() {
        let path = path.index(index);
        let path = path.field("projected");
        let path = path.field("sources");
        let projected = volume.volume_source.projected.iter();
        let sources = projected.flat_map(|projected| &projected.sources);
        for (index, source) in sources.enumerate() {
            if source.service_account_token.is_some() {
                let path = path.index(index);
                let detail = "must not be specified when serviceAccountName is not set";
                errors.forbidden(&path.field("serviceAccountToken"), detail);
            }
        }
    }
}

/// Validates the spec of a template.
pub fn validate(spec: &PodSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    validate_spec(spec, None, path, errors);
}

/// Validates the spec of the Pod `pod`; `None` for a template.
fn validate_spec(
    spec: &PodSpec,
    pod: Option<&str>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let volumes = volume::validate(&spec.volumes, pod, &path.field("volumes"), errors);
    let claims = validate_claims(&spec.resource_claims, &path.field("resourceClaims"), errors);
    let pod_context = PodContext {
        spec,
        volumes: &volumes,
        claims: &claims,
    };
    validate_containers(&pod_context, path, errors);
    let ephemeral = path.field("ephemeralContainers");
    ephemeral::validate(&pod_context, &ephemeral, errors);
    validate_host_ports(spec, path, errors);
    validate_file_variables(spec, &volumes, path, errors);
    validate_policies(spec, path, errors);
    security::validate_pod(spec, path, errors);
    windows::validate_host_processes(spec, path, errors);
    system::validate(spec, path, errors);
    dns::validate(spec, path, errors);
    validate_names(spec, path, errors);
    validate_deadline(spec, &path.field("activeDeadlineSeconds"), errors);
    validate_amounts(spec, path, errors);
    scheduling::validate(spec, path, errors);
}

/// Calls `visit` with each container, the field name of its list, and its path.
pub fn for_each_container<'s>(
    spec: &'s PodSpec,
    path: &FieldPath<'_>,
    mut visit: impl FnMut(&'s Container, &'static str, &FieldPath<'_>),
) {
    let lists = [
        (&spec.containers, "containers"),
        (&spec.init_containers, "initContainers"),
    ];
    for (list, field) in lists {
        let path = path.field(field);
        for (index, container) in list.iter().enumerate() {
            visit(container, field, &path.index(index));
        }
    }
}

fn validate_containers(
    pod_context: &PodContext<'_>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let spec = pod_context.spec;
    if spec.containers.is_empty() {
        errors.required(&path.field("containers"), "");
    }
    let mut seen = BTreeSet::new();
    for_each_container(spec, path, |one, field, path| {
        container::validate(one, pod_context, path, errors);
        if !seen.insert(one.name.as_str()) && !one.name.is_empty() {
            errors.duplicate(&path.field("name"), &one.name);
        }
        let restartable = field == "containers" || is_sidecar(one);
        match restartable {
            true => container::validate_lifecycle_and_probes(one, spec, path, errors),
            false => container::forbid_lifecycle_and_probes(one, path, errors),
        }
    });
}

/// Validates that host ports are unique. Init containers run one after another, so they may have the same ones.
fn validate_host_ports(spec: &PodSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let mut taken = BTreeSet::new();
    for_each_container(spec, path, |container, field, path| {
        if field == "initContainers" {
            taken.clear();
        }
        let path = path.field("ports");
        for (index, port) in container.ports.iter().enumerate() {
            let path = path.index(index);
            let at = path.field("hostPort");
            let address = (&port.protocol, &port.host_ip, port.host_port);
            if port.host_port != 0 && !taken.insert(address) {
                let address = format!("{}/{}/{}", address.0, address.1, address.2);
                errors.duplicate(&at, address);
            }
            let differs = ![0, port.container_port].contains(&port.host_port);
            if spec.host_network && field == "containers" && differs {
                let detail = "must match `containerPort` when `hostNetwork` is true";
                errors.invalid(&at, port.host_port, detail);
            }
        }
    });
}

/// Validates that variables from files name an `emptyDir` volume.
fn validate_file_variables(
    spec: &PodSpec,
    volumes: &BTreeMap<&str, &VolumeSource>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    for_each_container(spec, path, |container, _, path| {
        let path = path.field("env");
        for (index, variable) in container.env.iter().enumerate() {
            let source = variable.value_from.as_ref();
            let Some(file) = source.and_then(|source| source.file_key_ref.as_ref()) else {
                continue;
            };
            let path = path.index(index);
            let path = path.field("valueFrom");
            let path = path.field("fileKeyRef");
            let (at, name) = (path.field("volumeName"), file.volume_name.as_str());
            match volumes.get(name) {
                None => errors.not_found(&at, name),
                Some(source) if source.empty_dir.is_none() => {
                    errors.invalid(&at, name, "referenced volume must be of type emptyDir");
                }
                Some(_) => {}
            }
        }
    });
}

fn validate_claims<'c>(
    claims: &'c [PodResourceClaim],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) -> BTreeSet<&'c str> {
    let mut seen = BTreeSet::new();
    for (index, claim) in claims.iter().enumerate() {
        let path = path.index(index);
        let (at, name) = (path.field("name"), claim.name.as_str());
        if name.is_empty() {
            errors.required(&at, "");
        } else if !seen.insert(name) {
            errors.duplicate(&at, name);
        } else {
            errors.check(&at, name, names::validate_dns_label);
        }
        let given = (
            &claim.resource_claim_name,
            &claim.resource_claim_template_name,
        );
        match given {
            (Some(_), Some(_)) => {
                let detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified";
                errors.invalid(&path, claim, detail);
            }
            (None, None) => {
                let detail =
                    "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
                errors.invalid(&path, claim, detail);
            }
            _ => {}
        }
        for (name, field) in [
            (given.0, "resourceClaimName"),
            (given.1, "resourceClaimTemplateName"),
        ] {
            if let Some(name) = name {
                errors.check(&path.field(field), name, names::validate_dns_subdomain);
            }
        }
    }
    seen
}

fn validate_policies(spec: &PodSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    errors.one_of_or_empty(
        &path.field("restartPolicy"),
        &spec.restart_policy,
        RESTART_POLICIES,
    );
    match spec.preemption_policy.as_deref() {
        Some("") => errors.required(&path.field("preemptionPolicy"), ""),
        policy => errors.one_of(&path.field("preemptionPolicy"), policy, PREEMPTION_POLICIES),
    }
    let at = path.field("os");
    match spec.os.as_ref().map(|os| os.name.as_str()) {
        Some("") => errors.required(&at.field("name"), ""),
        name => errors.one_of(&at, name, SYSTEMS),
    }
    let gates = path.field("readinessGates");
    for (index, gate) in spec.readiness_gates.iter().enumerate() {
        let path = gates.index(index);
        errors.check(
            &path.field("conditionType"),
            &gate.condition_type,
            names::validate_qualified_name,
        );
    }
}

fn validate_names(spec: &PodSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (name, field) in [
        (&spec.node_name, "nodeName"),
        (&spec.service_account_name, "serviceAccountName"),
        (&spec.priority_class_name, "priorityClassName"),
    ] {
        if !name.is_empty() {
            errors.check(&path.field(field), name, names::validate_dns_subdomain);
        }
    }
    if let Some(name) = &spec.runtime_class_name {
        errors.check(
            &path.field("runtimeClassName"),
            name,
            names::validate_dns_subdomain,
        );
    }
    metadata::validate_labels(&spec.node_selector, &path.field("nodeSelector"), errors);
}

fn validate_deadline(spec: &PodSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if let Some(deadline) = spec.active_deadline_seconds
        && !(1..=i64::from(i32::MAX)).contains(&deadline)
    {
        errors.invalid(
            path,
            deadline,
            "must be between 1 and 2147483647, inclusive",
        );
    }
}

fn validate_amounts(spec: &PodSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let overhead = ResourceRequirements {
        limits: spec.overhead.clone(),
        ..Default::default()
    };
    resources::validate(&overhead, &path.field("overhead"), errors);
    if let Some(resources) = &spec.resources {
        resources::validate_of_pod(resources, spec, &path.field("resources"), errors);
    }
}
