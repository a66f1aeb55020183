//! Volumes with the content of an image.
//!
//! ```text
//! image ─▶ source ─ export ─▶ filter ─ upload ─▶ carrier ─▶ volume of the engine
//! ```
//! Source and carrier are containers that are never started; two, because the engine cannot export a container and
//! unpack into it at the same time. The volume is complete once its carrier is removed. It is read-only for containers,
//! shared by all that mount the same image, and removed with the last of them. The engine unpacks it within the
//! carrier, so that no path or link of an image leads out of it. Engines before 28 cannot mount images themselves.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::Shutdown;
use std::sync::Arc;
use std::time::Duration;

use bollard::body_try_stream;
use bollard::models::{
    ContainerCreateBody, ContainerSummary, Mount, MountType, MountVolumeOptions,
};
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListVolumesOptionsBuilder, RemoveVolumeOptions,
    UploadToContainerOptionsBuilder,
};
use futures::TryStreamExt as _;
use parking_lot::Mutex;
use setpoint_model::Key;
use setpoint_task::catch_panic;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio_util::io::{ReaderStream, StreamReader};
use tracing::{debug, info};

use super::identity::{CLUSTER, NODE, filter as with_labels};
use super::image_files::copy;
use super::{Shared, carrier, engine_error, is_not_found};
use crate::{ContainerConfig, Error, ImageVolume, Keyring};

/// The label of carriers and volumes, with the id of their image.
const IMAGE: &str = "setpoint.dev/image";
/// The start of their names.
const PREFIX: &str = "k8s_image_";
/// The path of the volume in its carrier.
const CONTENT: &str = "/.setpoint-content";
/// The time in which a volume must be filled.
const TIMEOUT: Duration = Duration::from_secs(1800);

/// The images of the volumes of Pods.
pub struct ImageVolumes {
    /// The id of the image of each volume, by the uid of its Pod and its name. It stays the same while the Pod exists.
    resolved: Mutex<HashMap<(String, String), String>>,
    /// The volumes that are being filled, or that could not be, with the reason.
    filling: Mutex<HashMap<String, Option<String>>>,
    /// Filling is bound by the disk, so that one at a time is enough.
    slot: Semaphore,
    /// Maximum size of an image, in bytes.
    max_size: i64,
}

impl ImageVolumes {
    /// Returns a record without volumes, of images of at most this size.
    pub fn new(max_size: i64) -> Self {
        Self {
            max_size,
            resolved: Mutex::default(),
            filling: Mutex::default(),
            slot: Semaphore::new(1),
        }
    }

    /// Ends the filling of a volume. Returns whether a Pod has the volume; a failure is none of another's.
    fn end(&self, id: &str, name: &str, filled: Result<(), String>) -> bool {
        let resolved = self.resolved.lock();
        let used = resolved.values().any(|known| known == id);
        let mut filling = self.filling.lock();
        match filled {
            Err(why) if used => drop(filling.insert(name.to_owned(), Some(why))),
            _ => drop(filling.remove(name)),
        }
        used
    }

    /// Forgets the images of a Pod's volumes. Returns the ids of those that no other Pod has.
    fn forget(&self, uid: &str) -> Vec<String> {
        let mut resolved = self.resolved.lock();
        let of_pod = |(owner, _): &(String, String)| owner == uid;
        let left: Vec<_> = resolved.extract_if(|key, _| of_pod(key)).collect();
        let ids: HashSet<_> = left.into_iter().map(|(_, id)| id).collect();
        let others: HashSet<_> = resolved.values().collect();
        ids.into_iter().filter(|id| !others.contains(id)).collect()
    }

    /// Forgets that a volume could not be filled.
    fn forget_failure(&self, name: &str) {
        let mut filling = self.filling.lock();
        if filling.get(name).is_some_and(Option::is_some) {
            filling.remove(name);
        }
    }
}

