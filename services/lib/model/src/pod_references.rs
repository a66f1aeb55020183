//! The other objects that a Pod names (upstream: `VisitPodSecretNames`, `VisitPodConfigmapNames` and
//! `HasAPIObjectReference`). Every list of containers counts: regular, init and ephemeral ones.

use setpoint_proto::core::{
    EnvFromSource, EnvVar, EnvVarSource, Pod, PodResourceClaim, ProjectedVolumeSource, Volume,
    VolumeProjection, VolumeSource,
};

/// Returns the names of the Secrets of its namespace that a Pod names: for images, in variables and in volumes. A name
/// may occur several times.
pub fn secrets(pod: &Pod) -> impl Iterator<Item = &str> {
    let for_images = pod.spec.image_pull_secrets.iter();
    let for_images = for_images.map(|reference| reference.name.as_str());
    let in_variables = variables(pod).filter_map(|source| {
        let key = source.secret_key_ref.as_ref()?;
        Some(key.local_object_reference.name.as_str())
    });
    let of_variables = sources_of_variables(pod).filter_map(|source| {
        let secret = source.secret_ref.as_ref()?;
        Some(secret.local_object_reference.name.as_str())
    });
    let in_volumes = pod.spec.volumes.iter().flat_map(secrets_of_volume);
    let names = for_images.chain(in_variables).chain(of_variables);
    named(names.chain(in_volumes))
}

/// Returns the names of the ConfigMaps of its namespace that a Pod names, in variables and in volumes.
pub fn config_maps(pod: &Pod) -> impl Iterator<Item = &str> {
    let in_variables = variables(pod).filter_map(|source| {
        let key = source.config_map_key_ref.as_ref()?;
        Some(key.local_object_reference.name.as_str())
    });
    let of_variables = sources_of_variables(pod).filter_map(|source| {
        let map = source.config_map_ref.as_ref()?;
        Some(map.local_object_reference.name.as_str())
    });
    let in_volumes = pod.spec.volumes.iter().flat_map(config_maps_of_volume);
    named(in_variables.chain(of_variables).chain(in_volumes))
}

/// Returns the names of the PersistentVolumeClaims of a Pod, those of ephemeral volumes included.
pub fn claims(pod: &Pod) -> impl Iterator<Item = String> {
    let volumes = pod.spec.volumes.iter();
    volumes.filter_map(|volume| claim_of_volume(pod, volume))
}

/// Returns the name of the PersistentVolumeClaim of a volume; `None` if the volume is of another type.
pub fn claim_of_volume(pod: &Pod, volume: &Volume) -> Option<String> {
    let source = &volume.volume_source;
    match (&source.persistent_volume_claim, &source.ephemeral) {
        (Some(claim), _) => Some(claim.claim_name.clone()),
        (None, Some(_)) => Some(format!("{}-{}", pod.metadata.name, volume.name)),
        (None, None) => None,
    }
}

/// Returns the names of the ResourceClaims of a Pod that exist: those that it names, those that were made of templates,
/// and the one for extended resources.
pub fn resource_claims(pod: &Pod) -> impl Iterator<Item = &str> {
    let extended = pod.status.extended_resource_claim_status.as_ref();
    let extended = extended.map(|status| status.resource_claim_name.as_str());
    let claims = pod.spec.resource_claims.iter();
    let claims = claims.filter_map(|claim| resource_claim_name(pod, claim));
    named(claims.chain(extended))
}

fn resource_claim_name<'p>(pod: &'p Pod, claim: &'p PodResourceClaim) -> Option<&'p str> {
    if let Some(name) = &claim.resource_claim_name {
        return Some(name);
    }
    let mut statuses = pod.status.resource_claim_statuses.iter();
    let made = statuses.find(|status| status.name == claim.name)?;
    made.resource_claim_name.as_deref()
}

/// Returns the resource of an object of the API that a Pod names, which a mirror Pod may not; `None` if it names none.
///
/// # Errors
/// If a volume is of an unknown type.
pub fn api_object(pod: &Pod) -> Result<Option<&'static str>, String> {
    let spec = &pod.spec;
    if !spec.service_account_name.is_empty() {
        return Ok(Some("serviceaccounts"));
    }
    if secrets(pod).next().is_some() {
        return Ok(Some("secrets"));
    }
    if config_maps(pod).next().is_some() {
        return Ok(Some("configmaps"));
    }
    if !spec.resource_claims.is_empty() {
        return Ok(Some("resourceclaims"));
    }
    for volume in &spec.volumes {
        if let Some(object) = api_object_of_volume(volume)? {
            return Ok(Some(object));
        }
    }
    Ok(None)
}

fn api_object_of_volume(volume: &Volume) -> Result<Option<&'static str>, String> {
    let source = &volume.volume_source;
    if *source == VolumeSource::default() {
        return Err(format!("unknown volume type for volume  {:?}", volume.name));
    }
    if let Some(projected) = &source.projected {
        return api_object_of_projections(projected, &volume.name);
    }
    let named = [
        (
            source.config_map.is_some(),
            "configmaps (via configmap volumes)",
        ),
        (source.secret.is_some(), "secrets (via secret volumes)"),
        (source.csi.is_some(), "csidrivers (via CSI volumes)"),
        (
            source.glusterfs.is_some(),
            "endpoints (via glusterFS volumes)",
        ),
        (
            source.persistent_volume_claim.is_some(),
            "persistentvolumeclaims",
        ),
        (
            source.ephemeral.is_some(),
            "persistentvolumeclaims (via ephemeral volumes)",
        ),
        (
            source.azure_file.is_some(),
            "secrets (via azureFile volumes)",
        ),
    ];
    Ok(first_true(&named))
}

