//! The file /etc/hosts of Pods.
//!
//! The engine's own file cannot be changed while its container runs, so each container has the Pod's file mounted over
//! it. It is in the volume of the termination messages, and is overwritten when its entries change.

use std::io;
use std::path::Path;

use bollard::errors::Error as BollardError;
use bollard::models::{Mount, MountType};
use tokio::task::spawn_blocking;

use super::{Shared, engine_error, is_not_found, termination, volume};
use crate::hosts::{MODE, PATH, overwrite};
use crate::{ContainerConfig, Error, File, Hosts};

/// No termination message has this name: theirs end with the number of an attempt.
const NAME: &str = "hosts";

/// Returns the path of the file in the containers of the agent.
fn own_path() -> String {
    format!("{}/{NAME}", volume::mount_path(&termination::volume()))
}

impl Shared {
    /// Makes the file of a Pod. Containers that have an earlier one mounted do not see it.
    pub(super) async fn make_hosts(&self, uid: &str, text: String) -> Result<(), Error> {
        let file = File {
            path: own_path(),
            content: text.into_bytes(),
            mode: MODE,
            user: None,
        };
        let made = self.copy_message(uid, file).await;
        made.map_err(|error| engine_error(format!("write the hosts file of Pod {uid}"), error))
    }

    /// Returns the mount of the file in a container; `None` if the container mounts another there, or the sandbox is
    /// from before there were such files.
    pub(super) async fn hosts_mount(
        &self,
        config: &ContainerConfig,
        pause: &str,
    ) -> Result<Option<Mount>, BollardError> {
        if config.mounts.iter().any(|mount| mount.path == PATH) {
            return Ok(None);
        }
        match self.read_file(pause, &own_path()).await {
            Err(error) if is_not_found(&error) => return Ok(None),
            read => drop(read?),
        }
        Ok(Some(Mount {
            typ: Some(MountType::BIND),
            source: Some(self.hosts_path(&config.id.uid).await?),
            target: Some(PATH.to_owned()),
            ..Mount::default()
        }))
    }

    /// Gives the file of a running Pod these entries.
    pub(super) async fn update_hosts(
        &self,
        uid: &str,
        hostname: &str,
        hosts: &Hosts,
    ) -> Result<(), Error> {
        let ip = self.table.lock().sandbox(uid)?.config.ip;
        let text = hosts.file(hostname, ip, None);
        let pause = self.pauses.lock().get(uid).cloned();
        let pause = pause.ok_or_else(|| Error::Unknown(uid.to_owned()))?;
        match self.read_file(&pause.runtime_id, &own_path()).await {
            Ok(current) if current == text.as_bytes() => Ok(()),
            Ok(_) => self.overwrite_hosts(uid, text).await,
            Err(error) if is_not_found(&error) => self.make_hosts(uid, text).await,
            Err(error) => Err(engine_error(format!("read {}", own_path()), error)),
        }
    }

    /// Overwrites the file in its directory on this machine, or in a container.
    async fn overwrite_hosts(&self, uid: &str, text: String) -> Result<(), Error> {
        if let Some(program) = &self.engine.helper {
            let (volume, arguments) = (termination::volume(), ["overwrite", &own_path()]);
            return self
                .write_within(program, uid, &volume, &arguments, text.as_bytes())
                .await;
        }
        let what = format!("the hosts file of Pod {uid}");
        let path = self.hosts_path(uid).await;
        let path = path.map_err(|error| engine_error(format!("find {what}"), error))?;
        let written = spawn_blocking(move || overwrite(Path::new(&path), text.as_bytes()));
        let written = written
            .await
            .unwrap_or_else(|error| Err(io::Error::other(error)));
        written.map_err(|source| Error::State { what, source })
    }

    /// Returns the path of the file on the engine's machine.
    async fn hosts_path(&self, uid: &str) -> Result<String, BollardError> {
        let name = volume::name(uid, &termination::volume().name);
        let volume = self.engine.client.inspect_volume(&name).await?;
        Ok(format!("{}/{NAME}", volume.mountpoint))
    }
}
