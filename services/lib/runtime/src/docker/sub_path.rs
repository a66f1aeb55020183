//! Mounts parts of volumes, and paths of the machine that are below an allowed path.
//!
//! The engine mounts a path of its machine, to which it would follow any link. So what is mounted is mounted by this
//! agent first, at a path that no container can reach, until the container has started and has a mount of its own.
//! Volumes whose files only the agent writes have no links but its own: the engine resolves their parts.

use std::io;
use std::path::{Path, PathBuf};

use tokio::task::spawn_blocking;

use super::{Shared, engine_error, volume};
use crate::sub_path::{
    Bound, bind, bind_recursive, clean, open, open_existing, open_volume, refused,
};
use crate::{ContainerConfig, Error, HostPath, Mount};

/// The directory of these mounts.
const FOLDER: &str = "/run/setpoint/subpaths";

impl Shared {
    /// Mounts the parts of volumes that a container mounts, and lets its mounts name them. What is returned is needed
    /// until the container has started.
    pub(super) async fn bind_sub_paths(
        &self,
        config: &mut ContainerConfig,
    ) -> Result<Vec<Bound>, Error> {
        let folder = self.sub_paths().join(config.id.to_string());
        let mut bound = Vec::new();
        for (index, mount) in config.mounts.iter_mut().enumerate() {
            let host = mount.host.as_ref();
            if mount.sub_path.is_empty() && host.is_none_or(HostPath::is_allowed_itself) {
                continue;
            }
            let volume = self.folder_of(&config.id.uid, mount).await?;
            if mount.files {
                let path = volume.join(&mount.sub_path).display().to_string();
                // The engine's format for a path that it may create has colons between its parts.
                let create = !path.contains(':');
                mount.host = Some(bound_path(path, create));
                continue;
            }
            let (wanted, folder) = (mount.clone(), folder.clone());
            let made = spawn_blocking(move || bind_part(&wanted, &volume, &folder, index));
            let made = made
                .await
                .unwrap_or_else(|error| Err(io::Error::other(error)));
            let made = made.map_err(|error| {
                Error::Config(match &mount.host {
                    Some(host) if mount.sub_path.is_empty() => host.refused(&mount.volume, &error),
                    _ => refused(&mount.volume, &config.id.name, &error),
                })
            })?;
            mount.host = Some(bound_path(made.path().display().to_string(), false));
            bound.push(made);
        }
        Ok(bound)
    }

    /// Returns the directory of a volume on this machine.
    async fn folder_of(&self, uid: &str, mount: &Mount) -> Result<PathBuf, Error> {
        let elsewhere = self.engine.contained || self.engine.helper.is_some();
        if elsewhere && !mount.files {
            let (field, volume) = (
                if mount.sub_path.is_empty() {
                    "hostPath"
                } else {
                    "subPath"
                },
                &mount.volume,
            );
            return Err(Error::Config(format!(
                "{field} of volume {volume:?} is not supported on this node: the node agent runs in a container that does not reach the volumes of the engine"
            )));
        }
        if let Some(host) = &mount.host {
            return Ok(host.path.clone().into());
        }
        let what = format!("find the files of volume {:?}", mount.volume);
        let name = volume::of_mount(uid, mount);
        let inspected = self.engine.client.inspect_volume(&name).await;
        Ok(inspected
            .map_err(|error| engine_error(what, error))?
            .mountpoint
            .into())
    }

    /// Unmounts what an agent of this node has left that was killed while it started a container.
    pub(super) fn clean_sub_paths(&self) -> io::Result<()> {
        clean(&self.sub_paths())
    }

    fn sub_paths(&self) -> PathBuf {
        Path::new(FOLDER)
            .join(&self.engine.cluster)
            .join(&self.node)
    }
}

/// Mounts what a container mounts below `folder`, by its descriptor.
fn bind_part(wanted: &Mount, volume: &Path, folder: &Path, index: usize) -> io::Result<Bound> {
    let opened = match &wanted.host {
        Some(host) => host.open()?,
        None => open_volume(volume)?,
    };
    let name = index.to_string();
    if wanted.sub_path.is_empty() {
        // Whole, as the engine mounts paths of the machine.
        return Bound::new(&opened, folder, &name, bind_recursive);
    }
    // Nothing is added to an image.
    let part = match wanted.image.is_some() {
        true => open_existing(&opened, &wanted.sub_path)?,
        false => open(&opened, &wanted.sub_path)?,
    };
    Bound::new(&part, folder, &name, bind)
}

/// Returns a path of the machine that no container can replace.
fn bound_path(path: String, create: bool) -> HostPath {
    HostPath {
        root: path.clone(),
        path,
        create,
    }
}