fn api_object_of_projections(
    projected: &ProjectedVolumeSource,
    volume: &str,
) -> Result<Option<&'static str>, String> {
    for source in &projected.sources {
        if *source == VolumeProjection::default() {
            return Err(format!("unknown source for projected volume {volume:?}"));
        }
        let named = [
            (
                source.config_map.is_some(),
                "configmaps (via projected volumes)",
            ),
            (source.secret.is_some(), "secrets (via projected volumes)"),
            (
                source.service_account_token.is_some(),
                "serviceaccounts (via projected volumes)",
            ),
            (source.cluster_trust_bundle.is_some(), "clustertrustbundles"),
            (source.pod_certificate.is_some(), "podcertificates"),
        ];
        if let Some(object) = first_true(&named) {
            return Ok(Some(object));
        }
    }
    Ok(None)
}

fn first_true(cases: &[(bool, &'static str)]) -> Option<&'static str> {
    let found = cases.iter().find(|(holds, _)| *holds);
    found.map(|(_, name)| *name)
}

fn secrets_of_volume(volume: &Volume) -> impl Iterator<Item = &str> {
    let source = &volume.volume_source;
    let references = [
        source
            .cephfs
            .as_ref()
            .and_then(|source| source.secret_ref.as_ref()),
        source
            .cinder
            .as_ref()
            .and_then(|source| source.secret_ref.as_ref()),
        source
            .flex_volume
            .as_ref()
            .and_then(|source| source.secret_ref.as_ref()),
        source
            .rbd
            .as_ref()
            .and_then(|source| source.secret_ref.as_ref()),
        source
            .scale_io
            .as_ref()
            .and_then(|source| source.secret_ref.as_ref()),
        source
            .iscsi
            .as_ref()
            .and_then(|source| source.secret_ref.as_ref()),
        source
            .storageos
            .as_ref()
            .and_then(|source| source.secret_ref.as_ref()),
        source
            .csi
            .as_ref()
            .and_then(|source| source.node_publish_secret_ref.as_ref()),
    ];
    let names = [
        source
            .azure_file
            .as_ref()
            .map(|source| source.secret_name.as_str()),
        source
            .secret
            .as_ref()
            .map(|source| source.secret_name.as_str()),
    ];
    let references = references.into_iter().flatten();
    let projected = projections(source).filter_map(|projection| {
        let secret = projection.secret.as_ref()?;
        Some(secret.local_object_reference.name.as_str())
    });
    let names = names.into_iter().flatten();
    names
        .chain(references.map(|reference| reference.name.as_str()))
        .chain(projected)
}

fn config_maps_of_volume(volume: &Volume) -> impl Iterator<Item = &str> {
    let source = &volume.volume_source;
    let map = source.config_map.as_ref();
    let map = map.map(|source| source.local_object_reference.name.as_str());
    let projected = projections(source).filter_map(|projection| {
        let map = projection.config_map.as_ref()?;
        Some(map.local_object_reference.name.as_str())
    });
    map.into_iter().chain(projected)
}

fn projections(source: &VolumeSource) -> impl Iterator<Item = &VolumeProjection> {
    let projected = source.projected.iter();
    projected.flat_map(|projected| &projected.sources)
}

/// Returns the sources of the values of all variables.
fn variables(pod: &Pod) -> impl Iterator<Item = &EnvVarSource> {
    let lists = containers(pod).flat_map(|(_, variables, _)| variables);
    lists.filter_map(|variable| variable.value_from.as_ref())
}

/// Returns the objects that all of whose keys become variables.
fn sources_of_variables(pod: &Pod) -> impl Iterator<Item = &EnvFromSource> {
    containers(pod).flat_map(|(_, _, sources)| sources)
}

/// Returns the name, the variables and the sources of variables of each container of all lists.
fn containers(pod: &Pod) -> impl Iterator<Item = (&str, &[EnvVar], &[EnvFromSource])> {
    let spec = &pod.spec;
    let own = spec.init_containers.iter().chain(&spec.containers);
    let own = own.map(|one| {
        (
            one.name.as_str(),
            one.env.as_slice(),
            one.env_from.as_slice(),
        )
    });
    let ephemeral = spec.ephemeral_containers.iter();
    let ephemeral = ephemeral.map(|one| &one.ephemeral_container_common);
    own.chain(ephemeral.map(|one| {
        (
            one.name.as_str(),
            one.env.as_slice(),
            one.env_from.as_slice(),
        )
    }))
}

/// Leaves out empty names, which name nothing.
fn named<'p>(names: impl Iterator<Item = &'p str>) -> impl Iterator<Item = &'p str> {
    names.filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests;
