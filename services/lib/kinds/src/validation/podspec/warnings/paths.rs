//! Warnings about files of one volume with the same path, or within another's.

use std::fmt;

use setpoint_proto::core::{
    DownwardApiVolumeFile, KeyToPath, ProjectedVolumeSource, Volume, VolumeProjection,
};

use crate::validation::warnings::Warnings;

/// The number of files before it that a file is compared with: it bounds the time for lists that no Pod needs.
const COMPARED_MAX: usize = 512;

/// A file of a volume.
struct File<'s> {
    /// The path without slashes at the end.
    path: &'s str,
    /// The part of a projected volume that it comes from.
    source: String,
}

impl fmt::Display for File<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source.as_str() {
            "" => write!(f, "{:?}", self.path),
            source => write!(f, "{:?} ({source})", self.path),
        }
    }
}

/// Warns of each volume.
pub fn warn(volumes: &[Volume], warnings: &mut Warnings) {
    for volume in volumes {
        let (name, source) = (volume.name.as_str(), &volume.volume_source);
        if let Some(one) = &source.config_map {
            let of = format!("ConfigMap {:?}", one.local_object_reference.name);
            warn_of_overlaps(name, &of, of_keys(&one.items, ""), warnings);
        }
        if let Some(one) = &source.secret {
            let of = format!("Secret {:?}", one.secret_name);
            warn_of_overlaps(name, &of, of_keys(&one.items, ""), warnings);
        }
        if let Some(one) = &source.downward_api {
            warn_of_overlaps(name, "DownwardAPI", of_fields(&one.items, ""), warnings);
        }
        if let Some(projected) = &source.projected {
            warn_of_projected(name, projected, warnings);
        }
    }
}

fn warn_of_projected(name: &str, projected: &ProjectedVolumeSource, warnings: &mut Warnings) {
    for source in &projected.sources {
        if *source == VolumeProjection::default() {
            warnings.add(format!(
                "volume {name:?} (Projected) has no sources provided"
            ));
        }
    }
    let files = projected.sources.iter().flat_map(of_projection).collect();
    warn_of_overlaps(name, "Projected", files, warnings);
}

/// Warns of the files of one volume that overlap.
fn warn_of_overlaps(volume: &str, of: &str, files: Vec<File<'_>>, warnings: &mut Warnings) {
    let files: Vec<_> = files
        .into_iter()
        .filter(|file| !file.path.is_empty())
        .collect();
    for (index, file) in files.iter().enumerate() {
        for other in files[..index].iter().take(COMPARED_MAX) {
            if warnings.is_full() {
                return;
            }
            if is_within(file.path, other.path) || is_within(other.path, file.path) {
                warnings.add(format!(
                    "volume {volume:?} ({of}): overlapping paths: {file} with {other}"
                ));
            }
        }
    }
}

/// Returns whether a path is another or within it.
fn is_within(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn of_keys<'s>(items: &'s [KeyToPath], source: &str) -> Vec<File<'s>> {
    items.iter().map(|item| file(&item.path, source)).collect()
}

fn of_fields<'s>(items: &'s [DownwardApiVolumeFile], source: &str) -> Vec<File<'s>> {
    items.iter().map(|item| file(&item.path, source)).collect()
}

fn file<'s>(path: &'s str, source: &str) -> File<'s> {
    File {
        path: path.trim_end_matches('/'),
        source: source.to_owned(),
    }
}

/// Returns the files of a part of a projected volume that are named in it.
fn of_projection(source: &VolumeProjection) -> Vec<File<'_>> {
    if let Some(one) = source
        .config_map
        .as_ref()
        .filter(|one| !one.items.is_empty())
    {
        let name = &one.local_object_reference.name;
        of_keys(&one.items, &format!("ConfigMap {name:?}"))
    } else if let Some(one) = source.secret.as_ref().filter(|one| !one.items.is_empty()) {
        let name = &one.local_object_reference.name;
        of_keys(&one.items, &format!("Secret {name:?}"))
    } else if let Some(one) = source
        .downward_api
        .as_ref()
        .filter(|one| !one.items.is_empty())
    {
        of_fields(&one.items, "DownwardAPI")
    } else if let Some(token) = &source.service_account_token {
        vec![file(&token.path, "ServiceAccountToken")]
    } else if let Some(bundle) = &source.cluster_trust_bundle {
        let name = bundle.name.as_ref().or(bundle.signer_name.as_ref());
        let name = name.map_or("", String::as_str);
        vec![file(&bundle.path, &format!("ClusterTrustBundle {name:?}"))]
    } else if let Some(one) = &source.pod_certificate {
        vec![
            file(&one.certificate_chain_path, "PodCertificate chain"),
            file(&one.key_path, "PodCertificate key"),
            file(
                &one.credential_bundle_path,
                "PodCertificate credential bundle",
            ),
        ]
    } else {
        Vec::new()
    }
}
