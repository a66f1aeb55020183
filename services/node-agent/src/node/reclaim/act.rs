//! Removes the directory of a volume, after it has been read again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use setpoint_controller::{Client, Receipt, Recorder, events};
use setpoint_model::{Key, Meta};
use setpoint_proto::core::{PersistentVolume, PersistentVolumeClaim};
use setpoint_proto::{ApiError, Reason};
use tokio::task::spawn_blocking;
use tracing::info;

use super::{FINALIZER, is_due};
use crate::pod::volumes::is_name;

/// The reason of the Event of a volume whose directory is kept.
const FAILED: &str = "VolumeFailedDelete";

/// Removes the directory of a volume and then its finalizer. The directory of a volume that is to be retained is kept,
/// as is one outside of `folder`.
///
/// # Errors
/// If the volume is used again, its directory cannot be removed, or the gateway returns an error.
pub async fn remove(
    client: &Client,
    events: &Recorder,
    folder: &Path,
    observed: &Meta,
) -> Result<Receipt, ApiError> {
    let volume = match client.get::<PersistentVolume>(&observed.key).await {
        Err(error) if error.reason == Reason::NotFound => return Ok(Receipt::none()),
        volume => volume?,
    };
    if volume.metadata.uid != observed.uid || !is_due(&volume) {
        return Ok(Receipt::none());
    }
    refuse_bound(client, &volume).await?;
    let about = events::reference_to(&volume);
    if volume.spec.persistent_volume_reclaim_policy == "Delete" {
        match own_path(folder, &volume) {
            Some(path) => {
                let removed = spawn_blocking(move || remove_directory(&path)).await;
                let removed = removed.unwrap_or_else(|error| Err(io::Error::other(error)));
                removed.map_err(|error| {
                    let message = format!("cannot remove the directory of the volume: {error}");
                    events.warning(&about, FAILED, &message);
                    ApiError::new(Reason::InternalError, message)
                })?;
                info!(volume = observed.key.name, "removed");
            }
            None => events.warning(
                &about,
                FAILED,
                "the path of the volume is not one that the node has made, and is kept",
            ),
        }
    }
    let mut released = volume;
    let finalizers = &mut released.metadata.finalizers;
    finalizers.retain(|finalizer| finalizer != FINALIZER);
    let written = client.update(&released).await;
    Receipt::unless_gone(written.map(|written| written.receipt()))
}

/// Refuses to remove a volume that is or may be bound to a claim.
async fn refuse_bound(client: &Client, volume: &PersistentVolume) -> Result<(), ApiError> {
    let name = &volume.metadata.name;
    let bound = |claim: &str| {
        let message = format!("volume {name} is still bound to claim {claim}");
        Err(ApiError::new(Reason::Conflict, message))
    };
    let Some(owner) = &volume.spec.claim_ref else {
        return Ok(());
    };
    if volume.status.phase == "Bound" {
        return bound(&owner.name);
    }
    let key = Key::new(&owner.namespace, &owner.name);
    match client.get::<PersistentVolumeClaim>(&key).await {
        Err(error) if error.reason == Reason::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(claim) if claim.metadata.uid == owner.uid && claim.spec.volume_name == *name => {
            bound(&owner.name)
        }
        Ok(_) => Ok(()),
    }
}

/// Returns the path of a volume if it is the one that this node makes for it.
fn own_path(folder: &Path, volume: &PersistentVolume) -> Option<PathBuf> {
    let name = &volume.metadata.name;
    let source = &volume.spec.persistent_volume_source;
    let path = source.host_path.as_ref()?.path.as_str();
    let own = folder.join(name);
    (is_name(name) && own == Path::new(path)).then_some(own)
}

/// Removes a directory with all that is in it, and follows no links.
fn remove_directory(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use setpoint_proto::core::HostPathVolumeSource;

    use super::*;

    #[test]
    fn only_the_path_that_the_node_makes_is_its_own() {
        let path = |name: &str, path: &str| {
            let mut volume = PersistentVolume::default();
            volume.metadata.name = name.into();
            volume.spec.persistent_volume_source.host_path = Some(HostPathVolumeSource {
                path: path.into(),
                ..HostPathVolumeSource::default()
            });
            own_path(Path::new("/var/volumes"), &volume)
        };
        assert_eq!(
            path("pvc-1", "/var/volumes/pvc-1"),
            Some("/var/volumes/pvc-1".into())
        );
        for (name, at) in [
            ("pvc-1", "/var/volumes/pvc-2"),
            ("pvc-1", "/var/volumes"),
            ("pvc-1", "/var/volumes/../volumes/pvc-1"),
            ("..", "/var/volumes/.."),
            ("a/b", "/var/volumes/a/b"),
        ] {
            assert_eq!(path(name, at), None, "{name} {at}");
        }
    }

    #[test]
    fn a_directory_is_removed_without_following_links() {
        let root = tempfile::tempdir().unwrap();
        let (kept, volume) = (root.path().join("kept"), root.path().join("volume"));
        fs::create_dir_all(kept.join("a")).unwrap();
        fs::create_dir(&volume).unwrap();
        symlink(&kept, volume.join("link")).unwrap();
        remove_directory(&volume).unwrap();
        remove_directory(&volume).unwrap();
        symlink(&kept, &volume).unwrap();
        remove_directory(&volume).unwrap();
        assert!(!volume.exists() && kept.join("a").exists());
    }
}