impl Shared {
    /// Lets the mounts of image volumes name volumes of the engine, which are pulled and filled in the background.
    ///
    /// # Errors
    /// [`Error::Image`] while one is not available.
    pub(super) async fn resolve_image_volumes(
        self: &Arc<Self>,
        pod: &Key,
        config: &mut ContainerConfig,
    ) -> Result<(), Error> {
        for mount in &mut config.mounts {
            if let Some(image) = &mut mount.image {
                let id = self
                    .image_of(pod, &config.id.uid, &mount.volume, image, &config.keyring)
                    .await?;
                image.volume = self.name_of(&id);
                self.ensure_filled(pod, &id, image).await?;
            }
        }
        Ok(())
    }

    /// Returns the id of the image of a volume.
    async fn image_of(
        &self,
        pod: &Key,
        uid: &str,
        volume: &str,
        image: &ImageVolume,
        keyring: &Keyring,
    ) -> Result<String, Error> {
        let key = (uid.to_owned(), volume.to_owned());
        if let Some(id) = self.image_volumes.resolved.lock().get(&key) {
            return Ok(id.clone());
        }
        // No container has such a name.
        let pull = (uid.to_owned(), format!("volume/{volume}"));
        let reference = &image.reference;
        let ensured = self
            .images
            .ensure(pod, pull, reference, image.pull, keyring);
        ensured.await?;
        let inspected = self.engine.client.inspect_image(reference).await;
        let inspected =
            inspected.map_err(|error| engine_error(format!("inspect image {reference}"), error))?;
        let (size, most) = (
            inspected.size.unwrap_or_default(),
            self.image_volumes.max_size,
        );
        if size > most {
            return Err(Error::Config(format!(
                "ImageVolumeMountFailed: image {reference:?} has {size} bytes, and an image volume of this node at most {most}"
            )));
        }
        let id = inspected.id.unwrap_or_default();
        self.image_volumes.resolved.lock().insert(key, id.clone());
        Ok(id)
    }

    /// Returns the name of the volume, and of the carrier, of an image.
    fn name_of(&self, id: &str) -> String {
        let id = id.rsplit(':').next().unwrap_or(id);
        format!("{PREFIX}{}_{}_{id}", self.engine.cluster, self.node)
    }

    async fn ensure_filled(
        self: &Arc<Self>,
        pod: &Key,
        id: &str,
        image: &ImageVolume,
    ) -> Result<(), Error> {
        let name = &image.volume;
        let known = self.image_volumes.filling.lock().get(name).cloned();
        match known {
            Some(None) => return Err(being_filled(image)),
            Some(Some(why)) => {
                // The next attempt begins anew.
                self.image_volumes.filling.lock().remove(name);
                let reference = &image.reference;
                return Err(Error::Config(format!(
                    "ImageVolumeMountFailed: cannot read image {reference:?}: {why}"
                )));
            }
            None if self.is_filled(name).await? => return Ok(()),
            None => {}
        }
        let filling = &self.image_volumes.filling;
        filling.lock().insert(name.clone(), None);
        let (this, pod, id, name) = (Arc::clone(self), pod.clone(), id.to_owned(), name.clone());
        tokio::spawn(async move {
            let filled = catch_panic("image-volume", this.fill_once(&id, &name)).await;
            let filled = filled.unwrap_or_else(|panicked| Err(panicked.to_string()));
            let used = this.image_volumes.end(&id, &name, filled);
            if !used {
                this.remove_unused([name]).await;
            }
            (this.wake)(&pod);
        });
        Err(being_filled(image))
    }

