//! Resolves the volumes and mounts of a Pod.

mod mount;
mod projection;

use setpoint_controller::Client;
use setpoint_model::quantity::Amount;
use setpoint_proto::core::{EmptyDirVolumeSource, Pod, Volume as Declared};

use self::projection::{
    DEFAULT_MODE, config_map, downward_files, files, projected_files, secret_data,
};
use crate::downward::Placement;
use crate::environment::Error;
use crate::runtime::{Volume, VolumeKind};
use crate::world::WaitingReason;

pub use self::mount::mounts;

/// Resolves the volumes that a Pod declares.
///
/// # Errors
/// If a source that is not optional does not exist, or the type of a volume is not supported.
pub async fn volumes(
    gateway: &Client,
    pod: &Pod,
    placement: &Placement,
) -> Result<Vec<Volume>, Error> {
    let mut volumes = Vec::new();
    for declared in &pod.spec.volumes {
        let name = declared.name.clone();
        let (kind, group) = (kind(gateway, pod, placement, declared).await?, group(pod));
        volumes.push(Volume { name, kind, group });
    }
    Ok(volumes)
}

/// Returns the group that owns the files of a Pod's volumes.
fn group(pod: &Pod) -> Option<u32> {
    let context = pod.spec.security_context.as_ref()?;
    u32::try_from(context.fs_group?).ok()
}

/// Returns whether a volume consists of files that only the agent writes.
fn is_files(declared: &Declared) -> bool {
    let source = &declared.volume_source;
    source.config_map.is_some()
        || source.secret.is_some()
        || source.projected.is_some()
        || source.downward_api.is_some()
}

/// Resolves the type and content of a volume.
async fn kind(
    gateway: &Client,
    pod: &Pod,
    placement: &Placement,
    declared: &Declared,
) -> Result<VolumeKind, Error> {
    let namespace = &pod.metadata.namespace;
    let source = &declared.volume_source;
    if let Some(empty) = &source.empty_dir {
        return Ok(empty_dir(empty));
    }
    let projected = if let Some(map) = &source.config_map {
        let (name, optional) = (
            &map.local_object_reference.name,
            map.optional.unwrap_or_default(),
        );
        let data = config_map(gateway, namespace, name, optional).await?;
        (
            files(
                data,
                &map.items,
                map.default_mode.unwrap_or(DEFAULT_MODE),
                optional,
            )?,
            false,
        )
    } else if let Some(secret) = &source.secret {
        let optional = secret.optional.unwrap_or_default();
        let data = secret_data(gateway, namespace, &secret.secret_name, optional).await?;
        (
            files(
                data,
                &secret.items,
                secret.default_mode.unwrap_or(DEFAULT_MODE),
                optional,
            )?,
            true,
        )
    } else if let Some(projected) = &source.projected {
        (
            projected_files(gateway, pod, placement, projected).await?,
            true,
        )
    } else if let Some(downward) = &source.downward_api {
        let mode = downward.default_mode.unwrap_or(DEFAULT_MODE);
        (downward_files(pod, placement, &downward.items, mode)?, true)
    } else {
        let message = format!(
            "the type of volume {:?} is not supported on this node",
            declared.name
        );
        return Err(config_error(message));
    };
    let (files, secret) = projected;
    Ok(VolumeKind::Files { files, secret })
}

fn empty_dir(empty: &EmptyDirVolumeSource) -> VolumeKind {
    let limit = empty.size_limit.as_ref();
    let limit = limit.and_then(|limit| Amount::parse(&limit.string).ok());
    match empty.medium.as_str() {
        "Memory" => VolumeKind::Memory(limit.map_or(0, Amount::value)),
        _ => VolumeKind::Empty,
    }
}

fn config_error(message: String) -> Error {
    Error::Config(WaitingReason::config(message))
}
