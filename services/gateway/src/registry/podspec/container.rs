//! What one container must say and must not.

use std::collections::BTreeSet;

use setpoint_model::names;
use setpoint_proto::core::{Container, EnvVar};

use super::{ports, probe, resources};
use crate::registry::path::Path;
use crate::registry::problems::Problems;

const PULL: &[&str] = &["Always", "IfNotPresent", "Never"];
const MESSAGE: &[&str] = &["File", "FallbackToLogsOnError"];

/// Finds what is wrong with a container; `volumes` are the names that it may mount.
pub fn validate(
    container: &Container,
    volumes: &BTreeSet<&str>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    validate_name(container, path, problems);
    problems.one_of(
        &path.field("imagePullPolicy"),
        &container.image_pull_policy,
        PULL,
    );
    let policy = path.field("terminationMessagePolicy");
    problems.one_of(&policy, &container.termination_message_policy, MESSAGE);
    ports::validate(&container.ports, &path.field("ports"), problems);
    validate_env(&container.env, &path.field("env"), problems);
    validate_mounts(container, volumes, path, problems);
    resources::validate(&container.resources, &path.field("resources"), problems);
    for (probe, name) in [
        (&container.liveness_probe, "livenessProbe"),
        (&container.readiness_probe, "readinessProbe"),
        (&container.startup_probe, "startupProbe"),
    ] {
        if let Some(probe) = probe {
            probe::validate(probe, name, &path.field(name), problems);
        }
    }
    if let Some(context) = &container.security_context {
        let path = path.field("securityContext");
        validate_id(context.run_as_user, &path.field("runAsUser"), problems);
        validate_id(context.run_as_group, &path.field("runAsGroup"), problems);
    }
}

/// A user's or group's number.
pub fn validate_id(id: Option<i64>, path: &Path<'_>, problems: &mut Problems) {
    if let Some(id) = id
        && !(0..=i64::from(i32::MAX)).contains(&id)
    {
        problems.invalid(path, id, "must be between 0 and 2147483647, inclusive");
    }
}

fn validate_name(container: &Container, path: &Path<'_>, problems: &mut Problems) {
    match container.name.as_str() {
        "" => problems.required(&path.field("name"), ""),
        name => problems.all_invalid(&path.field("name"), name, names::validate_dns_label(name)),
    }
    let image = path.field("image");
    if container.image.is_empty() {
        problems.required(&image, "");
    } else if container.image.trim() != container.image {
        problems.invalid(
            &image,
            &container.image,
            "must not have leading or trailing whitespace",
        );
    }
}

fn validate_env(env: &[EnvVar], path: &Path<'_>, problems: &mut Problems) {
    for (index, variable) in env.iter().enumerate() {
        let path = path.index(index);
        let name = path.field("name");
        if variable.name.is_empty() {
            problems.required(&name, "");
        } else if variable
            .name
            .contains(|c: char| c == '=' || !c.is_ascii_graphic() && c != ' ')
        {
            let detail = "a valid environment variable name must consist only of printable ASCII \
                characters other than '='";
            problems.invalid(&name, &variable.name, detail);
        }
        if !variable.value.is_empty() && variable.value_from.is_some() {
            let detail = "may not be specified when `value` is not empty";
            problems.invalid(&path.field("valueFrom"), "", detail);
        }
    }
}

fn validate_mounts(
    container: &Container,
    volumes: &BTreeSet<&str>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let mounts = path.field("volumeMounts");
    let mut paths = BTreeSet::new();
    for (index, mount) in container.volume_mounts.iter().enumerate() {
        let path = mounts.index(index);
        let (name, at) = (path.field("name"), path.field("mountPath"));
        if mount.name.is_empty() {
            problems.required(&name, "");
        } else if !volumes.contains(mount.name.as_str()) {
            problems.not_found(&name, &mount.name);
        }
        if mount.mount_path.is_empty() {
            problems.required(&at, "");
        } else if !paths.insert(mount.mount_path.as_str()) {
            problems.invalid(&at, &mount.mount_path, "must be unique");
        }
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::{EnvVarSource, VolumeMount};

    use super::*;

    fn complaints(change: impl FnOnce(&mut Container)) -> String {
        let mut container = Container {
            name: "web".into(),
            image: "nginx".into(),
            ..Default::default()
        };
        change(&mut container);
        let mut problems = Problems::default();
        let volumes = ["data"].into();
        validate(&container, &volumes, &Path::root("c"), &mut problems);
        problems.to_string()
    }

    fn mount(name: &str, path: &str) -> VolumeMount {
        VolumeMount {
            name: name.into(),
            mount_path: path.into(),
            ..Default::default()
        }
    }

    #[test]
    fn mounts_name_a_volume_and_a_place_of_their_own() {
        assert_eq!(
            complaints(|c| c.volume_mounts = vec![mount("data", "/a")]),
            "[]"
        );
        let complaint = complaints(|c| c.volume_mounts = vec![mount("other", "/a")]);
        assert_eq!(complaint, r#"c.volumeMounts[0].name: Not found: "other""#);
        let complaint =
            complaints(|c| c.volume_mounts = vec![mount("data", "/a"), mount("data", "/a")]);
        assert_eq!(
            complaint,
            r#"c.volumeMounts[1].mountPath: Invalid value: "/a": must be unique"#
        );
    }

    #[test]
    fn a_variable_has_a_name_and_one_source() {
        let variable = |name: &str| EnvVar {
            name: name.into(),
            value: "1".into(),
            value_from: None,
        };
        assert_eq!(complaints(|c| c.env = vec![variable("A_B.c-d")]), "[]");
        assert_eq!(
            complaints(|c| c.env = vec![variable("")]),
            "c.env[0].name: Required value"
        );
        assert!(complaints(|c| c.env = vec![variable("A=")]).contains("printable ASCII"));
        let complaint = complaints(|c| {
            let mut both = variable("A");
            both.value_from = Some(EnvVarSource::default());
            c.env = vec![both];
        });
        assert!(complaint.contains("may not be specified when `value` is not empty"));
    }

    #[test]
    fn users_have_numbers_that_are_not_negative() {
        assert!(
            complaints(|c| c.security_context.get_or_insert_default().run_as_user = Some(-1))
                .contains("between 0 and")
        );
    }
}
