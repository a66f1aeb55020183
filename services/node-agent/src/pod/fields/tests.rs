use std::collections::BTreeSet;

use prost_reflect::DescriptorPool;
use setpoint_proto::core::{
    Capabilities, PodDnsConfig, PodSecurityContext, SeccompProfile, SecurityContext, VolumeMount,
};

use super::*;

fn named<T>(rows: &[Row<T>]) -> BTreeSet<&'static str> {
    let end = |name: &'static str| name.split(['.', '[']).next().unwrap_or(name);
    rows.iter().map(|row| end(row.name)).collect()
}

/// Checks F7: a field that is added to the API has to be classified.
#[test]
fn every_field_of_a_pod_has_a_row_and_every_row_a_field() {
    let pool = DescriptorPool::decode(setpoint_proto::DESCRIPTORS).unwrap();
    let of_pods = named(security::POD)
        .union(&named(&security::shared::<PodSecurityContext>()))
        .copied()
        .collect();
    let of_containers = named(security::CONTAINER)
        .union(&named(&security::shared::<SecurityContext>()))
        .copied()
        .collect();
    let tables = [
        ("PodSpec", named(pod::POD)),
        ("PodSecurityContext", of_pods),
        ("Container", named(container::CONTAINER)),
        ("SecurityContext", of_containers),
        ("VolumeMount", named(container::MOUNT)),
    ];
    for (message, rows) in tables {
        let name = format!("k8s.core.v1.{message}");
        let message = pool.get_message_by_name(&name).unwrap();
        let fields: BTreeSet<_> = message
            .fields()
            .map(|field| field.json_name().to_owned())
            .collect();
        let rows: BTreeSet<_> = rows.into_iter().map(ToOwned::to_owned).collect();
        assert_eq!(fields, rows, "{name}");
    }
}

fn spec() -> PodSpec {
    let context = SecurityContext {
        privileged: Some(true),
        read_only_root_filesystem: Some(true),
        capabilities: Some(Capabilities {
            add: vec!["all".into(), "NET_ADMIN".into()],
            ..Capabilities::default()
        }),
        ..SecurityContext::default()
    };
    PodSpec {
        host_network: true,
        dns_config: Some(PodDnsConfig::default()),
        containers: vec![Container {
            name: "web".into(),
            volume_mounts: vec![VolumeMount {
                mount_path: "/a".into(),
                mount_propagation: Some("Bidirectional".into()),
                ..VolumeMount::default()
            }],
            security_context: Some(context),
            ..Container::default()
        }],
        ..PodSpec::default()
    }
}

fn paths(fields: Vec<Field>) -> Vec<String> {
    fields.into_iter().map(|field| field.path).collect()
}

/// Checks F7 and F14.
#[test]
fn a_field_without_effect_is_named_by_its_path() {
    let docker = paths(ignored(&spec(), Column::Docker));
    let expected = [
        "spec.hostNetwork",
        "spec.containers{web}.securityContext.privileged",
        "spec.containers{web}.volumeMounts{/a}.mountPropagation[Bidirectional]",
        "spec.containers{web}.securityContext.capabilities.add[ALL]",
    ];
    assert_eq!(docker, expected);
    // With `cri`, it is privileged, and has all capabilities.
    assert_eq!(paths(ignored(&spec(), Column::Cri)), [expected[2]]);
    let process = paths(ignored(&spec(), Column::Process));
    let read_only = "spec.containers{web}.securityContext.readOnlyRootFilesystem".to_owned();
    assert!(process.contains(&"spec.dnsConfig".to_owned()));
    assert!(process.contains(&read_only) && !process.contains(&"spec.hostNetwork".to_owned()));
}

#[test]
fn fields_that_the_gateway_defaults_are_not_named() {
    let spec = PodSpec {
        restart_policy: "Always".into(),
        dns_policy: "ClusterFirst".into(),
        enable_service_links: Some(true),
        service_account_name: "default".into(),
        security_context: Some(PodSecurityContext::default()),
        containers: vec![Container {
            termination_message_path: "/dev/termination-log".into(),
            termination_message_policy: "File".into(),
            volume_mounts: vec![VolumeMount {
                name: "kube-api-access-abcde".into(),
                read_only: true,
                mount_path: "/var/run/secrets/kubernetes.io/serviceaccount".into(),
                ..VolumeMount::default()
            }],
            ..Container::default()
        }],
        ..PodSpec::default()
    };
    for column in [Column::Docker, Column::Process] {
        assert_eq!(ignored(&spec, column), []);
    }
}

