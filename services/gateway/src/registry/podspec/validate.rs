//! What a Pod's spec must say and must not.

use std::collections::BTreeSet;

use setpoint_model::names;
use setpoint_proto::core::PodSpec;

use super::{container, scheduling, volume};
use crate::registry::metadata;
use crate::registry::path::Path;
use crate::registry::problems::Problems;

const RESTART: &[&str] = &["Always", "OnFailure", "Never"];
const DNS: &[&str] = &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];

/// Finds what is wrong with a spec that has its defaults.
pub fn validate(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    let volumes = volume::validate(&spec.volumes, &path.field("volumes"), problems);
    validate_containers(spec, &volumes, path, problems);
    validate_policies(spec, path, problems);
    validate_names(spec, path, problems);
    validate_times(spec, path, problems);
    scheduling::validate(spec, path, problems);
}

fn validate_containers(
    spec: &PodSpec,
    volumes: &BTreeSet<&str>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    if spec.containers.is_empty() {
        problems.required(&path.field("containers"), "");
    }
    let mut seen = BTreeSet::new();
    for (list, name) in [
        (&spec.init_containers, "initContainers"),
        (&spec.containers, "containers"),
    ] {
        let list_path = path.field(name);
        for (index, one) in list.iter().enumerate() {
            let path = list_path.index(index);
            container::validate(one, volumes, &path, problems);
            if !one.name.is_empty() && !seen.insert(one.name.as_str()) {
                problems.duplicate(&path.field("name"), &one.name);
            }
        }
    }
}

fn validate_policies(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    problems.one_of(&path.field("restartPolicy"), &spec.restart_policy, RESTART);
    problems.one_of(&path.field("dnsPolicy"), &spec.dns_policy, DNS);
    if let Some(context) = &spec.security_context {
        let path = path.field("securityContext");
        for (id, name) in [
            (context.run_as_user, "runAsUser"),
            (context.run_as_group, "runAsGroup"),
            (context.fs_group, "fsGroup"),
        ] {
            container::validate_id(id, &path.field(name), problems);
        }
    }
}

fn validate_names(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    let mut check = |name: &str, field: &'static str, rule: fn(&str) -> Vec<String>| {
        if !name.is_empty() {
            problems.all_invalid(&path.field(field), name, rule(name));
        }
    };
    check(&spec.node_name, "nodeName", names::validate_dns_subdomain);
    check(
        &spec.service_account_name,
        "serviceAccountName",
        names::validate_dns_subdomain,
    );
    check(&spec.hostname, "hostname", names::validate_dns_label);
    check(&spec.subdomain, "subdomain", names::validate_dns_label);
    check(
        &spec.priority_class_name,
        "priorityClassName",
        names::validate_dns_subdomain,
    );
    check(
        &spec.scheduler_name,
        "schedulerName",
        names::validate_qualified_name,
    );
    metadata::validate_labels(&spec.node_selector, &path.field("nodeSelector"), problems);
}

fn validate_times(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    if let Some(deadline) = spec.active_deadline_seconds
        && !(1..=i64::from(i32::MAX)).contains(&deadline)
    {
        let at = path.field("activeDeadlineSeconds");
        problems.invalid(&at, deadline, "must be between 1 and 2147483647, inclusive");
    }
    if let Some(grace) = spec.termination_grace_period_seconds {
        problems.non_negative(&path.field("terminationGracePeriodSeconds"), grace);
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::Container;

    use super::*;

    fn complaints(change: impl FnOnce(&mut PodSpec)) -> String {
        let container = |name: &str| Container {
            name: name.into(),
            image: "nginx".into(),
            ..Default::default()
        };
        let mut spec = PodSpec {
            containers: vec![container("web"), container("log")],
            ..Default::default()
        };
        change(&mut spec);
        super::super::fill_defaults(&mut spec);
        let mut problems = Problems::default();
        validate(&spec, &Path::root("spec"), &mut problems);
        problems.to_string()
    }

    #[test]
    fn a_plain_spec_is_right() {
        assert_eq!(complaints(|_| {}), "[]");
    }

    #[test]
    fn there_must_be_containers_with_names_of_their_own() {
        let complaint = complaints(|spec| spec.containers.clear());
        assert_eq!(complaint, "spec.containers: Required value");
        let complaint = complaints(|spec| spec.containers[1].name = "web".into());
        assert_eq!(
            complaint,
            r#"spec.containers[1].name: Duplicate value: "web""#
        );
        let complaint = complaints(|spec| spec.containers[0].name = "Web".into());
        assert!(complaint.starts_with(
            r#"spec.containers[0].name: Invalid value: "Web": a lowercase RFC 1123 label"#
        ));
        let complaint = complaints(|spec| spec.containers[0].image.clear());
        assert_eq!(complaint, "spec.containers[0].image: Required value");
    }

    #[test]
    fn policies_are_a_few_words() {
        let complaint = complaints(|spec| spec.restart_policy = "Sometimes".into());
        assert_eq!(
            complaint,
            r#"spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never""#
        );
    }

    #[test]
    fn times_are_not_negative() {
        assert!(
            complaints(|spec| spec.active_deadline_seconds = Some(0))
                .contains("between 1 and 2147483647")
        );
        assert!(
            complaints(|spec| spec.termination_grace_period_seconds = Some(-1))
                .contains("greater than or equal to 0")
        );
    }

    #[test]
    fn names_are_checked() {
        assert!(
            complaints(|spec| spec.node_name = "Node_1".into())
                .starts_with("spec.nodeName: Invalid value")
        );
        assert!(
            complaints(|spec| spec.hostname = "a.b".into())
                .starts_with("spec.hostname: Invalid value")
        );
    }
}
