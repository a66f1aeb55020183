//! The images of the runtime.

use std::time::Duration;

use k8s_cri::v1::{
    AuthConfig, Image, ImageSpec, ImageStatusRequest, ListImagesRequest, PullImageRequest,
    RemoveImageRequest,
};
use tonic::Status;

use super::Shared;
use super::client::{Service, call, failed, message_of, within};
use crate::image_gc::Listed;
use crate::image_service::{ImageService, unavailable};
use crate::{Credential, Error, image_reference};

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

    async fn pull(&self, image: &str, credential: Option<&Credential>) -> Result<(), String> {
        let request = PullImageRequest {
            image: Some(spec(image)),
            auth: credential.map(|credential| AuthConfig {
                username: credential.username.clone(),
                password: credential.password.clone(),
                ..AuthConfig::default()
            }),
            ..PullImageRequest::default()
        };
        let mut images = self.0.images();
        let pulled = within(PULL_TIMEOUT, images.pull_image(request)).await;
        pulled.map(drop).map_err(|status| message_of(&status))
    }

    async fn list(&self) -> Result<Vec<Listed>, String> {
        let mut images = self.0.images();
        let answer = call(images.list_images(ListImagesRequest::default())).await;
        let answer = answer.map_err(|status| message_of(&status))?;
        let listed = answer.images.into_iter().map(|image| Listed {
            tags: image.repo_tags,
            digests: image.repo_digests,
            bytes: i64::try_from(image.size).unwrap_or(i64::MAX),
            pinned: image.pinned,
        });
        Ok(listed.collect())
    }

    async fn remove(&self, image: &str) -> Result<(), String> {
        let request = RemoveImageRequest {
            image: Some(spec(image)),
        };
        let removed = call(self.0.images().remove_image(request)).await;
        removed.map(drop).map_err(|status| message_of(&status))
    }
}

impl Shared {
    /// Returns an image that is present.
    pub(super) async fn image(&self, image: &str) -> Result<Image, Error> {
        let found = status(&self.service, image).await;
        let found = found.map_err(failed(format!("inspect image {image}")))?;
        found.ok_or_else(|| Error::Unknown(format!("image {image:?}")))
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
