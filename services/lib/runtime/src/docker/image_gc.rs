//! Removes images that the agent has pulled and that no container uses.
//!
//! The engine may have other users, and images that were built on its machine cannot be pulled again. Therefore only
//! images that this agent has pulled since it started are removed.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use bollard::models::ImageSummary;
use bollard::query_parameters::{ListImagesOptions, RemoveImageOptions};
use tracing::{debug, info};

use super::Shared;
use crate::image_records::{Record, Unused, familiar, plan};

impl Shared {
    /// Removes unused images of at least this age, until `bytes` are freed. Returns the number of bytes freed.
    pub(super) async fn remove_images(&self, bytes: u64, min_age: Duration) -> u64 {
        let client = &self.engine.client;
        let images = match client.list_images(None::<ListImagesOptions>).await {
            Ok(images) => images,
            Err(error) => {
                debug!(%error, "the images of the engine are unknown");
                return 0;
            }
        };
        let containers = self.table.lock().containers();
        let mut in_use: HashSet<_> = containers.iter().map(|one| familiar(&one.image)).collect();
        in_use.insert(familiar(&self.pause_image));
        let now = Instant::now();
        let unused = unused(&self.images.records(&in_use, now), &in_use, images);
        let mut freed: u64 = 0;
        for image in plan(unused, bytes, min_age, now) {
            // The engine refuses to remove the image of a container, of whatever user.
            match client
                .remove_image(&image.name, None::<RemoveImageOptions>, None)
                .await
            {
                Ok(_) => {
                    info!(
                        image = image.name,
                        bytes = image.bytes,
                        "removed an unused image"
                    );
                    freed = freed.saturating_add(image.bytes);
                }
                Err(error) => debug!(image = image.name, %error, "cannot remove the image"),
            }
        }
        freed
    }
}

/// Returns the images that the agent has pulled and that neither a container uses nor another tag names.
fn unused(
    records: &HashMap<String, Record>,
    in_use: &HashSet<String>,
    images: Vec<ImageSummary>,
) -> Vec<Unused> {
    let one = |image: ImageSummary| {
        let names = || image.repo_tags.iter().chain(&image.repo_digests);
        let (name, record) =
            names().find_map(|name| Some((name, records.get(&familiar(name))?)))?;
        let others = image.repo_tags.iter().any(|tag| tag != name);
        let is_used = names().any(|name| in_use.contains(&familiar(name)));
        (!others && !is_used).then(|| Unused {
            name: name.clone(),
            bytes: u64::try_from(image.size).unwrap_or_default(),
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

    #[test]
    fn only_images_that_the_agent_pulled_and_nothing_uses_are_removed() {
        let now = Instant::now();
        let mut records = Records::default();
        for pulled in [
            "docker.io/library/busybox",
            "nginx:1.25",
            "tagged:1",
            "used:1",
        ] {
            records.pulled(pulled, now);
        }
        let listed = |tags: &[&str]| ImageSummary {
            repo_tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            repo_digests: vec![format!("{}@sha256:0", tags[0])],
            size: 7,
            ..ImageSummary::default()
        };
        let images = vec![
            listed(&["busybox:latest"]),
            listed(&["nginx:1.25"]),
            listed(&["tagged:1", "mine:dev"]),
            listed(&["used:1"]),
            listed(&["built-here:dev"]),
        ];
        let in_use = [familiar("used:1")].into();
        let names: Vec<_> = unused(records.all(), &in_use, images);
        let names: Vec<_> = names.iter().map(|image| image.name.as_str()).collect();
        assert_eq!(names, ["busybox:latest", "nginx:1.25"]);
    }
}
