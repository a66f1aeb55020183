//! The images of the engine, for the status of the node.

use bollard::models::ImageSummary;
use bollard::query_parameters::ListImagesOptions;
use setpoint_proto::core::ContainerImage;
use tracing::debug;

use super::Shared;
use crate::image_pulls::largest;

impl Shared {
    /// Returns the largest images of the engine; none if it does not answer.
    pub(super) async fn list_images(&self) -> Vec<ContainerImage> {
        match self
            .engine
            .client
            .list_images(None::<ListImagesOptions>)
            .await
        {
            Ok(images) => largest(named(images)),
            Err(error) => {
                debug!(%error, "the images of the engine are unknown");
                Vec::new()
            }
        }
    }
}

fn named(images: Vec<ImageSummary>) -> Vec<ContainerImage> {
    let named = images.into_iter().map(|image| {
        let names = image.repo_digests.into_iter().chain(image.repo_tags);
        ContainerImage {
            names: names.filter(|name| !name.contains("<none>")).collect(),
            size_bytes: image.size,
        }
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_images_with_a_name_are_reported() {
        let image = |name: &str, size| ImageSummary {
            repo_tags: vec![name.into()],
            repo_digests: vec![format!("{name}@sha256:1")],
            size,
            ..ImageSummary::default()
        };
        let mut all = vec![
            image("small", 1),
            image("<none>:<none>", 7),
            image("large", 9),
        ];
        let images = largest(named(all.clone()));
        assert_eq!(images[0].names, ["large@sha256:1", "large"]);
        let sizes: Vec<_> = images.iter().map(|image| image.size_bytes).collect();
        assert_eq!(sizes, [9, 1]);
        all.extend((0..100).map(|number| image(&format!("i{number}"), 5)));
        assert_eq!(largest(named(all)).len(), 50);
    }
}
