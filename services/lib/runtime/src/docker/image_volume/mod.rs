//! Volumes with the content of an image.
//!
//! ```text
//! image ─ filling ─▶ volume of the engine
//! ```
//! The volume is read-only for containers, shared by all that mount the same image, and removed with the last of them.
//! Engines before 28 cannot mount images themselves.

mod filling;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bollard::models::ContainerSummary;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListVolumesOptionsBuilder, RemoveVolumeOptions,
};
use parking_lot::Mutex;
use setpoint_model::Key;
use setpoint_task::catch_panic;
use tokio::sync::Semaphore;
use tracing::debug;

use super::identity::{CLUSTER, NODE, filter as with_labels};
use super::{Shared, engine_error};
use crate::{ContainerConfig, Error, ImageVolume, Keyring};

/// The label of carriers and volumes, with the id of their image.
const IMAGE: &str = "setpoint.dev/image";
/// The start of their names.
const PREFIX: &str = "k8s_image_";
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

fn being_filled(image: &ImageVolume) -> Error {
    Error::Image {
        image: image.reference.clone(),
        reason: "ContainerCreating",
        message: String::new(),
        pulling: false,
    }
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
