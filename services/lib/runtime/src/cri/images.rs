//! The images of the runtime: their pulls, the list for the status of the node, and their removal.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use k8s_cri::v1::{
    Image, ImageSpec, ImageStatusRequest, ListImagesRequest, PullImageRequest, RemoveImageRequest,
};
use setpoint_proto::core::ContainerImage;
use tonic::Status;
use tracing::{debug, info};

use super::Shared;
use super::client::{Service, call, failed, message_of, within};
use crate::image_pulls::{ImageService, largest, unavailable};
use crate::image_records::{Unused, familiar, plan};
use crate::{Error, image_reference};

/// Time within which an image must be pulled. The CRI tells no progress; runtimes abort pulls without any earlier.
const PULL_TIMEOUT: Duration = Duration::from_secs(3600);

/// The images of a runtime.
pub struct RuntimeImages(Service);

impl RuntimeImages {
    /// Returns those of a runtime.
    pub const fn new(service: Service) -> Self {
        Self(service)
    }
}

impl ImageService for RuntimeImages {
    async fn size(&self, image: &str) -> Result<Option<i64>, Error> {
        if !image_reference::is_valid(image) {
            let message = format!(
                "Failed to apply default image tag {image:?}: couldn't parse image name {image:?}: invalid reference format"
            );
            return Err(unavailable(image, "InvalidImageName", message, false));
        }
        let found = status(&self.0, image).await;
        let found = found.map_err(failed(format!("inspect image {image}")))?;
        Ok(found.map(|found| i64::try_from(found.size).unwrap_or(i64::MAX)))
    }

    async fn pull(&self, image: &str) -> Result<(), String> {
        let request = PullImageRequest {
            image: Some(spec(image)),
            ..PullImageRequest::default()
        };
        let mut images = self.0.images();
        let pulled = within(PULL_TIMEOUT, images.pull_image(request)).await;
        pulled.map(drop).map_err(|status| message_of(&status))
    }
}

impl Shared {
    /// Returns an image that is present.
    pub(super) async fn image(&self, image: &str) -> Result<Image, Error> {
        let found = status(&self.service, image).await;
        let found = found.map_err(failed(format!("inspect image {image}")))?;
        found.ok_or_else(|| Error::Unknown(format!("image {image:?}")))
    }

    /// Returns the largest images; none if the runtime does not answer.
    pub(super) async fn list_images(&self) -> Vec<ContainerImage> {
        let images = self.all_images().await.into_iter();
        let named = images.map(|image| {
            let names = image.repo_digests.into_iter().chain(image.repo_tags);
            ContainerImage {
                names: names.collect(),
                size_bytes: i64::try_from(image.size).unwrap_or(i64::MAX),
            }
        });
        largest(named.collect())
    }

    async fn all_images(&self) -> Vec<Image> {
        let mut images = self.service.images();
        match call(images.list_images(ListImagesRequest::default())).await {
            Ok(answer) => answer.images,
            Err(status) => {
                debug!(%status, "the images of the runtime are unknown");
                Vec::new()
            }
        }
    }

    /// Removes images that this agent has pulled, that are unused and of at least this age, until `bytes` are freed.
    /// Returns the number of bytes freed.
    pub(super) async fn remove_images(&self, bytes: u64, min_age: Duration) -> u64 {
        let containers = self.table.lock().containers();
        let in_use: HashSet<_> = containers.iter().map(|one| familiar(&one.image)).collect();
        let now = Instant::now();
        let records = self.images.records(&in_use, now);
        let one = |image: Image| {
            let names = || image.repo_tags.iter().chain(&image.repo_digests);
            let record = names().find_map(|name| records.get(&familiar(name)))?;
            let is_used = image.pinned || names().any(|name| in_use.contains(&familiar(name)));
            (!is_used).then(|| Unused {
                name: image.id.clone(),
                bytes: image.size,
                pulled: record.pulled,
                used: record.used,
            })
        };
        let unused = self
            .all_images()
            .await
            .into_iter()
            .filter_map(one)
            .collect();
        let mut freed: u64 = 0;
        for image in plan(unused, bytes, min_age, now) {
            let request = RemoveImageRequest {
                image: Some(spec(&image.name)),
            };
            match call(self.service.images().remove_image(request)).await {
                Ok(_) => {
                    info!(
                        image = image.name,
                        bytes = image.bytes,
                        "removed an unused image"
                    );
                    freed = freed.saturating_add(image.bytes);
                }
                Err(status) => debug!(image = image.name, %status, "cannot remove the image"),
            }
        }
        freed
    }
}

async fn status(service: &Service, image: &str) -> Result<Option<Image>, Status> {
    let request = ImageStatusRequest {
        image: Some(spec(image)),
        verbose: false,
    };
    let answer = call(service.images().image_status(request)).await?;
    Ok(answer.image)
}

fn spec(image: &str) -> ImageSpec {
    ImageSpec {
        image: image.to_owned(),
        ..ImageSpec::default()
    }
}
