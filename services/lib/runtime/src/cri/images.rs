//! The images of the runtime.

use std::time::Duration;

use k8s_cri::v1::{
    AuthConfig, Image, ImageSpec, ImageStatusRequest, ListImagesRequest, PullImageRequest,
    RemoveImageRequest,
};
use tonic::Status;

use super::Shared;
use super::abilities::is_since;
use super::client::{Service, call, failed, message_of, within};
use crate::image_gc::Listed;
use crate::image_service::{ImageService, Present, unavailable};
use crate::{Credential, Error, image_reference};

/// Time within which an image must be pulled, whatever came before. The CRI tells no progress.
const PULL_TIMEOUT: Duration = Duration::from_secs(3600);
/// Time for the first pull of an image by a runtime that does not end one without progress, which is the time after
/// which others end it.
const FIRST_PULL_TIMEOUT: Duration = Duration::from_secs(300);
/// The first version of the runtime that ends pulls without progress. CRI-O does so only if it is told to.
const PULL_PROGRESS: [(&str, (u32, u32)); 1] = [("containerd", (1, 7))];

/// The images of a runtime.
pub struct RuntimeImages(Service);

impl RuntimeImages {
    /// Returns those of a runtime.
    pub const fn new(service: Service) -> Self {
        Self(service)
    }
}

impl ImageService for RuntimeImages {
    async fn find(&self, image: &str) -> Result<Option<Present>, Error> {
        if !image_reference::is_valid(image) {
            let message = format!(
                "Failed to apply default image tag {image:?}: couldn't parse image name {image:?}: invalid reference format"
            );
            return Err(unavailable(image, "InvalidImageName", message, false));
        }
        let found = status(&self.0, image).await;
        let found = found.map_err(failed(format!("inspect image {image}")))?;
        Ok(found.map(|found| Present {
            bytes: i64::try_from(found.size).unwrap_or(i64::MAX),
            id: found.id,
        }))
    }

    async fn pull(
        &self,
        image: &str,
        credential: Option<&Credential>,
        failures: u32,
    ) -> Result<(), String> {
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
        let limit = limit(self.0.pull_timeout, failures);
        let pulled = within(limit, images.pull_image(request)).await;
        pulled.map(drop).map_err(|status| message_of(&status))
    }

    async fn list(&self) -> Result<Vec<Listed>, String> {
        let mut images = self.0.images();
        let answer = call(images.list_images(ListImagesRequest::default())).await;
        let answer = answer.map_err(|status| message_of(&status))?;
        let listed = answer.images.into_iter().map(|image| Listed {
            id: image.id,
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

/// Returns the time for the first pull of an image by this runtime.
pub fn first_limit(name: &str, version: &str) -> Duration {
    match is_since(&PULL_PROGRESS, name, version) {
        Some(true) => PULL_TIMEOUT,
        Some(false) | None => FIRST_PULL_TIMEOUT,
    }
}

/// Returns the time for a pull after these failures: twice as long after each, since an image may be large.
fn limit(first: Duration, failures: u32) -> Duration {
    first
        .saturating_mul(2_u32.saturating_pow(failures))
        .min(PULL_TIMEOUT)
}

fn spec(image: &str) -> ImageSpec {
    ImageSpec {
        image: image.to_owned(),
        ..ImageSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pull_by_a_runtime_that_waits_forever_is_given_more_time_after_each_failure() {
        let first = first_limit("containerd", "1.6.20~ds1");
        let limits = [0, 1, 3, 4, 100].map(|failures| limit(first, failures).as_secs());
        assert_eq!(limits, [300, 600, 2400, 3600, 3600]);
        assert_eq!(limit(first_limit("containerd", "2.1.9"), 0), PULL_TIMEOUT);
        assert_eq!(first_limit("cri-o", "1.36.0"), FIRST_PULL_TIMEOUT);
    }
}
