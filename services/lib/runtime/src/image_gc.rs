//! The images that are present, and the removal of those that nothing uses.
//!
//! The engine may have other users, and images that were built on its machine cannot be pulled again. Therefore only
//! images that this agent has pulled since it started are removed.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use setpoint_proto::core::ContainerImage;
use tracing::{debug, info};

use crate::image_pulls::Images;
use crate::image_records::{Record, Unused, familiar, plan};
use crate::image_service::ImageService;

/// Maximum number of images in the status of a node, as in the kubelet.
const MAX_IMAGES: usize = 50;

/// An image that is present.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// The engine's id of it.
    pub id: String,
    /// Its tags, with the repository.
    pub tags: Vec<String>,
    /// Its digests, with the repository.
    pub digests: Vec<String>,
    /// Its size.
    pub bytes: i64,
    /// Whether the runtime says that it must stay.
    pub pinned: bool,
}

impl Listed {
    fn names(&self) -> impl Iterator<Item = &String> {
        self.digests.iter().chain(&self.tags)
    }
}

impl<S: ImageService> Images<S> {
    /// Returns the largest images, for the status of a node; none if the engine does not answer.
    pub async fn list(&self) -> Vec<ContainerImage> {
        largest(self.all().await)
    }

    async fn all(&self) -> Vec<Listed> {
        let asked = Timestamp::now();
        match self.service().list().await {
            Ok(images) => {
                if let Some(access) = self.access() {
                    access.forget_others(&images, asked);
                }
                images
            }
            Err(error) => {
                debug!(error, "the images of the engine are unknown");
                Vec::new()
            }
        }
    }

    /// Removes images of at least this age, of which none has a [familiar name](familiar) in `in_use`, until `bytes`
    /// are freed. Returns the number of bytes freed.
    pub async fn remove_unused(
        &self,
        in_use: &HashSet<String>,
        bytes: u64,
        min_age: Duration,
    ) -> u64 {
        let now = Instant::now();
        let unused = unused(&self.records(in_use, now), in_use, self.all().await);
        let mut freed: u64 = 0;
        for image in plan(unused, bytes, min_age, now) {
            // A Docker engine refuses to remove the image of a container, of whatever user.
            match self.service().remove(&image.name).await {
                Ok(()) => {
                    info!(
                        image = image.name,
                        bytes = image.bytes,
                        "removed an unused image"
                    );
                    freed = freed.saturating_add(image.bytes);
                }
                Err(error) => debug!(image = image.name, error, "cannot remove the image"),
            }
        }
        freed
    }
}

/// Returns the largest images that have names.
fn largest(images: Vec<Listed>) -> Vec<ContainerImage> {
    let images = images.into_iter().map(|image| ContainerImage {
        names: image.names().cloned().collect(),
        size_bytes: image.bytes,
    });
    let mut images: Vec<_> = images.filter(|image| !image.names.is_empty()).collect();
    images.sort_by(|one, other| {
        let size = other.size_bytes.cmp(&one.size_bytes);
        size.then_with(|| one.names.cmp(&other.names))
    });
    images.truncate(MAX_IMAGES);
    images
}

/// Returns the images that the agent has pulled and that neither a container uses nor another tag names.
fn unused(
    records: &HashMap<String, Record>,
    in_use: &HashSet<String>,
    images: Vec<Listed>,
) -> Vec<Unused> {
    let one = |image: Listed| {
        let mut names = image.tags.iter().chain(&image.digests);
        let (name, record) = names.find_map(|name| Some((name, records.get(&familiar(name))?)))?;
        let others = image.tags.iter().any(|tag| tag != name);
        let is_used = image.names().any(|name| in_use.contains(&familiar(name)));
        let stays = others || is_used || image.pinned;
        (!stays).then(|| Unused {
            name: name.clone(),
            bytes: u64::try_from(image.bytes).unwrap_or_default(),
            pulled: record.pulled,
            used: record.used,
        })
    };
    images.into_iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image_records::Records;

    fn listed(tags: &[&str], bytes: i64) -> Listed {
        Listed {
            id: String::new(),
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            digests: tags
                .first()
                .map(|tag| format!("{tag}@sha256:0"))
                .into_iter()
                .collect(),
            bytes,
            pinned: false,
        }
    }

    #[test]
    fn the_largest_images_with_a_name_are_reported() {
        let mut all = vec![listed(&["small"], 1), listed(&[], 7), listed(&["large"], 9)];
        let images = largest(all.clone());
        assert_eq!(images[0].names, ["large@sha256:0", "large"]);
        let sizes: Vec<_> = images.iter().map(|image| image.size_bytes).collect();
        assert_eq!(sizes, [9, 1]);
        all.extend((0..100).map(|number| listed(&[&format!("i{number}")], 5)));
        assert_eq!(largest(all).len(), 50);
    }

    #[test]
    fn only_images_that_the_agent_pulled_and_nothing_uses_are_removed() {
        let now = Instant::now();
        let mut records = Records::default();
        for pulled in [
            "docker.io/library/busybox",
            "nginx:1.25",
            "tagged:1",
            "used:1",
            "pause:3",
        ] {
            records.pulled(pulled, now);
        }
        let pinned = Listed {
            pinned: true,
            ..listed(&["pause:3"], 7)
        };
        let images = vec![
            listed(&["busybox:latest"], 7),
            listed(&["nginx:1.25"], 7),
            listed(&["tagged:1", "mine:dev"], 7),
            listed(&["used:1"], 7),
            listed(&["built-here:dev"], 7),
            pinned,
        ];
        let in_use = [familiar("used:1")].into();
        let names: Vec<_> = unused(records.all(), &in_use, images);
        let names: Vec<_> = names.iter().map(|image| image.name.as_str()).collect();
        assert_eq!(names, ["busybox:latest", "nginx:1.25"]);
    }
}