    /// Returns whether a volume exists and has no carrier.
    async fn is_filled(&self, name: &str) -> Result<bool, Error> {
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

    async fn fill_once(&self, id: &str, name: &str) -> Result<(), String> {
        let Ok(_slot) = self.image_volumes.slot.acquire().await else {
            return Ok(());
        };
        // An agent that has ended meanwhile may have left a volume of this name.
        self.discard(name)
            .await
            .map_err(|error| error.to_string())?;
        let filled = match tokio::time::timeout(TIMEOUT, self.fill(id, name)).await {
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

    /// Forgets the image volumes of a Pod and removes those that no other Pod uses. `removed` are its containers.
    pub(super) async fn release_image_volumes(&self, uid: &str, removed: &[ContainerSummary]) {
        let left = self.image_volumes.forget(uid);
        let left: Vec<_> = left.iter().map(|id| self.name_of(id)).collect();
        left.iter()
            .for_each(|name| self.image_volumes.forget_failure(name));
        let mounts = removed.iter().filter_map(|one| one.mounts.as_ref());
        let names = mounts.flatten().filter_map(|mount| mount.name.clone());
        let names = names.filter(|name| name.starts_with(PREFIX));
        let names: HashSet<_> = names.chain(left).collect();
        self.remove_unused(names).await;
    }

    /// Removes the image volumes that an earlier agent of this node has left: those without a user, and those that it
    /// was filling.
    pub(super) async fn clean_image_volumes(&self) -> Result<(), bollard::errors::Error> {
        let labels = [(CLUSTER, self.engine.cluster.as_str()), (NODE, &self.node)];
        let mut wanted = with_labels(&labels);
        wanted
            .entry("label".to_owned())
            .or_default()
            .push(IMAGE.to_owned());
        let client = &self.engine.client;
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&wanted)
            .build();
        for carrier in client.list_containers(Some(options)).await? {
            if let Err(error) = self
                .destroy(carrier.id.as_deref().unwrap_or_default())
                .await
            {
                debug!(%error, "cannot remove the carrier of an image volume");
            }
        }
        let options = ListVolumesOptionsBuilder::default()
            .filters(&wanted)
            .build();
        let volumes = client.list_volumes(Some(options)).await?.volumes;
        let names = volumes.unwrap_or_default().into_iter();
        self.remove_unused(names.map(|volume| volume.name)).await;
        Ok(())
    }

    /// Removes those of the volumes that no container has. The engine refuses to remove the others.
    async fn remove_unused(&self, names: impl IntoIterator<Item = String>) {
        for name in names {
            if self.image_volumes.filling.lock().contains_key(&name) {
                continue;
            }
            let client = &self.engine.client;
            let removed = client.remove_volume(&name, None::<RemoveVolumeOptions>);
            if let Err(error) = removed.await {
                debug!(name, %error, "an image volume is kept");
            }
        }
    }
}

/// Returns the name of the source of a carrier.
fn source_of(carrier: &str) -> String {
    format!("{carrier}_source")
}

fn being_filled(image: &ImageVolume) -> Error {
    Error::Image {
        image: image.reference.clone(),
        reason: "ContainerCreating",
        message: String::new(),
        pulling: false,
    }
}

/// Returns two ends of a pipe: one for a task, and one for a thread that may block.
fn pipe() -> io::Result<(UnixStream, std::os::unix::net::UnixStream)> {
    let (task, thread) = UnixStream::pair()?;
    let thread = thread.into_std()?;
    thread.set_nonblocking(false)?;
    Ok((task, thread))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(volumes: &ImageVolumes, uid: &str, id: &str) {
        let key = (uid.to_owned(), "content".to_owned());
        volumes.resolved.lock().insert(key, id.to_owned());
    }

    #[test]
    fn a_failure_is_forgotten_with_the_last_pod_that_has_the_volume() {
        let volumes = ImageVolumes::new(0);
        resolve(&volumes, "a", "image");
        resolve(&volumes, "b", "image");
        assert!(volumes.end("image", "volume", Err("full".into())));
        assert_eq!(volumes.forget("a"), Vec::<String>::new());
        assert_eq!(volumes.forget("b"), ["image"]);
        volumes.forget_failure("volume");
        assert!(volumes.filling.lock().is_empty());
    }

    #[test]
    fn a_volume_whose_pods_go_while_it_is_filled_is_unused_and_has_no_failure() {
        let volumes = ImageVolumes::new(0);
        resolve(&volumes, "a", "image");
        volumes.filling.lock().insert("volume".into(), None);
        assert_eq!(volumes.forget("a"), ["image"]);
        volumes.forget_failure("volume");
        assert!(
            volumes.filling.lock().contains_key("volume"),
            "it is still filled"
        );
        assert!(!volumes.end("image", "volume", Err("full".into())));
        assert!(volumes.filling.lock().is_empty());
    }
}
