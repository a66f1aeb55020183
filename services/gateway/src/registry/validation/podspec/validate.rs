//! Validates a Pod's spec.

use std::collections::{BTreeMap, BTreeSet};

use setpoint_model::names;
use setpoint_proto::core::{
    Container, Pod, PodResourceClaim, PodSpec, ResourceRequirements, VolumeSource,
};

use super::container::{self, Surroundings};
use super::{annotations, dns, resources, scheduling, security, system, volume, windows};
use crate::registry::validation::field_errors::FieldErrors;
use crate::registry::validation::field_path::FieldPath;
use crate::registry::validation::metadata;

const RESTART: &[&str] = &["Always", "OnFailure", "Never"];
const PREEMPT: &[&str] = &["PreemptLowerPriority", "Never"];
const SYSTEMS: &[&str] = &["linux", "windows"];

/// Finds what is wrong with a Pod that is no template.
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
    for (list, field) in lists(spec) {
        let path = path.field(field);
        for (index, container) in list.iter().enumerate() {
            validate_image(container, &path.index(index), errors);
        }
    }
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

/// The images of templates are looked at when Pods are made of them.
fn validate_image(container: &Container, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if container.image.trim() != container.image {
        let detail = "must not have leading or trailing whitespace";
        errors.invalid(&path.field("image"), &container.image, detail);
    }
}

/// A token is an account's.
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

/// Finds what is wrong with a template's spec that has its defaults.
pub fn validate(spec: &PodSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    validate_spec(spec, None, path, errors);
}

/// Finds what is wrong with the spec of the Pod `pod`, or of a template.
fn validate_spec(
    spec: &PodSpec,
    pod: Option<&str>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let volumes = volume::validate(&spec.volumes, pod, &path.field("volumes"), errors);
    let claims = validate_claims(&spec.resource_claims, &path.field("resourceClaims"), errors);
    let around = Surroundings {
        spec,
        volumes: &volumes,
        claims: &claims,
    };
    validate_containers(&around, path, errors);
    validate_host_ports(spec, path, errors);
    validate_files(spec, &volumes, path, errors);
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

/// Both lists of containers.
pub fn lists(spec: &PodSpec) -> [(&[Container], &'static str); 2] {
    [
        (&spec.containers, "containers"),
        (&spec.init_containers, "initContainers"),
    ]
}

fn validate_containers(around: &Surroundings<'_>, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let spec = around.spec;
    if spec.containers.is_empty() {
        errors.required(&path.field("containers"), "");
    }
    let mut seen = BTreeSet::new();
    for (list, field) in lists(spec) {
        let path = path.field(field);
        for (index, one) in list.iter().enumerate() {
            let path = path.index(index);
            container::validate(one, around, &path, errors);
            if !seen.insert(one.name.as_str()) && !one.name.is_empty() {
                errors.duplicate(&path.field("name"), &one.name);
            }
            let goes_on = field == "containers" || one.restart_policy.as_deref() == Some("Always");
            match goes_on {
                true => container::validate_life(one, spec, &path, errors),
                false => container::forbid_life(one, &path, errors),
            }
        }
    }
}

/// A port of the node leads to one port of one container. Containers that run one after another may share one.
fn validate_host_ports(spec: &PodSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let mut taken = BTreeSet::new();
    for (list, field) in lists(spec) {
        let path = path.field(field);
        for (index, container) in list.iter().enumerate() {
            if field == "initContainers" {
                taken.clear();
            }
            let path = path.index(index);
            let path = path.field("ports");
            for (index, port) in container.ports.iter().enumerate() {
                let path = path.index(index);
                let at = path.field("hostPort");
                let place = (&port.protocol, &port.host_ip, port.host_port);
                if port.host_port != 0 && !taken.insert(place) {
                    let place = format!("{}/{}/{}", place.0, place.1, place.2);
                    errors.duplicate(&at, place);
                }
                let leads_elsewhere = ![0, port.container_port].contains(&port.host_port);
                if spec.host_network && field == "containers" && leads_elsewhere {
                    let detail = "must match `containerPort` when `hostNetwork` is true";
                    errors.invalid(&at, port.host_port, detail);
                }
            }
        }
    }
}

/// Variables that stand in files of a volume name an empty one, which another container fills.
fn validate_files(
    spec: &PodSpec,
    volumes: &BTreeMap<&str, &VolumeSource>,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    for (list, field) in lists(spec) {
        let path = path.field(field);
        for (index, container) in list.iter().enumerate() {
            let path = path.index(index);
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
        }
    }
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
            errors.all_invalid(&at, name, names::validate_dns_label(name));
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
                let wrong = names::validate_dns_subdomain(name);
                errors.all_invalid(&path.field(field), name, wrong);
            }
        }
    }
    seen
}

fn validate_policies(spec: &PodSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    errors.one_of(&path.field("restartPolicy"), &spec.restart_policy, RESTART);
    match spec.preemption_policy.as_deref() {
        Some("") => errors.required(&path.field("preemptionPolicy"), ""),
        policy => errors.one_of_if_given(&path.field("preemptionPolicy"), policy, PREEMPT),
    }
    let at = path.field("os");
    match spec.os.as_ref().map(|os| os.name.as_str()) {
        Some("") => errors.required(&at.field("name"), ""),
        name => errors.one_of_if_given(&at, name, SYSTEMS),
    }
    let gates = path.field("readinessGates");
    for (index, gate) in spec.readiness_gates.iter().enumerate() {
        let path = gates.index(index);
        let wrong = names::validate_qualified_name(&gate.condition_type);
        errors.all_invalid(&path.field("conditionType"), &gate.condition_type, wrong);
    }
}

fn validate_names(spec: &PodSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (name, field) in [
        (&spec.node_name, "nodeName"),
        (&spec.service_account_name, "serviceAccountName"),
        (&spec.priority_class_name, "priorityClassName"),
    ] {
        if !name.is_empty() {
            errors.all_invalid(
                &path.field(field),
                name,
                names::validate_dns_subdomain(name),
            );
        }
    }
    if let Some(name) = &spec.runtime_class_name {
        let wrong = names::validate_dns_subdomain(name);
        errors.all_invalid(&path.field("runtimeClassName"), name, wrong);
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
