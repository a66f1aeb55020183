//! Replaces the files of volumes while containers use them.

use std::io;
use std::path::Path;

use jiff::Timestamp;
use tokio::task::spawn_blocking;

use super::{Shared, engine_error, volume};
use crate::{Error, Volume, VolumeKind, archive, layout};

impl Shared {
    /// Replaces the files of a Pod's volumes.
    pub(super) async fn update_volumes(
        &self,
        uid: &str,
        volumes: Vec<Volume>,
    ) -> Result<(), Error> {
        for volume in volumes {
            if let VolumeKind::Files { files, .. } = &volume.kind {
                let failed = |source| Error::State {
                    what: format!("volume {:?} of Pod {uid}", volume.name),
                    source,
                };
                let archive = archive::of_version(files, volume.group).map_err(failed)?;
                self.publish(uid, &volume, archive).await?;
            }
        }
        Ok(())
    }

    /// Publishes a new version of a volume: in its directory on this machine, or in a container.
    async fn publish(&self, uid: &str, volume: &Volume, archive: Vec<u8>) -> Result<(), Error> {
        let version = layout::version(Timestamp::now());
        if let Some(program) = &self.engine.helper {
            let arguments = ["publish", &volume::mount_path(volume), &version];
            return self
                .write_within(program, uid, volume, &arguments, &archive)
                .await;
        }
        let volume = &volume.name;
        let name = volume::name(uid, volume);
        let inspected = self.engine.client.inspect_volume(&name).await;
        let what = format!("find the files of volume {volume:?}");
        let folder = inspected
            .map_err(|error| engine_error(what, error))?
            .mountpoint;
        let failed = |source| Error::State {
            what: format!("volume {volume:?} of Pod {uid}"),
            source,
        };
        let published = spawn_blocking(move || {
            layout::publish(Path::new(&folder), &version, archive.as_slice())
        });
        let published = published
            .await
            .unwrap_or_else(|error| Err(io::Error::other(error)));
        published.map(|_| ()).map_err(failed)
    }
}
