//! The filling of a volume with the content of an image.
//!
//! ```text
//! image ─▶ source ─ export ─▶ filter ─ upload ─▶ carrier ─▶ volume of the engine
//! ```
//! Source and carrier are containers that are never started; two, because the engine cannot export a container and
//! unpack into it at the same time. The volume is complete once its carrier is removed. The engine unpacks it within
//! the carrier, so that no path or link of an image leads out of it.

use std::io;
use std::net::Shutdown;
use std::time::Duration;

use bollard::body_try_stream;
use bollard::models::{ContainerCreateBody, Mount, MountType, MountVolumeOptions};
use bollard::query_parameters::{RemoveVolumeOptions, UploadToContainerOptionsBuilder};
use futures::TryStreamExt as _;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_util::io::{ReaderStream, StreamReader};
use tracing::info;

use super::super::identity::{CLUSTER, NODE};
use super::super::image_files::copy;
use super::super::{Shared, carrier, engine_error, is_not_found};
use super::IMAGE;
use crate::Error;

/// The path of the volume in its carrier.
const CONTENT: &str = "/.setpoint-content";
/// The time in which a volume must be filled.
const TIMEOUT: Duration = Duration::from_secs(1800);

impl Shared {
    /// Returns whether a volume exists and has no carrier.
    pub(super) async fn is_filled(&self, name: &str) -> Result<bool, Error> {
        let failed = |error| engine_error(format!("inspect volume {name}"), error);
        let client = &self.engine.client;
        match client.inspect_volume(name).await {
            Err(error) if is_not_found(&error) => return Ok(false),
            found => found.map_err(failed)?,
        };
        match client.inspect_container(name, None).await {
            Err(error) if is_not_found(&error) => Ok(true),
            found => found.map_err(failed).map(|_| false),
        }
    }

    /// Fills a volume, once no other is being filled.
    pub(super) async fn fill_once(&self, id: &str, name: &str) -> Result<(), String> {
        let Ok(_slot) = self.image_volumes.slot.acquire().await else {
            return Ok(());
        };
        // An agent that has ended meanwhile may have left a volume of this name.
        self.discard(name)
            .await
            .map_err(|error| error.to_string())?;
        let filled = match timeout(TIMEOUT, self.fill(id, name)).await {
            Ok(filled) => filled,
            Err(_) => Err(format!("not done after {} s", TIMEOUT.as_secs())),
        };
        match &filled {
            Ok(()) => info!(image = id, "made a volume of an image"),
            Err(_) => {
                let discarded = self.discard(name).await;
                discarded.map_err(|error| error.to_string())?;
            }
        }
        filled
    }

    async fn fill(&self, id: &str, name: &str) -> Result<(), String> {
        let source = source_of(name);
        for (container, volume) in [(name, Some(name)), (&source, None)] {
            let body = self.idle(id, volume);
            let made = self.create_named(container, body, |_| false).await;
            made.map_err(|error| error.to_string())?;
        }
        let moved = self.copy_content(&source, name).await;
        moved.map_err(|error| error.to_string())?;
        for container in [&source, name] {
            let destroyed = self.destroy(container).await;
            destroyed.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Returns the request for a container that is never started, with a volume if it is a carrier.
    fn idle(&self, id: &str, volume: Option<&str>) -> ContainerCreateBody {
        let labels = [
            (CLUSTER, self.engine.cluster.as_str()),
            (NODE, &self.node),
            (IMAGE, id),
        ];
        let labels = labels.map(|(label, value)| (label.to_owned(), value.to_owned()));
        let content = volume.map(|volume| Mount {
            typ: Some(MountType::VOLUME),
            source: Some(volume.to_owned()),
            target: Some(CONTENT.to_owned()),
            volume_options: Some(MountVolumeOptions {
                no_copy: Some(true),
                labels: Some(labels.clone().into()),
                ..MountVolumeOptions::default()
            }),
            ..Mount::default()
        });
        carrier::body(id, labels.into(), content.into_iter().collect())
    }

    /// Copies the files of a source to the volume of a carrier.
    async fn copy_content(&self, source: &str, carrier: &str) -> io::Result<()> {
        let client = self.engine.client.clone().with_timeout(TIMEOUT);
        let (mut export, exported) = pipe()?;
        let (upload, filtered) = pipe()?;
        let read = async {
            let pieces = client.export_container(source).map_err(io::Error::other);
            let mut pieces = StreamReader::new(Box::pin(pieces));
            tokio::io::copy(&mut pieces, &mut export).await?;
            export.shutdown().await
        };
        let options = UploadToContainerOptionsBuilder::default()
            .path(CONTENT)
            .build();
        let body = body_try_stream(ReaderStream::new(upload));
        let write = async {
            let written = client
                .upload_to_container(carrier, Some(options), body)
                .await;
            written.map_err(io::Error::other)
        };
        let filter = async {
            let filter = spawn_blocking(move || {
                let done = copy(&exported, &filtered);
                filtered.shutdown(Shutdown::Both)?;
                done
            });
            filter.await.map_err(io::Error::other)?
        };
        tokio::try_join!(read, filter, write).map(|_| ())
    }

    /// Removes a source, its carrier and the volume.
    async fn discard(&self, name: &str) -> Result<(), Error> {
        self.destroy(&source_of(name)).await?;
        self.destroy(name).await?;
        let client = &self.engine.client;
        match client
            .remove_volume(name, None::<RemoveVolumeOptions>)
            .await
        {
            Err(error) if !is_not_found(&error) => {
                Err(engine_error(format!("remove volume {name}"), error))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the name of the source of a carrier.
fn source_of(carrier: &str) -> String {
    format!("{carrier}_source")
}

/// Returns two ends of a pipe: one for a task, and one for a thread that may block.
fn pipe() -> io::Result<(UnixStream, std::os::unix::net::UnixStream)> {
    let (task, thread) = UnixStream::pair()?;
    let thread = thread.into_std()?;
    thread.set_nonblocking(false)?;
    Ok((task, thread))
}