/// Checks F7.
#[test]
fn a_container_that_would_be_less_confined_than_requested_is_refused() {
    let mut spec = spec();
    assert_eq!(refused(&spec, "web", Column::Docker), None);
    let context = spec.containers[0].security_context.as_mut().unwrap();
    context.seccomp_profile = Some(SeccompProfile {
        r#type: "Localhost".into(),
        ..SeccompProfile::default()
    });
    let path = "spec.containers{web}.securityContext.seccompProfile[Localhost]";
    assert_eq!(refused(&spec, "web", Column::Cri), None);
    for column in [Column::Docker, Column::Process] {
        assert_eq!(refused(&spec, "web", column).as_deref(), Some(path));
        assert_eq!(refused(&spec, "other", column), None);
    }
    spec.host_users = Some(false);
    let refused = refused(&spec, "other", Column::Docker);
    assert_eq!(refused.as_deref(), Some("spec.hostUsers"));
    // The sandbox is, by a runtime without user namespaces.
    assert_eq!(super::refused(&spec, "other", Column::Cri), None);
}

/// Checks DG15.
#[test]
fn a_container_does_not_trace_the_processes_of_its_pod() {
    let mut spec = spec();
    let context = spec.containers[0].security_context.as_mut().unwrap();
    let capabilities = context.capabilities.get_or_insert_default();
    capabilities.add = vec!["cap_sys_ptrace".into()];
    assert_eq!(refused(&spec, "web", Column::Docker), None);
    spec.share_process_namespace = Some(true);
    let path = "spec.containers{web}.securityContext.capabilities.add[SYS_PTRACE] with spec.shareProcessNamespace";
    for column in [Column::Docker, Column::DockerWithoutCgroups] {
        assert_eq!(refused(&spec, "web", column).as_deref(), Some(path));
        assert_eq!(refused(&spec, "other", column), None);
    }
    assert_eq!(refused(&spec, "web", Column::RootProcess), None);
    assert_eq!(refused(&spec, "web", Column::Cri), None);
    spec.host_pid = true;
    let path =
        "spec.containers{web}.securityContext.capabilities.add[SYS_PTRACE] with spec.hostPID";
    for column in [Column::Cri, Column::CriWithoutCgroups] {
        assert_eq!(refused(&spec, "web", column).as_deref(), Some(path));
    }
}

/// Returns the lines of a table of the fields that some runtime does not support.
fn lines<T>(prefix: &str, rows: &[Row<T>]) -> Vec<String> {
    let word = |support| match support {
        Support::Supported => "yes",
        Support::IfPossible => "if possible",
        Support::Ignored => "no",
        Support::Refused => "refused",
    };
    let partly = rows.iter().filter(|row| {
        let all = [
            row.docker,
            row.cri,
            row.networked_process,
            row.root_process,
            row.process,
        ];
        all != [Support::Supported; 5]
    });
    let line = |row: &Row<T>| {
        let process = [row.networked_process, row.root_process, row.process];
        let [networked, root, process] = process.map(word);
        let (docker, cri) = (word(row.docker), word(row.cri));
        let root = match networked == root {
            true => root,
            false => "with networks",
        };
        let name = row.name;
        format!("| `{prefix}{name}` | {docker} | {cri} | {root} | {process} |")
    };
    partly.map(line).collect()
}

#[test]
fn the_readme_has_the_table_of_fields() {
    let shared = security::shared::<SecurityContext>();
    let table = [
        lines("", pod::POD),
        lines("securityContext.", security::POD),
        lines("containers[].", container::CONTAINER),
        lines("containers[].volumeMounts[].", container::MOUNT),
        lines("containers[].securityContext.", security::CONTAINER),
        lines("containers[].securityContext.", &shared),
    ];
    let table = table.concat().join("\n");
    let readme = include_str!("../../../README.md");
    assert!(readme.contains(&table), "README.md should have:\n{table}");
}
