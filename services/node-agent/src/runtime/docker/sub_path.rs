//! Mounts of parts of volumes.
//!
//! The engine mounts a path of its machine, to which it would follow any link. So the part is mounted by this agent first,
//! at a path that no container can reach, until the container has started and has a mount of its own. Volumes whose files
//! only the agent writes have no links but its own: the engine resolves their parts.

use std::path::{Path, PathBuf};

use tokio::task::spawn_blocking;

use super::{Shared, engine_error, volume};
use crate::runtime::sub_path::{Bound, clean, open, open_existing, refused};
use crate::runtime::{ContainerConfig, Error, HostPath, Mount};

/// The directory of these mounts.
const FOLDER: &str = "/run/setpoint/subpaths";

impl Shared {
    /// Mounts the parts of volumes that a container mounts, and lets its mounts name them. What is returned is needed until
    /// the container has started.
    pub(super) async fn bind_sub_paths(
        &self,
        config: &mut ContainerConfig,
    ) -> Result<Vec<Bound>, Error> {
        let folder = self.sub_paths().join(config.id.to_string());
        let mut bound = Vec::new();
        for (index, mount) in config.mounts.iter_mut().enumerate() {
            if mount.sub_path.is_empty() {
                continue;
            }
            let volume = self.folder_of(&config.id.uid, mount).await?;
            if mount.files {
                let path = volume.join(&mount.sub_path).display().to_string();
                // The engine's format for a path that it may create has colons between its parts.
                let create = !path.contains(':');
                mount.host = Some(HostPath { path, create });
                continue;
            }
            let (part, folder) = (mount.sub_path.clone(), folder.clone());
            let create = mount.host.as_ref().is_some_and(|host| host.create);
            // Nothing is added to an image.
            let exists = mount.image.is_some();
            let made = spawn_blocking(move || {
                if create {
                    std::fs::create_dir_all(&volume)?;
                }
                let opened = match exists {
                    true => open_existing(&volume, &part)?,
                    false => open(&volume, &part)?,
                };
                Bound::new(&opened, &folder, &index.to_string())
            });
            let made = made
                .await
                .unwrap_or_else(|error| Err(std::io::Error::other(error)));
            let made = made
                .map_err(|error| Error::Config(refused(&mount.volume, &config.id.name, &error)))?;
            mount.host = Some(HostPath {
                path: made.path().display().to_string(),
                create: false,
            });
            bound.push(made);
        }
        Ok(bound)
    }

    /// Returns the directory of a volume on this machine.
    async fn folder_of(&self, uid: &str, mount: &Mount) -> Result<PathBuf, Error> {
        if let Some(host) = &mount.host {
            return Ok(host.path.clone().into());
        }
        if self.engine.helper.is_some() && !mount.files {
            return Err(Error::Config(format!(
                "subPath of volume {:?} is not supported on this node: the node agent runs in a container that does not reach the volumes of the engine",
                mount.volume
            )));
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
    pub(super) fn clean_sub_paths(&self) -> std::io::Result<()> {
        clean(&self.sub_paths())
    }

    fn sub_paths(&self) -> PathBuf {
        Path::new(FOLDER)
            .join(&self.engine.cluster)
            .join(&self.node)
    }
}
