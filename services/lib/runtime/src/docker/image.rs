//! The images of the engine, and their pulls.

use std::time::Duration;

use bollard::auth::DockerCredentials;
use bollard::errors::Error as BollardError;
use bollard::models::ImageSummary;
use bollard::query_parameters::{CreateImageOptionsBuilder, ListImagesOptions, RemoveImageOptions};
use futures::TryStreamExt as _;
use tokio::time::timeout;

use super::{engine_error, is_not_found};
use crate::image_gc::Listed;
use crate::image_service::{ImageService, Present, unavailable};
use crate::{Credential, Error};

/// A pull without progress for this long is aborted.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);

impl ImageService for bollard::Docker {
    async fn find(&self, image: &str) -> Result<Option<Present>, Error> {
        match self.inspect_image(image).await {
            Ok(image) => Ok(Some(Present {
                id: image.id.unwrap_or_default(),
                bytes: image.size.unwrap_or_default(),
            })),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(BollardError::DockerResponseServerError {
                status_code: 400,
                message,
            }) => {
                let message = format!("Failed to apply default image tag {image:?}: {message}");
                Err(unavailable(image, "InvalidImageName", message, false))
            }
            Err(error) => Err(engine_error(format!("inspect image {image}"), error)),
        }
    }

    async fn pull(
        &self,
        image: &str,
        credential: Option<&Credential>,
        // The engine tells its progress.
        _failures: u32,
    ) -> Result<(), String> {
        let (name, tag) = reference(image);
        let options = CreateImageOptionsBuilder::default()
            .from_image(name)
            .tag(tag)
            .build();
        let credentials = credential.map(|credential| DockerCredentials {
            username: Some(credential.username.clone()),
            password: Some(credential.password.clone()),
            ..DockerCredentials::default()
        });
        let mut progress = self.create_image(Some(options), None, credentials);
        loop {
            match timeout(STALL_TIMEOUT, progress.try_next()).await {
                Ok(Ok(Some(_))) => {}
                Ok(Ok(None)) => return Ok(()),
                Ok(Err(BollardError::DockerResponseServerError { message, .. })) => {
                    return Err(message);
                }
                Ok(Err(error)) => return Err(error.to_string()),
                Err(_) => return Err(format!("no progress for {} s", STALL_TIMEOUT.as_secs())),
            }
        }
    }

    async fn list(&self) -> Result<Vec<Listed>, String> {
        let images = self.list_images(None::<ListImagesOptions>).await;
        let images = images.map_err(|error| error.to_string())?;
        Ok(images.into_iter().map(listed).collect())
    }

    async fn remove(&self, image: &str) -> Result<(), String> {
        let removed = self.remove_image(image, None::<RemoveImageOptions>, None);
        removed.await.map(drop).map_err(|error| error.to_string())
    }
}

/// Returns an image of the engine. What has no tag or digest has a name all the same.
fn listed(image: ImageSummary) -> Listed {
    let named = |names: Vec<String>| {
        let names = names.into_iter();
        names.filter(|name| !name.contains("<none>")).collect()
    };
    Listed {
        id: image.id,
        tags: named(image.repo_tags),
        digests: named(image.repo_digests),
        bytes: image.size,
        pinned: false,
    }
}

/// Splits an image reference into name and tag or digest. The tag defaults to `latest`, because the engine would pull
/// all tags otherwise.
fn reference(image: &str) -> (&str, &str) {
    if let Some((name, digest)) = image.split_once('@') {
        return (name, digest);
    }
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, tag),
        _ => (image, "latest"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_stands_for_none_is_none() {
        let image = listed(ImageSummary {
            repo_tags: vec!["<none>:<none>".into()],
            repo_digests: vec!["busybox@sha256:1".into()],
            ..ImageSummary::default()
        });
        assert_eq!(image.tags, [""; 0]);
        assert_eq!(image.digests, ["busybox@sha256:1"]);
    }

    #[test]
    fn an_image_without_a_tag_defaults_to_latest() {
        assert_eq!(reference("nginx"), ("nginx", "latest"));
        assert_eq!(reference("nginx:1.25"), ("nginx", "1.25"));
        assert_eq!(reference("here:5000/nginx"), ("here:5000/nginx", "latest"));
        assert_eq!(reference("nginx@sha256:ab"), ("nginx", "sha256:ab"));
    }
}
