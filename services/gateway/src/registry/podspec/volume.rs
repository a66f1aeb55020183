//! The volumes of a Pod.

use std::collections::BTreeSet;

use setpoint_model::names;
use setpoint_proto::core::{Volume, VolumeSource};

use crate::registry::path::Path;
use crate::registry::problems::Problems;

/// Finds what is wrong with volumes, and answers with the names that may be mounted.
pub fn validate<'v>(
    volumes: &'v [Volume],
    path: &Path<'_>,
    problems: &mut Problems,
) -> BTreeSet<&'v str> {
    let mut seen = BTreeSet::new();
    for (index, volume) in volumes.iter().enumerate() {
        let path = path.index(index);
        let name = path.field("name");
        if volume.name.is_empty() {
            problems.required(&name, "");
        } else {
            problems.all_invalid(&name, &volume.name, names::validate_dns_label(&volume.name));
            if !seen.insert(volume.name.as_str()) {
                problems.duplicate(&name, &volume.name);
            }
        }
        validate_source(&volume.volume_source, &path, problems);
    }
    seen
}

fn validate_source(source: &VolumeSource, path: &Path<'_>, problems: &mut Problems) {
    // Each source is one field of the message: what is left after taking one out tells whether there was another.
    let mut rest = source.clone();
    let sources = [
        rest.host_path.take().is_some(),
        rest.empty_dir.take().is_some(),
        rest.secret.take().is_some(),
        rest.config_map.take().is_some(),
        rest.projected.take().is_some(),
        rest.downward_api.take().is_some(),
        rest.persistent_volume_claim.take().is_some(),
        rest.ephemeral.take().is_some(),
        rest.csi.take().is_some(),
        rest.nfs.take().is_some(),
        rest != VolumeSource::default(),
    ];
    match sources.into_iter().filter(|source| *source).count() {
        0 => problems.required(path, "must specify a volume type"),
        1 => {}
        _ => problems.forbidden(path, "may not specify more than 1 volume type"),
    }
    if let Some(secret) = &source.secret
        && secret.secret_name.is_empty()
    {
        problems.required(&path.field("secret").field("secretName"), "");
    }
    if let Some(config_map) = &source.config_map
        && config_map.local_object_reference.name.is_empty()
    {
        problems.required(&path.field("configMap").field("name"), "");
    }
    if let Some(host_path) = &source.host_path
        && host_path.path.is_empty()
    {
        problems.required(&path.field("hostPath").field("path"), "");
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::{EmptyDirVolumeSource, SecretVolumeSource};

    use super::*;

    fn complaints(change: impl FnOnce(&mut VolumeSource)) -> String {
        let mut volume = Volume {
            name: "data".into(),
            ..Default::default()
        };
        change(&mut volume.volume_source);
        let mut problems = Problems::default();
        validate(&[volume], &Path::root("volumes"), &mut problems);
        problems.to_string()
    }

    #[test]
    fn a_volume_has_exactly_one_source() {
        assert_eq!(
            complaints(|_| {}),
            "volumes[0]: Required value: must specify a volume type"
        );
        assert_eq!(
            complaints(|source| source.empty_dir = Some(EmptyDirVolumeSource::default())),
            "[]"
        );
        let complaint = complaints(|source| {
            source.empty_dir = Some(EmptyDirVolumeSource::default());
            source.secret = Some(SecretVolumeSource {
                secret_name: "s".into(),
                ..Default::default()
            });
        });
        assert_eq!(
            complaint,
            "volumes[0]: Forbidden: may not specify more than 1 volume type"
        );
    }

    #[test]
    fn a_source_names_what_it_shows() {
        let complaint = complaints(|source| source.secret = Some(SecretVolumeSource::default()));
        assert_eq!(complaint, "volumes[0].secret.secretName: Required value");
    }
}
